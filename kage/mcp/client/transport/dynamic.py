"""Headers a program of the person prints: run at connect, and again when they were refused."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Mapping

from kage.core.errors import ServerError
from kage.core.processes import Spawner
from kage.core.sanitise import clip
from kage.core.servers import Stage
from kage.mcp.client.servers.printing import NothingPrinted, Program, printed
from kage.mcp.client.transport.address import Address

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class HeaderSource:
    """The headers of one entry: those it writes down, and those its command printed last."""

    def __init__(
        self,
        address: Address,
        *,
        server: str,
        spawner: Spawner,
        secret: Callable[[str, str], None],
    ) -> None:
        self._address = address
        self._server = server
        self._spawner = spawner
        self._secret = secret
        self._printed: dict[str, str] = {}
        self._running = asyncio.Lock()
        self.round = 0  # how often they were printed

    def now(self) -> Mapping[str, str]:
        """Give them as they are; what was printed beats what is written."""
        return {**self._address.headers, **self._printed}

    @property
    def renewable(self) -> bool:
        """Whether there is a program to ask."""
        return bool(self._address.command)

    async def renew(self, seen: int) -> bool:
        """Run the program unless that happened after round ``seen``; say whether they changed.

        Raises:
            ServerError: it failed, or printed no headers; stage "config".
        """
        if not self.renewable:
            return False
        async with self._running:
            if self.round > seen:
                return True
            given = _parse(await self._output(), self._failed)
            for name, value in given.items():
                self._secret(name, value)
                scheme, _, token = value.partition(" ")
                if token and scheme.lower() in {"bearer", "basic", "token"}:
                    self._secret(f"{name} token", token.strip())
            changed, self._printed = given != self._printed, given
            self.round += 1
            return changed

    async def _output(self) -> bytes:
        address = self._address
        program = Program(argv=address.command, cwd=address.cwd, env=address.env)
        try:
            return await printed(program, self._spawner)
        except NothingPrinted as error:
            raise self._failed(str(error)) from error

    def _failed(self, why: str) -> ServerError:
        line = clip(shlex.join(self._address.command), 200)
        return ServerError(
            f"The headers_command of the server {self._server} failed",
            server=self._server,
            stage=Stage.CONFIG,
            why=why,
            fix=f"It has to print headers as JSON or as lines; try it in a shell: {line}",
        )


def _parse(output: bytes, failed: Callable[[str], ServerError]) -> dict[str, str]:
    """Read a JSON object, or lines of the form ``Name: value``; values stay out of messages."""
    text = output.decode("utf-8", "replace").strip()
    pairs: dict[str, object] = {}
    if text.startswith("{"):
        try:
            pairs = json.loads(text)
        except (ValueError, RecursionError):
            raise failed("what it printed is no valid JSON") from None
    else:
        for number, line in enumerate(text.splitlines(), 1):
            name, colon, value = line.partition(":")
            if line.strip() and not colon:
                raise failed(f"line {number} of what it printed is no header")
            if line.strip():
                pairs[name.strip()] = value.strip()
    found: dict[str, str] = {}
    for name, given in pairs.items():
        if not _NAME.fullmatch(name) or not isinstance(given, str):
            raise failed("it printed something that is no header")
        if _CONTROL.search(given) or not given.isascii():
            raise failed(f"the value of {name} holds a character a header cannot carry")
        found[name] = given
    if not found:
        raise failed("it printed nothing")
    return found

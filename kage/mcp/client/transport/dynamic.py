"""Headers a program of the person prints: run at connect, and again when they were refused."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Mapping

from kage.core.errors import ServerError
from kage.core.processes import Spawner
from kage.core.sanitise import clip, visible
from kage.core.servers import Stage
from kage.mcp.client.servers.program import find_program
from kage.mcp.client.transport.address import Address

LIMIT = 10.0  # seconds it may take
_MOST = 64 << 10  # bytes of its output
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
            printed = _parse(await self._output(), self._failed)
            for name, value in printed.items():
                self._secret(name, value)
                scheme, _, token = value.partition(" ")
                if token and scheme.lower() in {"bearer", "basic", "token"}:
                    self._secret(f"{name} token", token.strip())
            changed, self._printed = printed != self._printed, printed
            self.round += 1
            return changed

    async def _output(self) -> bytes:
        argv = self._address.command
        try:
            path = find_program(argv[0], cwd=self._address.cwd, env=self._address.env)
            process = await self._spawner.spawn(
                (path, *argv[1:]),
                cwd=self._address.cwd,
                env=self._address.env,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error
        assert process.stdin is not None and process.stdout is not None
        assert process.stderr is not None
        process.stdin.close()
        complaint = asyncio.create_task(_read(process.stderr))
        try:
            async with asyncio.timeout(LIMIT):
                output = await _read(process.stdout)
                code = await process.wait()
                said = await complaint
        except TimeoutError:
            raise self._failed(f"it took more than {LIMIT:g} s") from None
        finally:
            complaint.cancel()
            await asyncio.shield(asyncio.create_task(self._spawner.end(process, grace=0.5)))
        if code:
            last = said.decode("utf-8", "replace").strip().splitlines()[-1:]
            words = f": {clip(visible(last[0], single_line=True), 200)}" if last else ""
            raise self._failed(f"it ended with exit code {code}{words}")
        return output

    def _failed(self, why: str) -> ServerError:
        line = clip(shlex.join(self._address.command), 200)
        return ServerError(
            f"The headers_command of the server {self._server} failed",
            server=self._server,
            stage=Stage.CONFIG,
            why=why,
            fix=f"It has to print headers as JSON or as lines; try it in a shell: {line}",
        )


async def _read(pipe: asyncio.StreamReader) -> bytes:
    """Read to the end; what is too much is read and thrown away."""
    kept = bytearray()
    while chunk := await pipe.read(1 << 16):
        kept += chunk[: _MOST + 1 - len(kept)]
    return bytes(kept)


def _parse(output: bytes, failed: Callable[[str], ServerError]) -> dict[str, str]:
    """Read a JSON object, or lines of the form ``Name: value``; values stay out of messages."""
    if len(output) > _MOST:
        raise failed(f"it printed more than {_MOST >> 10} KiB")
    printed = output.decode("utf-8", "replace").strip()
    pairs: dict[str, object] = {}
    if printed.startswith("{"):
        try:
            pairs = json.loads(printed)
        except (ValueError, RecursionError):
            raise failed("what it printed is no valid JSON") from None
    else:
        for number, line in enumerate(printed.splitlines(), 1):
            name, colon, text = line.partition(":")
            if line.strip() and not colon:
                raise failed(f"line {number} of what it printed is no header")
            if line.strip():
                pairs[name.strip()] = text.strip()
    found: dict[str, str] = {}
    for name, value in pairs.items():
        if not _NAME.fullmatch(name) or not isinstance(value, str):
            raise failed("it printed something that is no header")
        if _CONTROL.search(value) or not value.isascii():
            raise failed(f"the value of {name} holds a character a header cannot carry")
        found[name] = value
    if not found:
        raise failed("it printed nothing")
    return found

"""What an identity provider says of the person: as it is written down, or as a program prints it.

An ID token is good for minutes; a kage runs for days. A program is asked for each exchange.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from kage.core.processes import Spawner
from kage.core.sanitise import clip
from kage.mcp.client.oauth.problems import SignInFailed
from kage.mcp.client.servers.printing import NothingPrinted, Program, printed

_TOKEN = re.compile(r"[\x21-\x7e]+")


class IdToken:
    """The ID token of one entry.

    Args:
        server: Whose entry it is.
        written: What stands there; "" where a program prints it.
        program: What prints it.
        spawner: Runs that; None where nothing may be started.
        secret: Told what must not be shown.
    """

    def __init__(
        self,
        server: str,
        *,
        written: str,
        program: Program | None,
        spawner: Spawner | None,
        secret: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._written = written
        self._program = program
        self._spawner = spawner
        self._secret = secret

    async def get(self) -> str:
        """Give it as it is now.

        Raises:
            SignInFailed: the program failed, or printed no token.
        """
        if self._program is None:
            return self._written
        if self._spawner is None:
            raise self._failed(self._program, "nothing may be started here")
        try:
            output = await printed(self._program, self._spawner)
        except NothingPrinted as error:
            raise self._failed(self._program, str(error)) from error
        token = output.decode("utf-8", "replace").strip()
        if not _TOKEN.fullmatch(token):
            raise self._failed(self._program, "it printed something that is no token")
        self._secret("idp_id_token", token)
        return token

    def _failed(self, program: Program, why: str) -> SignInFailed:
        line = clip(shlex.join(program.argv), 200)
        return SignInFailed(
            self._server,
            f"its idp_id_token_command failed: {why}",
            fix=f"It has to print the ID token and nothing else; try it in a shell: {line}",
        )

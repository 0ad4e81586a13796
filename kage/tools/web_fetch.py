"""The web_fetch tool: a public page as Markdown, text or an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kage.core.processes import Spawner
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools.described import count, description, schema, words, yes_no
from kage.tools.limits import FETCH_DEFAULT

if TYPE_CHECKING:
    from kage.tools.net import Resolver

_NOTICES = 1000  # characters kept free for the address and the notes


class WebFetch:
    """Fetches public addresses."""

    def __init__(
        self,
        *,
        spawner: Spawner,
        max_output_chars: int,
        allow_loopback: bool = False,
        resolver: Resolver | None = None,
    ) -> None:
        """``allow_loopback`` lets this machine be reached; ``resolver`` replaces the system's."""
        self._spawner = spawner
        self._limit = max(max_output_chars - _NOTICES, 200)
        self._loopback = allow_loopback
        self._resolver = resolver
        self.spec = ToolSpec(
            name="web_fetch",
            title="Fetch a web page",
            description=description("web_fetch"),
            schema=schema(
                ("url",),
                url=words("The http or https address."),
                start_index=count("Character to start from, counted from 0.", low=0, default=0),
                max_length=count(
                    "How many characters to give at most.",
                    low=100,
                    high=self._limit,
                    default=min(FETCH_DEFAULT, self._limit),
                ),
                raw=yes_no("Give HTML as it is instead of as Markdown."),
            ),
            risk=Risk.NETWORK,
            subject=Subject(kind=SubjectKind.URL, argument="url"),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Fetch the page.

        Raises:
            ToolError: the address is not public, not http(s), or could not be fetched.
        """
        from kage.tools import fetching  # with the first call: hosts start faster

        return await fetching.run(
            call,
            spawner=self._spawner,
            limit=self._limit,
            allow_loopback=self._loopback,
            resolver=self._resolver,
        )

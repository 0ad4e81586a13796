"""The grep tool: search file contents, with ripgrep or without."""

from __future__ import annotations

from collections.abc import Mapping

from kage.core.processes import Spawner
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools.described import choice, count, description, schema, words, yes_no
from kage.tools.limits import GREP_CONTEXT, GREP_DEFAULT, GREP_MODES, GREP_MOST


class Grep:
    """Searches files inside the roots with a regular expression."""

    def __init__(
        self,
        *,
        spawner: Spawner,
        environ: Mapping[str, str],
        max_output_chars: int,
        use_ripgrep: bool = True,
    ) -> None:
        """``use_ripgrep`` false searches in Python even where ripgrep is installed."""
        self._spawner = spawner
        self._environ = environ
        self._limit = max_output_chars
        self._use_ripgrep = use_ripgrep
        self.spec = ToolSpec(
            name="grep",
            title="Search in files",
            description=description("grep"),
            schema=schema(
                ("pattern",),
                pattern=words("Regular expression to search for."),
                path=words("Folder or file to search.", default="."),
                glob=words("Only search files that match: `*.py`, `src/**/*.ts`.", default=""),
                ignore_case=yes_no("Do not tell capital from small letters."),
                literal=yes_no("Take the pattern as plain text."),
                context=count(
                    "Lines to show around each match.", low=0, high=GREP_CONTEXT, default=0
                ),
                mode=choice("What to give back.", GREP_MODES),
                hidden=yes_no("Also search what starts with a dot."),
                ignored=yes_no("Also search what git ignores."),
                limit=count(
                    "How many matches (or files) to show at most.",
                    low=1,
                    high=GREP_MOST,
                    default=GREP_DEFAULT,
                ),
            ),
            risk=Risk.READ,
            subject=Subject(kind=SubjectKind.PATH, argument="path", default="."),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Search.

        Raises:
            ToolError: the pattern is bad, the path is missing or outside, or it took too long.
        """
        from kage.tools import grepping, ripgrep  # with the first call: hosts start faster

        search = ripgrep.find(self._environ, self._spawner) if self._use_ripgrep else None
        return await grepping.run(call, search=search, spawner=self._spawner, limit=self._limit)

"""The find tool: files by name or path, without those git ignores."""

from __future__ import annotations

from collections.abc import Mapping

from kage.core.processes import Spawner
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools.described import choice, count, description, schema, words, yes_no
from kage.tools.limits import FIND_DEFAULT, FIND_KINDS, FIND_MOST


class Find:
    """Finds files inside the roots by glob."""

    def __init__(
        self,
        *,
        spawner: Spawner,
        environ: Mapping[str, str],
        max_output_chars: int,
        use_ripgrep: bool = True,
    ) -> None:
        """``use_ripgrep`` false walks in Python even where ripgrep is installed."""
        self._spawner = spawner
        self._environ = environ
        self._limit = max_output_chars
        self._use_ripgrep = use_ripgrep
        self.spec = ToolSpec(
            name="find",
            title="Find files",
            description=description("find"),
            schema=schema(
                ("pattern",),
                pattern=words("Glob to match: `*.py`, `src/**/*.{ts,tsx}`."),
                path=words("Folder to search, relative to the workspace or absolute.", default="."),
                type=choice("What to find.", FIND_KINDS),
                hidden=yes_no("Also find what starts with a dot."),
                ignored=yes_no("Also find what git ignores."),
                limit=count(
                    "How many results to show at most.",
                    low=1,
                    high=FIND_MOST,
                    default=FIND_DEFAULT,
                ),
            ),
            risk=Risk.READ,
            subject=Subject(kind=SubjectKind.PATH, argument="path", default="."),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Find the files.

        Raises:
            ToolError: the folder is missing or outside the roots, or the glob is too complex.
        """
        from kage.tools import finding, ripgrep  # with the first call: hosts start faster

        search = ripgrep.find(self._environ, self._spawner) if self._use_ripgrep else None
        return await finding.run(call, search=search, limit=self._limit)

"""The edit tool: replace exact text in a file."""

from __future__ import annotations

from kage.core.content import Text
from kage.core.errors import ToolError
from kage.core.tools import Invocation, Risk, Subject, SubjectKind, ToolResult, ToolSpec
from kage.tools.described import description, schema, words, yes_no


class Edit:
    """Replaces text that stands in a file, inside the roots."""

    def __init__(self) -> None:
        self.spec = ToolSpec(
            name="edit",
            title="Edit a file",
            description=description("edit"),
            schema=schema(
                ("path", "old_string", "new_string"),
                path=words("File to change, relative to the workspace or absolute."),
                old_string=words("The exact text to replace; it must not be empty."),
                new_string=words("The text to put there; may be empty."),
                replace_all=yes_no("Replace every place where the text stands."),
            ),
            risk=Risk.WRITE,
            subject=Subject(kind=SubjectKind.PATH, argument="path"),
        )

    async def run(self, call: Invocation) -> ToolResult:
        """Make the replacement.

        Raises:
            ToolError: the text is not there, there more than once, or the file cannot be edited.
        """
        from kage.tools import diff, editing, replace  # with the first call: hosts start faster

        change = editing.work_out(call)
        replace.put(change.place, change.data, expected=change.status, keeper=call.keeper)
        added, removed = diff.counts(change.old, change.new)
        where = "1 place" if change.places == 1 else f"{change.places} places"
        shown = diff.unified(change.old, change.new, name=change.place.shown)
        return ToolResult(
            content=(Text(f"Changed {change.place.shown} in {where} (+{added} -{removed} lines)"),),
            summary=f"+{added} -{removed}",
            diff=shown,
        )

    async def preview(self, call: Invocation) -> str:
        """Give the diff the call would make, "" when it would fail."""
        from kage.tools import diff, editing

        try:
            change = editing.work_out(call)
        except ToolError:
            return ""  # running it tells what is wrong
        return diff.unified(change.old, change.new, name=change.place.shown)

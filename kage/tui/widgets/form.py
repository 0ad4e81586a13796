"""A form on the screen: one box per field, with what is wrong below it.

For elicitation, prompts' arguments and calls by hand; what it holds is ``core.forms.Form``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from kage.core.formats import EXAMPLES
from kage.core.forms import Field, Form, Kind
from kage.core.sanitise import visible
from kage.tui.text import MUTED, shown
from kage.tui.widgets.choices import Choices

_LONGEST_LINE = 200  # characters; a longer text gets an area of its own


class FieldBox(Vertical):
    """One field: its name, the editor, what is wrong with it."""

    def __init__(self, field: Field, value: Any) -> None:  # any JSON value
        super().__init__(classes="form-field")
        self.field = field
        self._value = value
        self._text = visible(field.write(value))  # a default can hold anything

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield Static(_heading(self.field), classes="form-label")
        if self.field.description:
            yield Static(Content.styled(shown(self.field.description, 600), MUTED))
        yield self._editor()
        yield Static(classes="form-error")

    def on_mount(self) -> None:
        """Hide the line for errors, and mark what is chosen."""
        self.query_one(".form-error", Static).display = False
        for choices in self.query(Choices):
            choices.choose(self._value)

    @property
    def editor(self) -> Widget:
        """The widget the value is edited in."""
        return self.query_one(".form-editor")

    def read(self) -> tuple[Any, str]:  # any JSON value
        """Give the value, None when there is none, and what is wrong with it."""
        try:
            value = self._read()
        except ValueError as error:
            return None, str(error)
        return value, self.field.complaint(value)

    def tell(self, problem: str) -> None:
        """Show what is wrong, "" when nothing is."""
        line = self.query_one(".form-error", Static)
        line.display = bool(problem)
        line.update(Content.styled(f"✗ {shown(problem, 300)}", "$error"))

    def _read(self) -> Any:
        editor = self.editor
        if isinstance(editor, Choices):
            return editor.value
        assert isinstance(editor, Input | TextArea)
        text = editor.value if isinstance(editor, Input) else editor.text
        if text == self._text:  # not edited: exactly what stood there
            return self._value
        return self.field.read(text)

    def _editor(self) -> Widget:
        field = self.field
        editor: Widget
        if field.kind in (Kind.ONE, Kind.MANY, Kind.FLAG):
            editor = Choices(field)
        elif field.multiline or "\n" in self._text or len(self._text) > _LONGEST_LINE:
            editor = TextArea(
                self._text, soft_wrap=True, tab_behavior="focus", show_line_numbers=False
            )
        else:
            editor = Input(
                self._text, placeholder=_hint(field), password=field.secret, select_on_focus=False
            )
        editor.add_class("form-editor")
        return editor


class SchemaForm(Vertical):
    """All fields of a form; ``values`` stand there at first, else the form's defaults."""

    def __init__(self, form: Form, values: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.form = form
        self._given = form.initial() if values is None else dict(values)

    def compose(self) -> ComposeResult:
        """Make a box per field."""
        for field in self.form.fields:
            yield FieldBox(field, self._given.get(field.name))

    @property
    def boxes(self) -> list[FieldBox]:
        """The fields, top to bottom."""
        return list(self.query(FieldBox))

    def submit(self) -> dict[str, Any] | None:
        """Give what may be sent; None when something is wrong, which is then shown."""
        values: dict[str, Any] = {}
        first: FieldBox | None = None
        for box in self.boxes:
            value, problem = box.read()
            box.tell(problem)
            if problem:
                first = first or box
            elif value is not None:
                values[box.field.name] = value
        if first is not None:
            first.editor.focus()
            first.scroll_visible(animate=False)
            return None
        return values

    def move(self, step: int) -> bool:
        """Put the cursor ``step`` fields on; False at the end of the form."""
        boxes = self.boxes
        at = next((i for i, box in enumerate(boxes) if box.has_focus_within), None)
        target = (0 if step > 0 else len(boxes) - 1) if at is None else at + step
        if not 0 <= target < len(boxes):
            return False
        boxes[target].editor.focus()
        boxes[target].scroll_visible(animate=False)
        return True


def _heading(field: Field) -> Content:
    parts: list[str | tuple[str, str]] = [(shown(field.label, 120), "bold")]
    if field.title and field.title != field.name:
        parts.append((f"  {shown(field.name, 60)}", MUTED))
    facts = ["needed"] if field.required else []
    facts += [words] if (words := _limits(field)) else []
    parts.append((f"  {' · '.join(facts)}" if facts else "", MUTED))
    if field.secret:
        parts.append(("  looks like a secret", "bold $warning"))
    return Content.assemble(*parts)


def _limits(field: Field) -> str:
    words = {
        Kind.INTEGER: "whole number", Kind.NUMBER: "number", Kind.JSON: "JSON",
        Kind.MANY: "any number of them", Kind.TEXT: shown(field.format, 40),
    }.get(field.kind, "")  # fmt: skip
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in (
            ("≥", field.minimum), ("≤", field.maximum), (">", field.above), ("<", field.below)
        )
        if bound is not None
    ]  # fmt: skip
    unit = "characters" if field.kind is Kind.TEXT else "choices"
    if field.kind in (Kind.TEXT, Kind.MANY) and (field.shortest or field.longest is not None):
        longest = "" if field.longest is None else field.longest
        bounds.append(f"{field.shortest}–{longest} {unit}")
    return " ".join(filter(None, (words, *bounds)))


def _hint(field: Field) -> str:
    return f"like {EXAMPLES[field.format]}" if field.format in EXAMPLES else ""

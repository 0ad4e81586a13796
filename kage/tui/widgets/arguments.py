"""How the arguments of a call look: aligned names, whole values, nothing that can pretend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kage.core.sanitise import visible
from kage.tui.widgets.rows import Row, Rows, Span, row

KEY_WIDTH = 24  # a longer name gets a line of its own
FOLD_CHARS = 400  # a longer value is folded until it is asked for
FOLD_LINES = 8
GUTTER = "│ "  # in front of further lines of a value, so that they cannot look like a name


def argument_rows(arguments: Mapping[str, Any], *, unfolded: bool) -> Rows:
    """Give ``arguments`` (JSON) as rows; folded values say how long they are."""
    if not arguments:
        return (row(Span("no arguments", "muted")),)
    names = {key: visible(str(key), single_line=True) or '""' for key in arguments}
    width = min(KEY_WIDTH, max(len(name) for name in names.values()))
    rows: list[Row] = []
    for key, value in arguments.items():
        rows += _entry(names[key], _spell(value), width, unfolded=unfolded)
    return tuple(rows)


def is_foldable(arguments: Mapping[str, Any]) -> bool:
    """Say whether any value is long enough to be folded."""
    return any(_is_long(_spell(value)) for value in arguments.values())


def diff_rows(diff: str) -> Rows:
    """Give a unified diff as coloured rows."""
    return tuple(row(Span(line, _diff_kind(line))) for line in _lines(visible(diff)))


def _diff_kind(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "muted"
    if line.startswith("@@"):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "")


def _entry(name: str, text: str, width: int, *, unfolded: bool) -> list[Row]:
    indent = " " * (width + 2)
    folded = _is_long(text) and not unfolded
    lines = _lines(_start(text) if folded else text)
    rows: list[Row] = []
    if len(name) > width:
        rows.append(row(Span(name, "key")))
        first = Span(indent)
    else:
        first = Span(name.ljust(width + 2), "key")
    hang = indent + GUTTER
    rows.append(row(first, lines[0], hang=hang))
    rows += [row(Span(hang, "muted"), line, hang=hang) for line in lines[1:]]
    if folded:
        rows.append(row(indent, Span(f"… folded: {_size(text)}", "warning")))
    return rows


def _spell(value: object) -> str:
    """Spell one value; a text that could be read as another kind of value is quoted."""
    if isinstance(value, str):
        safe = visible(value).replace("\t", "    ")
        return json.dumps(value, ensure_ascii=False) if _ambiguous(value) else safe
    if isinstance(value, Mapping | list | tuple) and value:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return visible(text)


def _ambiguous(text: str) -> bool:
    if not text or text != text.strip():
        return len(text) < FOLD_CHARS and "\n" not in text and visible(text) == text
    if len(text) > 40 or text[0] not in '-0123456789tfn"[{':
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_long(text: str) -> bool:
    return len(text) > FOLD_CHARS or text.count("\n") >= FOLD_LINES


def _start(text: str) -> str:
    return "\n".join(text[:FOLD_CHARS].split("\n")[: FOLD_LINES - 2])


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    size = f"{len(text):,} characters"
    return f"{size} in {lines:,} lines" if lines > 1 else size


def _lines(text: str) -> list[str]:
    return text.split("\n")

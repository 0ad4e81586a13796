"""How one case of the decision log looks: as a line of a table, and in full."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from kage.core.sanitise import clip, visible
from kage.permissions.decisions.cases import Case

_COLUMNS = (("TIME", 19), ("ID", 13), ("VERDICT", 9), ("WHO", 7), ("OUTCOME", 10), ("WHAT", 0))
_SUBJECTS = ("command", "path", "url", "pattern")  # of kage's own tools
_WHAT = 160  # characters
_SHORT_ID = 13  # enough to tell records of one millisecond apart


def heading() -> str:
    """Give the head of the table."""
    return _row(tuple(name for name, _ in _COLUMNS))


def line(case: Case, *, width: int = 0) -> str:
    """Give a case as one line, times local; ``width`` is that of the terminal, 0 = no matter."""
    row = _row(cells(case))
    return clip(row, width) if width else row


def cells(case: Case) -> tuple[str, ...]:
    """Give what stands in the columns."""
    verdict = case.text("verdict") or case.text("action") or case.text("act") or case.kind
    shown = (
        local(case.text("time")),
        case.text("id")[:_SHORT_ID] or f"#{case.fields.get('n')}",
        verdict,
        case.text("who"),
        case.outcome,
        what(case),
    )
    return tuple(visible(text, single_line=True) for text in shown)


def what(case: Case) -> str:
    """Say in a few words what a case is about."""
    match case.kind:
        case "decision":
            return clip(f"{case.text('tool')} {_subject(case)}".rstrip(), _WHAT)
        case "trust":
            return f"server {case.text('server')} of {case.text('origin')}"
        case "handed":
            return f"what {case.text('server')} asked in {case.text('original')}"
        case "gap":
            missed = case.fields.get("missed")
            return f"{missed} records missing: {case.text('reason')}"
        case _:
            names = ("server", "tool", "original", "reason")
            return clip(" ".join(filter(None, map(case.text, names))), _WHAT)


def details(case: Case) -> Iterator[tuple[str, str]]:
    """Give every field of a case, safe to print."""
    for name, value in case.plain().items():
        if name == "time":
            yield name, f"{value} ({local(case.text('time'))} here)"
        elif name == "ended" and isinstance(value, dict):
            yield from ((f"ended {part}", _text(item)) for part, item in value.items())
        elif value not in ("", None):
            yield visible(name, single_line=True), _text(value)
    yield "file", case.file


def local(stamp: str) -> str:
    """Give the time of a record as this machine's clock shows it."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return stamp[:19]


def _subject(case: Case) -> str:
    arguments = case.fields.get("arguments")
    if not isinstance(arguments, dict):
        return ""
    if not case.text("server"):
        for name in _SUBJECTS:
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
    return json.dumps(arguments, ensure_ascii=False) if arguments else ""


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text, single_line=True)


def _row(shown: tuple[str, ...]) -> str:
    padded = (text.ljust(width) for text, (_, width) in zip(shown, _COLUMNS, strict=True))
    return "  ".join(padded).rstrip()

"""The small language of ``kage log``: ``server=github verdict=denied since=7d text~"rm -rf"``.

Terms are joined by *and*: a field, one of ``=``, ``!=`` or ``~`` (contains), and a value; ``*`` and
``?`` in a value of ``=`` stand for any text. A word alone is looked for in the whole record.
"""

from __future__ import annotations

import difflib
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kage.core.errors import UsageError
from kage.core.gate import Verdict, Who
from kage.core.messages import Outcome
from kage.core.sanitise import clip, visible
from kage.permissions.decisions.cases import Case
from kage.permissions.rules import glob

_PIECE = re.compile(r"""(?:"[^"]*"|'[^']*'|\([^()]*\)|\S)+""")
_TERM = re.compile(r"([A-Za-z_]+)(!=|=|~)(.*)", re.DOTALL)
_SPAN = re.compile(r"(\d+)\s*([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SAID = {"allowed": "allow", "denied": "deny", "refused": "deny"}
_ANSWERS = ("accept", "decline", "cancel")  # to what a server asked
_OPEN = "none"  # allowed, and nobody knows how it ended


def _verdict(case: Case) -> tuple[str, ...]:
    return (case.text("verdict") or case.text("action"),)


def _tool(case: Case) -> tuple[str, ...]:
    original = case.text("original")
    return case.text("tool"), f"{case.text('server')}__{original}" if original else ""


def _outcome(case: Case) -> tuple[str, ...]:
    return (case.outcome or (_OPEN if case.text("verdict") == Verdict.ALLOW else ""),)


def _whole(case: Case) -> tuple[str, ...]:
    return (json.dumps(case.plain(), ensure_ascii=False),)


_FIELDS: dict[str, Callable[[Case], tuple[str, ...]]] = {
    "server": lambda case: (case.text("server"),),
    "tool": _tool,
    "verdict": _verdict,
    "act": lambda case: (case.text("act"),),
    "who": lambda case: (case.text("who"),),
    "rule": lambda case: (case.text("rule"),),
    "outcome": _outcome,
    "session": lambda case: (case.text("session"),),
    "call": lambda case: (case.text("call"), case.text("id")),
    "kind": lambda case: (case.kind,),
    "workspace": lambda case: (case.text("workspace"),),
    "text": _whole,
}
_TIMES = ("since", "until")
FIELDS = (*_FIELDS, *_TIMES)
_KNOWN = {
    "verdict": (*map(str, Verdict), "withdrawn", *_ANSWERS),
    "who": (*map(str, Who), "kage"),
    "outcome": (*map(str, Outcome), _OPEN),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One condition."""

    field: str
    sign: str  # "=", "!=", "~"
    value: str

    def fits(self, case: Case) -> bool:
        """Say whether a case meets it."""
        found = _FIELDS[self.field](case)
        if self.sign == "~":
            wanted = self.value.casefold()
            return any(wanted in text.casefold() for text in found)
        hit = any(text == self.value or glob.matches(self.value, text, fold=True) for text in found)
        return hit if self.sign == "=" else not hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Everything a case must meet."""

    terms: tuple[Term, ...] = ()
    since: str = ""  # as records write times; "" = the beginning
    until: str = ""  # not included

    def fits(self, case: Case) -> bool:
        """Say whether a case is asked for."""
        when = case.text("time")
        if (self.since and when < self.since) or (self.until and when >= self.until):
            return False
        return all(term.fits(case) for term in self.terms)


def parse_query(words: Iterable[str], *, now: float | None = None) -> Query:
    """Read what was typed behind ``kage log``, one word or several.

    Raises:
        UsageError: a field, sign, time or word there is not; names the nearest.
    """
    terms: list[Term] = []
    times: dict[str, str] = {}
    at = time.time() if now is None else now
    for piece in (piece for word in words for piece in _PIECE.findall(word)):
        match = _TERM.fullmatch(piece)
        if match is None or (match[1].lower() not in FIELDS and piece[0] in "\"'"):
            terms.append(Term(field="text", sign="~", value=_bare(piece)))
            continue
        field, sign, value = match[1].lower(), match[2], _bare(match[3])
        if field in _TIMES:
            if sign != "=":
                raise UsageError(f"{field} takes = and nothing else", fix=f"Write {field}=7d")
            times[field] = stamp(_moment(field, value, at))
        elif field not in _FIELDS:
            raise _unknown("field", field, FIELDS)
        else:
            terms.append(_term(field, sign, value))
    since, until = times.get("since", ""), times.get("until", "")
    return Query(terms=tuple(terms), since=since, until=until)


def stamp(moment: datetime) -> str:
    """Write a time as records do, so that two can be compared as text."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _term(field: str, sign: str, value: str) -> Term:
    known = _KNOWN.get(field)
    if field == "verdict":
        value = _SAID.get(value.lower(), value)
    if known and sign != "~" and not re.search(r"[*?]", value):
        if value.lower() not in known:
            raise _unknown(field, value, known)
        value = value.lower()
    return Term(field=field, sign=sign, value=value)


def _bare(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def _moment(field: str, text: str, now: float) -> datetime:
    """Read a span ("7d"), a date or a date and time; until a date is until its end.

    Raises:
        UsageError: it is none of them.
    """
    today = datetime.fromtimestamp(now).astimezone()
    try:
        if span := _SPAN.fullmatch(text):
            return today - timedelta(seconds=int(span[1]) * _UNITS[span[2]])
        day = {"today": 0, "yesterday": 1}.get(text)
        if day is not None:
            text = (today - timedelta(days=day)).date().isoformat()
        found = datetime.fromisoformat(text)
        whole_day = field == "until" and len(text) <= len("2026-11-01")
        return (found + timedelta(days=1) if whole_day else found).astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{field}={_shown(text)} is no time",
            fix=f"Write {field}=7d, 12h, today, 2026-11-01 or 2026-11-01T14:30",
        ) from None


def _unknown(what: str, value: str, known: Iterable[str]) -> UsageError:
    names = list(known)
    near = difflib.get_close_matches(value.lower(), names, n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    return UsageError(
        f"There is no {what} {_shown(value)!r} in the decision log",
        fix=f"{hint}There are: {', '.join(names)}",
    )


def _shown(text: str) -> str:
    return clip(visible(text, single_line=True), 80)

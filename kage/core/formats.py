"""The formats of text a form may ask for: email, uri, date, date-time."""

from __future__ import annotations

import datetime
import re
from urllib.parse import urlsplit

_EMAIL = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s.][^@\s]{0,250}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

EXAMPLES = {
    "email": "name@example.com",
    "uri": "https://example.com/page",
    "date": "2026-07-28",
    "date-time": "2026-07-28T09:30:00Z",
}


def misspelt(form: str, text: str) -> str:
    """Say what is wrong with ``text`` for a format, "" when it fits or the format is unknown."""
    example = EXAMPLES.get(form)
    if example is None or _CHECKS[form](text):
        return ""
    return f"this is no {_NAMES[form]}, like {example}"


_NAMES = {
    "email": "email address",
    "uri": "full address",
    "date": "date",
    "date-time": "date with time and zone",
}


def _is_email(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    if _SCHEME.fullmatch(text) is None:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.netloc or parts.path)


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return False
    seconds = re.sub(r"\.\d+", "", text).upper().replace("Z", "+00:00").replace(" ", "T")
    try:
        datetime.datetime.fromisoformat(seconds)
    except ValueError:
        return False
    return True


_CHECKS = {"email": _is_email, "uri": _is_uri, "date": _is_date, "date-time": _is_moment}

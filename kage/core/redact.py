"""Replace known secrets in text before it reaches a sink, also where text comes in pieces."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6  # shorter values would blank out ordinary words
CUT = "…"  # what stands where text was cut
_PART = 8  # characters in front of a cut that are worth hiding
_LINE = 16  # characters that make a line of a longer secret one by itself


class Redactor:
    """Knows the secrets of this kage: values of env and headers, tokens, provider keys."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._starts: dict[str, list[str]] = {}  # forms by their first character
        self._longest = 0

    def add(self, name: str, value: str) -> None:
        """Register ``value`` as a secret called ``name``; short values are left alone.

        A key of several lines comes out line by line in logs, so each long line counts too.
        """
        if len(value) < MIN_LENGTH:
            return
        self._learn(name, value)
        if "\n" in value:
            lines = (line.strip() for line in value.splitlines())
            for line in lines:
                if len(line) >= _LINE and not line.startswith("-----"):
                    self._learn(name, line)

    def take(self, other: Redactor) -> None:
        """Learn every secret ``other`` knows."""
        for form, name in other._names.items():
            self._keep(form, name)

    def _learn(self, name: str, value: str) -> None:
        for form in _forms(value):
            self._keep(form, name)

    def _keep(self, form: str, name: str) -> None:
        if form not in self._names:
            self._names[form] = name
            self._starts.setdefault(form[0], []).append(form)
            self._longest = max(self._longest, len(form))

    def __call__(self, text: str) -> str:
        """Give ``text`` with each secret, plain, base64, hex or URL-encoded, replaced."""
        if found := self._found(text):
            text = _pattern(found).sub(lambda match: f"[redacted:{self._names[match[0]]}]", text)
        return self._without_cut(text) if self._names and CUT in text else text

    def names_in(self, text: str) -> tuple[str, ...]:
        """Name the secrets ``text`` holds, each once."""
        return tuple(sorted({self._names[form] for form in self._found(text)}))

    def _without_cut(self, text: str) -> str:
        """Replace what a cut left of a secret: a good part of one in front of the mark."""
        *pieces, last = text.split(CUT)
        for index, piece in enumerate(pieces):
            place = self._unfinished(piece, max(0, len(piece) - self._longest + 1))
            if len(piece) - place >= _PART:
                name = next(
                    name for form, name in self._names.items() if form.startswith(piece[place:])
                )
                pieces[index] = f"{piece[:place]}[redacted:{name}]"
        return CUT.join([*pieces, last])

    def _found(self, text: str) -> list[str]:
        # one search per form is far cheaper than one pattern of all, which tries each at each place
        return [form for form in self._names if form in text]

    def _settled(self, text: str) -> int:
        """Give how much of ``text`` can be judged whatever comes after it."""
        place, end = 0, len(text)
        found = self._found(text)
        matches = [match.span() for match in _pattern(found).finditer(text)] if found else []
        while True:
            hold = self._unfinished(text, max(place, end - self._longest + 1))
            across = next((stop for start, stop in matches if start < hold < stop), None)
            if across is None:
                return hold
            place = across  # a whole secret is replaced, and nothing in it begins another

    def _unfinished(self, text: str, start: int) -> int:
        """Give where the longest end of ``text`` stands that may become a secret."""
        length = len(text)
        for place in range(start, length):
            forms = self._starts.get(text[place])
            if forms:
                tail = text[place:]
                if any(len(form) > length - place and form.startswith(tail) for form in forms):
                    return place
        return length


class Stream:
    """Redacts a text that comes in pieces; what may be the start of a secret is held back."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._held = ""
        self._told = ""  # the beginning of what is held, where it was shown all the same

    def feed(self, text: str) -> str:
        """Take the next piece; gives what can be shown of it all."""
        text = self._held + text
        settled = self._redact._settled(text)
        told, self._told = self._told[:settled], self._told[settled:]
        self._held = text[settled:]
        return self._redact(text[:settled]).removeprefix(told)

    def pause(self) -> str:
        """Give what is held back where it is too little to be worth hiding; more may come."""
        if len(self._held) >= _PART or self._redact._found(self._held):
            return ""
        told, self._told = self._told, self._held
        return self._held.removeprefix(told)

    def flush(self) -> str:
        """Give what was held back: nothing comes after it."""
        held, self._held = self._held, ""
        told, self._told = self._told, ""
        return self._redact(held).removeprefix(told)


def _pattern(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, raw.hex(), raw.hex().upper(), raw.decode("latin-1")}
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        forms |= {encoded, re.sub("%..", lambda match: match[0].lower(), encoded)}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    # a secret inside a longer base64 text starts at one of three alignments; the inner
    # characters of each are the same whatever stands around it
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).decode()
        start = (0, 2, 3)[shift]
        spare = (len(raw) + shift) % 3
        inner = encoded[start : len(encoded) - (0, 3, 2)[spare]] if spare else encoded[start:]
        forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in forms if len(form) >= MIN_LENGTH}

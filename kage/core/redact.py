"""Replace known secrets in text before it reaches a sink."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6  # shorter values would blank out ordinary words


class Redactor:
    """Knows the secrets of this kage: values of env and headers, tokens, provider keys."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, name: str, value: str) -> None:
        """Register ``value`` as a secret called ``name``; short values are left alone."""
        if len(value) < MIN_LENGTH:
            return
        for form in _forms(value):
            self._names.setdefault(form, name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def __call__(self, text: str) -> str:
        """Give ``text`` with each secret, plain, base64, hex or URL-encoded, replaced."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: f"[redacted:{self._names[match[0]]}]", text)


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    forms = {value, raw.hex(), raw.hex().upper()}
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

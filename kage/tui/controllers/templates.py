"""Where in an RFC 6570 template of addresses typing has arrived, and which value is next.

The simple forms are filled in: ``{name}``, ``{+name}``, ``{#name}`` and ``{/name}``. Behind any
other expression nothing is offered; the address can be typed by hand all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_SIMPLE = re.compile(r"([+#/]?)([A-Za-z0-9_.%]+)")
_RESERVED = ":/?#[]@!$&'()*+,;="


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A value is being typed: of which argument, what of it, and what stands around it."""

    argument: str
    value: str
    before: str  # the address up to the value
    after: str  # what follows it up to the next value
    reserved: bool  # the value may hold characters that structure addresses
    last: bool  # nothing is to be filled in behind it
    known: Mapping[str, str] = field(default_factory=dict)  # arguments before it

    def filled(self, value: str) -> str:
        """Give the address with ``value`` in its place."""
        kept = _RESERVED if self.reserved else ""
        return f"{self.before}{quote(value, safe=kept)}{self.after}"


def head(template: str) -> str:
    """Give what every address of a template begins with."""
    return template.partition("{")[0]


def place(template: str, typed: str) -> Place | None:
    """Say which value of ``template`` is being typed at the end of ``typed``; None: none is."""
    parts = _EXPRESSION.split(template)  # literal, expression, literal, …
    if "{" not in template or not typed.startswith(parts[0]):
        return None
    at = len(parts[0])
    known: dict[str, str] = {}
    for number in range(1, len(parts), 2):
        simple = _SIMPLE.fullmatch(parts[number])
        if simple is None:
            return None
        operator, name, following = simple[1], simple[2], parts[number + 1]
        lead = operator if operator in ("#", "/") else ""
        if not typed.startswith(lead, at):
            return None
        at += len(lead)
        stop = typed.find(following, at) if following else -1
        if stop < 0:
            return Place(
                argument=name,
                value=unquote(typed[at:]),
                before=typed[:at],
                after=following,
                reserved=operator in ("+", "#"),
                last=number + 2 >= len(parts),
                known=known,
            )
        known[name] = unquote(typed[at:stop])
        at = stop + len(following)
    return None

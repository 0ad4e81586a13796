"""What a scanner saw: a flag for the person, which by itself never stops anything."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kage.core.sanitise import clip, visible

_QUOTED = 60  # characters of what was found


class Kind(StrEnum):
    """Whose text is looked at."""

    ARGUMENTS = "arguments"  # on the way to a tool
    DEFINITION = "definition"  # of a tool
    RESULT = "result"
    INSTRUCTIONS = "instructions"  # of a server


class Code(StrEnum):
    """What was found."""

    TAGS = "tags"
    INVISIBLE = "invisible"
    BIDI = "bidi"
    ESCAPES = "escapes"
    IMITATION = "imitation"
    ORDERS = "orders"
    BASE64 = "base64"
    SECRET = "secret"  # the shape of one
    OWN_SECRET = "own_secret"  # one kage knows
    FOREIGN = "foreign"  # text of another server


WORDS = {
    Code.TAGS: "tag characters, which spell out text nobody sees",
    Code.INVISIBLE: "invisible characters, which can hide text",
    Code.BIDI: "characters that turn the reading direction around",
    Code.ESCAPES: "escape codes for a terminal",
    Code.IMITATION: "an imitation of the marks kage or a model goes by",
    Code.ORDERS: "words that read like orders to a model",
    Code.BASE64: "a long piece of base64",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing seen; ``str`` of it is the line for the person."""

    code: Code
    words: str
    where: str = ""  # the argument, or the part of a definition
    quote: str = ""  # what was found, made safe to show; "" where showing it would leak it

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        tail = f" ({self.quote})" if self.quote else ""
        return f"{head}{self.words}{tail}"


def flag(code: Code, found: str = "", *, words: str = "") -> Flag:
    """Make a flag; ``found`` is quoted, ``words`` stand in for the usual ones."""
    return Flag(
        code=code,
        words=words or WORDS[code],
        quote=clip(visible(found[: _QUOTED * 2], single_line=True), _QUOTED),
    )

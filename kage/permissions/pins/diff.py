"""How two forms of a definition differ: words of its texts, parts of its schemas."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, Literal

from kage.core.definitions import PARTS
from kage.core.pins import Difference, Piece
from kage.core.sanitise import visible

_WORD = re.compile(r"\S+\s*|\s+")  # a word goes with the space behind it
_SETS = ("required", "enum", "type")
_CONTEXT = 60  # characters left and right of a change
_MOST_WORK = 40_000  # pairs of words compared; beyond, a text counts as replaced
_MOST_NOTES = 6
_DEEPEST = 100
_GONE = object()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Give what differs, in the order of a definition."""
    known = [part for part in (*PARTS, "instructions") if part in old or part in new]
    for exactly in (False, True):  # 1, 1.0 and true are equal in Python, not on the wire
        walk = _Walk(exactly=exactly)
        for part in known:
            walk.through(part, old.get(part, _GONE), new.get(part, _GONE), 0)
        if walk.found:
            return tuple(walk.found)
    return ()


@dataclass(frozen=True, slots=True)
class _Walk:
    exactly: bool
    found: list[Difference] = field(default_factory=list)

    def through(self, path: str, old: Any, new: Any, depth: int) -> None:
        """Add the differences of two values of JSON to what was found."""
        if not self.exactly and old == new:
            return
        if isinstance(old, str) and isinstance(new, str):
            if old != new:
                pieces = words(old, new)
                self.found.append(Difference(part=path, pieces=pieces, notes=notes(old, new)))
        elif isinstance(old, dict) and isinstance(new, dict) and depth < _DEEPEST:
            for name in dict.fromkeys((*old, *new)):
                before, after = old.get(name, _GONE), new.get(name, _GONE)
                if self.exactly or before != after:
                    self.through(f"{path}.{name}", before, after, depth + 1)
        elif not (isinstance(old, list) and isinstance(new, list)):
            self._replaced(path, _text(old), _text(new))
        elif path.rpartition(".")[2] in _SETS:
            self._replaced(path, *_members(old, new))
        elif len(old) == len(new) and depth < _DEEPEST:
            for place, (before, after) in enumerate(zip(old, new, strict=True)):
                self.through(f"{path}[{place}]", before, after, depth + 1)
        else:
            self._replaced(path, _text(old), _text(new))

    def _replaced(self, path: str, old: str, new: str) -> None:
        if old == new:
            return
        name = path.rpartition(".")[2] if not old else ""  # what is new may have an odd name
        pieces = tuple(p for p in (Piece("old", old), Piece("new", new)) if p.text)
        found = Difference(part=path, pieces=pieces, notes=notes(old, f"{name}{new}"))
        self.found.append(found)


def _members(old: Sequence[Any], new: Sequence[Any]) -> tuple[str, str]:
    """Give what went and what came between two lists whose order means nothing."""
    if all(isinstance(one, str) for one in (*old, *new)):  # nearly always, and much quicker
        gone, come = sorted({*old} - {*new}), sorted({*new} - {*old})
        if gone or come:
            return ", ".join(map(_text, gone)), ", ".join(map(_text, come))
    before, after = Counter(map(_text, old)), Counter(map(_text, new))
    gone, come = sorted((before - after).elements()), sorted((after - before).elements())
    return ", ".join(gone), ", ".join(come)


def _text(value: Any) -> str:  # any JSON
    if value is _GONE:
        return ""
    if isinstance(value, str):
        return encode_basestring(value)
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def words(old: str, new: str) -> tuple[Piece, ...]:
    """Give the words that went and came, with a little of what stands around them."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    middle = _middle(before[start : len(before) - end], after[start : len(after) - end])
    runs = [("".join(before[:start]), "", ""), *middle]
    runs.append(("".join(before[len(before) - end :]), "", ""))
    pieces: list[Piece] = []
    for same, gone, come in runs:
        head = _shared_start(gone, come)
        space = _space_behind(gone[head:], come[head:])
        tail = len(space)
        _add(pieces, "same", same + gone[:head])
        _add(pieces, "old", gone[head : len(gone) - tail])
        _add(pieces, "new", come[head : len(come) - tail])
        _add(pieces, "same", space)
    return tuple(_cut(piece, number, len(pieces)) for number, piece in enumerate(pieces))


def _shared_start(one: str, other: str) -> int:
    """Give how many characters both begin with, where only more words follow in one of them."""
    size = min(len(one), len(other))
    rest = one[size : size + 1] or other[size : size + 1]
    return size if one[:size] == other[:size] and rest.isspace() else 0


def _space_behind(one: str, other: str) -> str:
    """Give the white space both end with, which is no part of the change."""
    size = 0
    while size < min(len(one), len(other)) and one[-size - 1] == other[-size - 1]:
        if not one[-size - 1].isspace():
            break
        size += 1
    return one[len(one) - size :]


def _add(pieces: list[Piece], kind: Literal["same", "old", "new"], text: str) -> None:
    if pieces and pieces[-1].kind == kind and text:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    elif text:
        pieces.append(Piece(kind, text))


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    most = min(len(one), len(other))
    return next((place for place in range(most) if one[place] != other[place]), most)


def _middle(old: list[str], new: list[str]) -> Iterator[tuple[str, str, str]]:
    """Give runs of text: the same, then what went, then what came."""
    if not 1 < len(old) * len(new) <= _MOST_WORK:
        yield "", "".join(old), "".join(new)
        return
    from difflib import SequenceMatcher  # seldom needed, and not for the first frame

    for act, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if act == "equal":
            yield "".join(old[a:b]), "", ""
        else:
            yield "", "".join(old[a:b]), "".join(new[c:d])


def _cut(piece: Piece, number: int, count: int) -> Piece:
    """Leave of what is the same only what stands beside a change."""
    if piece.kind != "same":
        return piece
    head = _CONTEXT if number else 0
    tail = _CONTEXT if number < count - 1 else 0
    if len(piece.text) <= head + tail + 10:
        return piece
    left, right = piece.text[:head], piece.text[len(piece.text) - tail :] if tail else ""
    return Piece("same", f"{left}…{right}")


def notes(old: str, new: str) -> tuple[str, ...]:
    """Name characters that came or went and nobody sees, and letters of another script."""
    if old.isascii() and new.isascii() and old.isprintable() and new.isprintable():
        return ()
    before, after = Counter(old), Counter(new)
    found = [f"{_named(one)} inserted" for one in after - before if _hidden(one)]
    found += [f"{_named(one)} removed" for one in before - after if _hidden(one)]
    scripts = {_script(one) for one in before}
    found += [
        f"{_named(one)}: a letter of another script"
        for one in after - before
        if not one.isascii() and one.isalpha() and _script(one) not in {*scripts, "LATIN"}
    ]
    if len(found) > _MOST_NOTES:
        found = [*found[:_MOST_NOTES], f"and {len(found) - _MOST_NOTES} more such characters"]
    return tuple(found)


def _hidden(one: str) -> bool:
    if one in "\n\t ":
        return False
    return visible(one) != one or unicodedata.category(one) in ("Cf", "Mn", "Me", "Zs", "Co")


def _named(one: str) -> str:
    return f"U+{ord(one):04X} {unicodedata.name(one, '')}".rstrip()


def _script(one: str) -> str:
    return unicodedata.name(one, "").partition(" ")[0] if one.isalpha() else ""

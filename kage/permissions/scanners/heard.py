"""What servers returned in this session, to notice when it goes on to another one."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from kage.core.sanitise import clip

LEAST = 40  # characters that are no accident
# Every 7th place of a result is remembered with the 13 characters there, every 4th of a call is
# looked up: within 28 characters both fall together, so 40 that are the same cannot be missed.
_KEPT, _ASKED, _PIECE = 7, 4, 13
_SAME = 8  # places remembered of one piece: tables and rules repeat themselves
_EACH = 200_000  # characters remembered of one result
_ALL = 1_000_000  # of all results
_DISTINCT = 10  # different characters; rules and tables repeat a few
_PLACE = re.compile(r"[\w.:/\\~@%+-]*[/\\][\w.:/\\~@%+-]*")  # an address or a path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    server: str
    text: str


@dataclass(slots=True)
class Heard:
    """Remembers results by server and what the person wrote; the oldest results go first."""

    _results: deque[_Said] = field(default_factory=deque)
    _pieces: dict[str, list[tuple[_Said, int]]] = field(default_factory=dict)
    _person: deque[str] = field(default_factory=lambda: deque(maxlen=200))
    _size: int = 0

    def returned(self, server: str, text: str) -> None:
        """Remember what ``server`` gave back."""
        said = _Said(server=server, text=_flat(text[:_EACH]))
        if len(said.text) < LEAST:
            return
        self._results.append(said)
        self._size += len(said.text)
        for place in range(0, len(said.text) - _PIECE + 1, _KEPT):
            places = self._pieces.setdefault(said.text[place : place + _PIECE], [])
            if len(places) < _SAME:
                places.append((said, place))
        while self._size > _ALL:
            self._drop(self._results.popleft())

    def written(self, text: str) -> None:
        """Remember what the person wrote: it may go anywhere."""
        self._person.append(_flat(text[:_EACH]))

    def sources(self, text: str, *, apart_from: str) -> dict[str, str]:
        """Give the other servers whose words ``text`` holds, each with the first such piece."""
        if not self._pieces or len(text) < LEAST:
            return {}
        found: dict[str, str] = {}
        text = _flat(text[:_EACH])
        places = range(0, len(text) - _PIECE + 1, _ASKED)
        pieces = [text[place : place + _PIECE] for place in places]
        if self._pieces.keys().isdisjoint(pieces):  # nearly always, and many times faster
            return found
        done: dict[int, int] = {}  # up to where a result and the text were compared
        for place, piece in zip(places, pieces, strict=True):
            for said, there in self._pieces.get(piece, ()):
                known = said.server == apart_from or said.server in found
                if known or place < done.get(id(said), 0):
                    continue
                shared, done[id(said)] = _shared(text, place, said.text, there)
                if self._counts(shared):
                    found[said.server] = clip(shared, LEAST)
        return found

    def _counts(self, piece: str) -> bool:
        return (
            len(piece) >= LEAST
            and len(set(piece)) >= _DISTINCT
            and not _PLACE.fullmatch(piece.strip())
            and not any(piece[:LEAST] in words or piece in words for words in self._person)
        )

    def _drop(self, said: _Said) -> None:
        self._size -= len(said.text)
        for place in range(0, len(said.text) - _PIECE + 1, _KEPT):
            piece = said.text[place : place + _PIECE]
            left = [item for item in self._pieces.get(piece, ()) if item[0] is not said]
            if left:
                self._pieces[piece] = left
            else:
                self._pieces.pop(piece, None)


def _shared(one: str, at: int, other: str, there: int) -> tuple[str, int]:
    """Give the longest common piece around two places that agree, and where it ends in ``one``."""
    start, end = 0, _PIECE
    while at - start > 0 and there - start > 0 and one[at - start - 1] == other[there - start - 1]:
        start += 1
    while at + end < len(one) and there + end < len(other) and one[at + end] == other[there + end]:
        end += 1
    return one[at - start : at + end], at + end


def _flat(text: str) -> str:
    return " ".join(text.split())

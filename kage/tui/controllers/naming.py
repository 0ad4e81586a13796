"""What ``@`` can name, made ready once so that searching it costs next to nothing per key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.tui.controllers.completion import MOST, score
from kage.tui.controllers.templates import head
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.core.offers import Offers

MAX_FUZZY = 2_000  # names looked through letter by letter; whole pieces are found in all
_MAX_SCORED = 500  # names of those found that are put in order
_LABEL = 200  # characters of a name that are searched


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to name; ``text`` is what is written behind the ``@``."""

    text: str
    label: str
    help: str = ""  # not yet safe to show
    whole: bool = True  # nothing more is to be typed


class Names:
    """Everything that can be named, searched by what is typed."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = tuple(items)
        self._lows = tuple(f"{item.label} {item.help}"[:_LABEL].lower() for item in self._items)
        self._last: tuple[str, range | list[int]] = ("", range(len(self._items)))

    @classmethod
    def of(cls, offers: Iterable[Offers], files: Iterable[str]) -> Names:
        """Collect files first, then what servers offer."""
        items = [Item(path, path, "", not path.endswith("/")) for path in files]
        for held in offers:
            items += [
                Item(f"{held.server}:{each.uri}", f"{held.server}:{each.uri}", _about(each))
                for each in held.resources
            ]
            items += [
                Item(
                    f"{held.server}:{head(each.template)}",
                    f"{held.server}:{each.template}",
                    _about(each),
                    whole=False,
                )
                for each in held.templates
            ]
        return cls(items)

    def __len__(self) -> int:
        return len(self._items)

    def search(self, typed: str) -> tuple[Item, ...]:
        """Give what fits best, at most as many as a list shows."""
        pattern = typed.lower()
        before, among = self._last
        if not before or not pattern.startswith(before):
            among = range(len(self._items))
        if not pattern:
            return self._items[:MOST]
        lows = self._lows
        hits = [index for index in among if pattern in lows[index]]
        self._last = (pattern, hits)
        if len(hits) < MOST:
            self._last = ("", range(len(self._items)))  # letters apart may lie elsewhere
            found = set(hits)
            loose = [index for index in range(min(len(lows), MAX_FUZZY)) if index not in found]
            hits += [index for index in loose if score(pattern, lows[index]) is not None]
        if len(hits) > _MAX_SCORED:
            hits = [index for index in hits if lows[index].startswith(pattern)] + hits
        first = dict.fromkeys(hits[:_MAX_SCORED])
        ranked = sorted(first, key=lambda index: -(self._points(pattern, index)))
        return tuple(self._items[index] for index in ranked[:MOST])

    def _points(self, pattern: str, index: int) -> float:
        item = self._items[index]
        best = score(pattern, item.label[:_LABEL])
        name = score(pattern, item.label.rpartition("/")[2][:_LABEL])
        return max(best if best is not None else -1e9, name - 1 if name is not None else -1e9)


def _about(each: object) -> str:
    """Give the words beside a name: its title, what it is, how much."""
    title = getattr(each, "title", "") or getattr(each, "name", "")
    return f"{title} · {about}" if (about := getattr(each, "description", "")) else str(title)


def words(item: Item) -> str:
    """Give the words beside an item, safe to show."""
    return shown(item.help, 120)

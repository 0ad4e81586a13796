"""Row counts of a growing list, with the sum before any place and the place of any row.

A Fenwick tree: every operation costs the logarithm of the length.
"""

from __future__ import annotations

from collections.abc import Iterable


class Heights:
    """Heights of items in rows; an item may be 0 rows high."""

    __slots__ = ("_tree", "_values")

    def __init__(self, values: Iterable[int] = ()) -> None:
        self._values = list(values)
        self._tree = [0, *self._values]  # 1-based
        for index in range(1, len(self._tree)):
            parent = index + (index & -index)
            if parent < len(self._tree):
                self._tree[parent] += self._tree[index]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> int:
        return self._values[index]

    @property
    def total(self) -> int:
        """The sum of all heights."""
        return self.before(len(self._values))

    def before(self, index: int) -> int:
        """Sum the heights of the items in front of ``index``."""
        total = 0
        while index > 0:
            total += self._tree[index]
            index &= index - 1
        return total

    def set(self, index: int, value: int) -> None:
        """Give the item at ``index`` another height."""
        change = value - self._values[index]
        if not change:
            return
        self._values[index] = value
        index += 1
        while index < len(self._tree):
            self._tree[index] += change
            index += index & -index

    def append(self, value: int) -> None:
        """Add an item at the end."""
        self._values.append(value)
        place = len(self._values)
        total, below = value, place - 1
        stop = place & (place - 1)
        while below > stop:
            total += self._tree[below]
            below &= below - 1
        self._tree.append(total)

    def pop(self) -> int:
        """Remove the last item and give its height."""
        self._tree.pop()
        return self._values.pop()

    def find(self, row: int) -> tuple[int, int]:
        """Give (index, row inside it) of the item that covers ``row``, counted from 0.

        A row past the end gives (length, rows past it); items without height cover no row.
        """
        index, step = 0, 1 << len(self._values).bit_length()
        while step:
            ahead = index + step
            if ahead < len(self._tree) and self._tree[ahead] <= row:
                index = ahead
                row -= self._tree[ahead]
            step >>= 1
        return index, row

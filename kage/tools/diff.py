"""Show what a change of a file changes, as a unified diff with bounds on work and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

MAX_LINES = 400  # of one diff
MAX_COLUMNS = 400  # of one line
MAX_REGION = 2 << 20  # characters of a changed region that is looked at
MAX_WORK = 400_000  # pairs of equal lines the matcher may look at; about 0.1 s
_CONTEXT = 3

_Block = tuple[str, int, int, int, int]  # tag, old start and end, new start and end


def unified(old: str, new: str, *, name: str) -> str:
    """Give the unified diff from ``old`` to ``new``, "" when they are equal.

    Where the changed region is too large to match line by line it is shown as one block taken
    out and one put in. The diff ends with a note when lines of it were left out.
    """
    if old == new:
        return ""
    out = [f"--- {name if old else '/dev/null'}", f"+++ {name if new else '/dev/null'}"]
    before, after, above, whole = _focus(old, new)
    for line in _hunks(_lines(before), _lines(after), above):
        if len(out) >= MAX_LINES:
            whole = False
            break
        out.append(line if len(line) <= MAX_COLUMNS else f"{line[: MAX_COLUMNS - 1]}…")
    if not whole:
        out.append("\\ The diff goes on; the rest is left out")
    return "\n".join(out) + "\n"


def counts(old: str, new: str) -> tuple[int, int]:
    """Give how many lines were added and removed, by the same matching the diff uses.

    In a changed region that is too large to match all lines count.
    """
    before, after, _, whole = _focus(old, new)
    if not whole:
        return _count(new), _count(old)
    added = removed = 0
    for tag, a, b, c, d in _blocks(_lines(before), _lines(after)):
        if tag != "equal":
            removed += b - a
            added += d - c
    return added, removed


def _focus(old: str, new: str) -> tuple[str, str, int, bool]:
    """Cut both texts to the region that changed and some lines around it.

    Gives the two parts, how many lines are above them, and whether the region is whole. Large
    files with a small change cost no more than comparing their bytes.
    """
    head = _same(len(old), len(new), lambda low, high: old[low:high] == new[low:high])
    start = _back(old, head, _CONTEXT + 1)
    rest = len(old) - start, len(new) - start
    tail = _same(*rest, lambda low, high: _end(old, low, high) == _end(new, low, high))
    end = _ahead(old, len(old) - tail, _CONTEXT + 1)
    before, after = old[start:end], new[start : len(new) - (len(old) - end)]
    whole = max(len(before), len(after)) <= MAX_REGION
    if not whole:
        before, after = _first_lines(before), _first_lines(after)
    return before, after, old.count("\n", 0, start), whole


def _same(first: int, second: int, test: Callable[[int, int], bool]) -> int:
    """Find how much is the same by halving; ``test`` compares from what is known on."""
    low, high = 0, min(first, second)
    while low < high:
        middle = (low + high + 1) // 2
        if test(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _end(text: str, low: int, high: int) -> str:
    """Give the characters from ``high`` to ``low`` counted from the end."""
    return text[len(text) - high : len(text) - low]


def _back(text: str, at: int, lines: int) -> int:
    """Give where the line ``lines`` before the one at ``at`` starts."""
    for _ in range(lines):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _ahead(text: str, at: int, lines: int) -> int:
    """Give where the line ``lines`` after the one at ``at`` ends."""
    for _ in range(lines):
        found = text.find("\n", at)
        if found < 0:
            return len(text)
        at = found + 1
    return at


def _first_lines(text: str) -> str:
    end = 0
    for _ in range(MAX_LINES):
        found = text.find("\n", end, MAX_REGION)
        if found < 0:
            break
        end = found + 1
    return text[: end or MAX_REGION]


def _lines(text: str) -> list[str]:
    """Split at line feeds only; a missing last one stays visible as git shows it."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[_Block]:
    """Give equal and changed blocks; the common start and end are found first, in linear time."""
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    blocks: list[_Block] = [("equal", 0, head, 0, head)] if head else []
    blocks += _middle(before[head : len(before) - tail], after[head : len(after) - tail], head)
    if tail:
        ends = len(before), len(after)
        blocks.append(("equal", ends[0] - tail, ends[0], ends[1] - tail, ends[1]))
    return blocks


def _middle(before: Sequence[str], after: Sequence[str], at: int) -> list[_Block]:
    if not before and not after:
        return []
    weights = Counter(after) if before and after else Counter()
    if not weights or sum(weights[line] for line in before) > MAX_WORK:
        return [("replace", at, at + len(before), at, at + len(after))]
    from difflib import SequenceMatcher  # with the first edit, not with the first frame

    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(tag, a + at, b + at, c + at, d + at) for tag, a, b, c, d in codes]


def _hunks(before: Sequence[str], after: Sequence[str], above: int) -> Iterator[str]:
    """Give the lines of all hunks; ``above`` lines stand before both texts."""
    blocks = _blocks(before, after)
    group: list[_Block] = []
    for index, block in enumerate(blocks):
        tag, a, b, c, d = block
        reach = min(_CONTEXT, b - a)
        if tag != "equal":
            group.append(block)
        elif not group or index == len(blocks) - 1 or b - a > 2 * _CONTEXT:
            if group:
                yield from _hunk([*group, (tag, a, a + reach, c, c + reach)], before, after, above)
            group = [(tag, b - reach, b, d - reach, d)]
        else:
            group.append(block)
    if any(tag != "equal" for tag, *_ in group):
        yield from _hunk(group, before, after, above)


def _hunk(
    group: Sequence[_Block], before: Sequence[str], after: Sequence[str], above: int
) -> Iterator[str]:
    first, last = group[0], group[-1]
    old, new = _span(first[1], last[2], above), _span(first[3], last[4], above)
    yield f"@@ -{old} +{new} @@"
    for tag, a, b, c, d in group:
        if tag == "equal":
            yield from _marked(" ", before, a, b)
        else:
            yield from _marked("-", before, a, b)
            yield from _marked("+", after, c, d)


def _span(start: int, end: int, above: int) -> str:
    length = end - start
    first = start + above + (1 if length else 0)
    return f"{first},{length}" if length != 1 else f"{first}"


def _marked(mark: str, lines: Sequence[str], start: int, end: int) -> Iterator[str]:
    for index in range(start, end):
        yield from f"{mark}{lines[index]}".split("\n")

"""The table of a benchmark: one figure per row, beside what it is compared with and its goal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class Row(Protocol):
    """What a row of the table needs; every area's figures have these."""

    name: str
    value: float
    unit: str
    baseline: str
    ratio: float | None
    goal: str
    ok: bool


@dataclass(slots=True, kw_only=True)
class Figure:
    """One measured value; without a goal it only informs."""

    name: str
    value: float
    unit: str
    baseline: str = ""  # what it is compared with, measured in the same run
    ratio: float | None = None
    goal: str = ""
    ok: bool = True


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    base: tuple[str, float] | None = None,
    most: float | None = None,
    least: float | None = None,
    times: float | None = None,
    plus: float = 0.0,
) -> Figure:
    """Make a row.

    Args:
        name: What was measured.
        value: The median.
        unit: Of the value, of ``base``, and of the goal.
        base: What it is compared with, and its value.
        most: The goal, as the largest value.
        least: The goal, as the smallest value.
        times: The goal, as a multiple of ``base``.
        plus: Added to ``times`` multiples of ``base``.
    """
    ratio = value / base[1] if base and base[1] else None
    goals: list[tuple[str, bool]] = []
    if most is not None:
        goals.append((f"≤ {most:g} {unit}", value <= most))
    if least is not None:
        goals.append((f"≥ {least:g} {unit}", value >= least))
    if times is not None and base is not None:
        extra = f" + {plus:g}" if plus else ""
        goals.append((f"≤ {times:g} ×{extra}", value <= times * base[1] + plus))
    return Figure(
        name=name,
        value=value,
        unit=unit,
        baseline=f"{base[0]} {number(base[1])}" if base else "",
        ratio=ratio,
        goal=", ".join(text for text, _ in goals),
        ok=all(met for _, met in goals),
    )


def number(value: float) -> str:
    """Write a value with three digits that count."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


_HEADS = ("figure", "value", "beside", "ratio", "goal", "ok")


def cells(row: Row) -> tuple[str, ...]:
    """Give what stands in each column."""
    return (
        row.name,
        f"{number(row.value)} {row.unit}".strip(),
        row.baseline,
        "" if row.ratio is None else f"{row.ratio:.2f}",
        row.goal,
        "" if not row.goal else "ok" if row.ok else "NO",
    )


def text(title: str, rows: Iterable[Row]) -> str:
    """Write the table for a terminal."""
    lines = [_HEADS, *(cells(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEADS))]
    out = [title]
    for line in lines:
        padded = (
            cell.rjust(width) if at in (1, 3) else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        out.append("  " + "  ".join(padded).rstrip())
    return "\n".join(out)


def markdown(rows: Iterable[Row]) -> str:
    """Write the table for ``docs/performance.md``."""
    lines = [_HEADS, ("---", "---:", "---", "---:", "---", "---"), *(cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

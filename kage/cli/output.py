"""How verbs print: tables and JSON to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from kage.config.durations import BadDuration, parse_duration
from kage.core.errors import ConfigError, KageError
from kage.core.sanitise import visible


def duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Take a duration as the settings do, like "30s" or 90, but not 0; gives seconds."""
    if value is None:
        return None
    try:
        seconds = parse_duration(value)
    except BadDuration as error:
        raise click.BadParameter(f"{value!r} {error}; write 30s, 5m or seconds") from error
    if not seconds:
        raise click.BadParameter("0 is no limit")
    return seconds


def complain(error: KageError) -> None:
    """Tell an error on stderr: each mistake of a configuration on its own line."""
    if isinstance(error, ConfigError):
        for fault in error.faults:
            print(visible(str(fault)), file=sys.stderr)
        return
    print(f"kage: {visible(str(error))}", file=sys.stderr)


def examples(*lines: str) -> str:
    """Put examples under the help of a command, each line as it is."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def as_json(value: Any) -> None:  # any JSON value
    """Print ``value`` as indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under ``head``, columns aligned, text made safe for the terminal."""
    lines = [tuple(head), *(tuple(visible(cell, single_line=True) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(cells).rstrip())

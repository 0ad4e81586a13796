"""Print the tables: ``python -m tests.bench [--markdown] [AREA ...]``; none can fail on time."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench import table

AREAS = {
    "startup": "Start",
    "printing": "Print mode",
    "serving": "kage mcp serve",
    "searching": "Reading and searching, through kage mcp serve",
    "idle": "Rest",
    "manytools": "Many tools",
    "leftovers": "Processes left behind",
    "living": "Many servers at once",
    "calls": "Calls",
    "floods": "Floods",
    "transcript": "Transcript",
    "gating": "The gate, with scanners and redaction",
    "undoing": "Looking at a workspace around calls",
    "pinning": "Comparing definitions of tools",
}


def rows(area: str) -> Iterable[table.Row]:
    """Take the figures of one area."""
    module = importlib.import_module(f"tests.bench.{area}")
    say = (lambda name: print(f"… {name}", file=sys.stderr),) if area == "transcript" else ()
    found: Iterable[table.Row] = module.measure(*say)  # it takes long, and says where it is
    return found


def main() -> None:
    """Take the areas named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("area", nargs="*", choices=[*AREAS, []], metavar="AREA",
                        help=f"one of {', '.join(AREAS)} (default: all)")  # fmt: skip
    parser.add_argument("--markdown", action="store_true", help="as docs/performance.md has it")
    asked = parser.parse_args()
    os.chdir(Path(__file__).resolve().parent.parent.parent)
    cores, load = os.cpu_count(), os.getloadavg()[0]
    print(f"{time.strftime('%Y-%m-%d')}, {cores} cores, load {load:.1f} at the start, "
          f"Python {sys.version.split()[0]}\n", flush=True)  # fmt: skip
    for area in asked.area or AREAS:
        found = list(rows(area))
        if asked.markdown:
            print(f"### {AREAS[area]}\n\n{table.markdown(found)}\n", flush=True)
        else:
            print(f"{table.text(AREAS[area], found)}\n", flush=True)


if __name__ == "__main__":
    main()

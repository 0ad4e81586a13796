"""What of the suite is known not to pass, and why; what is not run at all."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One scenario of one leg of the suite."""

    leg: str  # the suite's version and the revision, "latest" or "alpha 2025-11-25"
    side: str  # "client" or "server": what is tested
    scenario: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One table of the file: some checks of some scenarios, for one reason."""

    legs: tuple[str, ...]  # globs, as are the scenarios
    side: str
    scenarios: tuple[str, ...]
    checks: tuple[str, ...]  # ids; of a scenario that is not run: ()
    reason: str

    def covers(self, case: Case) -> bool:
        """Say whether it is about this scenario."""
        return (
            self.side == case.side
            and any(fnmatchcase(case.leg, leg) for leg in self.legs)
            and any(fnmatchcase(case.scenario, name) for name in self.scenarios)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The whole file."""

    fails: tuple[Line, ...]
    skips: tuple[Line, ...]

    def skipped(self, case: Case) -> str:
        """Say why a scenario is not run, "" when it is."""
        return next((line.reason for line in self.skips if line.covers(case)), "")

    def judge(self, case: Case, failed: Iterable[str]) -> tuple[list[str], list[str]]:
        """Give the checks that failed unexpectedly, and those that passed unexpectedly."""
        known = {check for line in self.fails if line.covers(case) for check in line.checks}
        found = set(failed)
        return sorted(found - known), sorted(known - found)


def load(path: Path = FILE) -> Expected:
    """Read the file.

    Raises:
        ValueError: a table is not whole.
    """
    data = tomllib.loads(path.read_text("utf-8"))
    return Expected(
        fails=tuple(_line(entry, "checks") for entry in data.get("fails", ())),
        skips=tuple(_line(entry) for entry in data.get("skips", ())),
    )


def _line(entry: Mapping[str, Any], *more: str) -> Line:
    keys = {"legs", "side", "scenarios", "reason", *more}
    if entry.keys() != keys or not entry["reason"]:
        raise ValueError(f"an entry has {sorted(entry)}, it needs {sorted(keys)}")
    return Line(
        legs=tuple(entry["legs"]),
        side=entry["side"],
        scenarios=tuple(entry["scenarios"]),
        checks=tuple(entry.get("checks", ())),
        reason=entry["reason"],
    )

"""From the servers that were wanted to those wanted now: one list of steps, decided here only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kage.config.schema import ServerSpec


class Act(StrEnum):
    """What to do with one server."""

    START = "start"
    STOP = "stop"
    RESTART = "restart"
    DISABLE = "disable"
    ADJUST = "adjust"  # the same process goes on, with other settings
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change; ``spec`` is the new entry, for STOP the old one."""

    act: Act
    spec: ServerSpec


# What a live connection can take over. Everything else, and every setting that is new, costs a
# restart: a server that runs other than its entry says is worse than one that is restarted.
ADJUSTABLE = frozenset(
    {
        "place",
        "required",
        "start",
        "idle_timeout",
        "timeout",
        "tool_timeout",
        "tool_timeouts",
        "tool_max_time",
        "health_interval",
        "max_parallel_calls",
        "max_output_tokens",
        "max_tools",
        "output",
        "enabled_tools",
        "disabled_tools",
        "safety_level",
        "restart",
        "pin",
        "instructions",
        "sampling_max_tokens",
        "sampling_requests",
        "sampling_budget",
        "roots",
        "log_level",
        "locked",
    }
)


def reconcile(old: Iterable[ServerSpec], new: Iterable[ServerSpec]) -> tuple[Step, ...]:
    """Give the steps that lead from ``old`` to ``new``: stops first, then in the new order."""
    before = {spec.name: spec for spec in old}
    after = {spec.name: spec for spec in new}
    stops = [Step(act=Act.STOP, spec=spec) for name, spec in before.items() if name not in after]
    return (
        *stops,
        *(Step(act=_act(before.get(name), spec), spec=spec) for name, spec in after.items()),
    )


def _act(old: ServerSpec | None, new: ServerSpec) -> Act:
    if new.disabled:
        return Act.KEEP if old is not None and old.disabled else Act.DISABLE
    if old is None or old.disabled:
        return Act.START
    # where an entry stands in its file says nothing about what it starts
    if replace(old, place=None) == replace(new, place=None):
        return Act.KEEP
    if (old.roots is None) != (new.roots is None):  # declared when the connection is made
        return Act.RESTART
    fixed = {name: getattr(old, name) for name in ADJUSTABLE if hasattr(old, name)}
    return Act.ADJUST if replace(new, **fixed) == old else Act.RESTART

"""What comparing definitions costs: a server of 500 tools, unchanged, changed, and renamed."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.pins import Offered, Verdict
from kage.mcp.client.calling.definitions import judge
from kage.mcp.client.servers.judging import offered_by
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.pins.book import PinBook
from tests.bench.table import Figure, figure

TOOLS = 500
DIFF = 0.1  # seconds
WORDS = "Searches the records of one tenant by words, dates and owners, newest first. " * 5


def tool(number: int) -> dict[str, Any]:
    """Make one of many tools: a real description, ten arguments."""
    properties = {
        f"field_{number}_{place}": {"type": "string", "description": f"What {place} is about."}
        for place in range(9)
    }
    kinds = {"type": "string", "enum": ["open", "closed", "all"]}
    schema = {"type": "object", "properties": {**properties, "state": kinds}, "required": ["state"]}
    return {"name": f"tool_{number}", "description": f"{number}. {WORDS}", "inputSchema": schema}


def offered(change: Callable[[dict[str, Any]], object] = lambda tool: None) -> Offered:
    """Give the list after ``change`` of every tool."""
    tools = [copy.deepcopy(tool(number)) for number in range(TOOLS)]
    for one in tools:
        change(one)
    return offered_by(ServerSpec(name="many"), judge(tools), "Be kind.")


def worded(one: dict[str, Any]) -> None:
    """Change a word in the middle of the description, and widen an enum."""
    one["description"] = one["description"].replace("owners", "secrets", 1)
    one["inputSchema"]["properties"]["state"]["enum"].append("deleted")


def rewritten(one: dict[str, Any]) -> None:
    """Change every other word."""
    words = one["description"].split()
    one["description"] = " ".join(
        f"{word}x" if place % 2 else word for place, word in enumerate(words)
    )


def renamed(one: dict[str, Any]) -> None:
    """Give it another name and another description."""
    one["name"] = f"new_{one['name']}"
    one["description"] = "Does something else altogether."


def measure() -> Iterable[Figure]:
    """Take the review of each list, in a kage that starts: log and file are read."""
    with tempfile.TemporaryDirectory() as home:

        def book(*, records: bool = False) -> PinBook:
            log = DecisionLog(Path(home) / "decisions")
            return PinBook(Path(home) / "pins", log=log, records=records)

        def review(now: Offered) -> tuple[float, Verdict]:
            times = []
            for _ in range(5):
                fresh = book()
                began = time.perf_counter()
                verdict = fresh.review(now)
                times.append(time.perf_counter() - began)
            return min(times), verdict

        began = time.perf_counter()
        book(records=True).review(offered())
        first = time.perf_counter() - began
        same, verdict = review(offered())
        assert not verdict.held
        base = (f"{TOOLS} tools, unchanged", same)
        yield figure(f"{TOOLS} tools, first use, written down", first, "s", base=base)
        yield figure(f"{TOOLS} tools, unchanged", same, "s", most=DIFF)
        for name, change in (
            ("a word and an enum of each changed", worded),
            ("every other word of each changed", rewritten),
            ("each renamed and described anew", renamed),
        ):
            spent, verdict = review(offered(change))
            assert len(verdict.held) == TOOLS
            goal = {"most": DIFF} if change is worded else {}
            yield figure(f"{TOOLS} tools, {name}", spent, "s", base=base, **goal)

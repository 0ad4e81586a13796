"""How a call ends when its server is lost around it: told honestly, and sent at most once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kage.core.messages import Outcome
from kage.mcp.client.wire.exchange import Exchange
from kage.mcp.client.wire.tap import Tap
from tests.mcp.client.harness import bench, run, spec, text
from tests.waiting import until

UNKNOWN, NEVER = Outcome.UNKNOWN, Outcome.NEVER_SENT
CHECK = "Find out with a tool that only reads"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("how", "outcome", "counted"),
    [
        ("read", UNKNOWN, 1),
        ("half", UNKNOWN, 1),
        ("answered", Outcome.OK, 1),
        ("closed_out", UNKNOWN, 1),
        ("closed_in", NEVER, 0),
        ("unread", UNKNOWN, 0),  # it stood in the pipe: kage cannot know that nobody read it
    ],
)
def test_a_lost_server_leaves_one_honest_outcome_and_no_second_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    outcome: Outcome,
    counted: int,
    revision: str,
) -> None:
    count, go = tmp_path / "count", tmp_path / "go"
    written: list[object] = []
    write = Tap._write

    async def noted(self: Tap, item: Any, exchange: Exchange | None = None) -> None:
        await write(self, item, exchange)
        written.append(getattr(item.message, "method", ""))

    monkeypatch.setattr(Tap, "_write", noted)

    async def main() -> None:
        async with bench(tmp_path) as b:
            options = ("--how", how, "--count", count, "--go", go, "--revisions", revision)
            await b.up(spec("lossy", *options))
            if how == "closed_in":
                await until(go.exists, what="it reads no more")
            task = asyncio.create_task(b.call("lossy__lose"))
            if how == "unread":
                await until(lambda: "tools/call" in written, what="the call is in the pipe")
                go.touch()
            result = await task
            assert result.outcome is outcome, text(result)
            assert (CHECK in text(result)) == (outcome is UNKNOWN)
            if how == "closed_in":
                go.unlink()
            else:  # nothing is sent again once it is back
                await until(lambda: b.states("lossy").count("connecting") > 1)

    run(main)
    assert (len(count.read_bytes()) if count.exists() else 0) == counted

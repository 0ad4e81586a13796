"""What was approved is what reaches a server, once: real servers, real decisions, raw messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kage.core.canonical import canonical, digest
from kage.core.messages import Outcome
from kage.mcp.client.wire.tap import Tap
from kage.permissions.seal import SealBook
from tests.mcp.client.harness import Bench, bench, recorded, run, spec
from tests.mcp.client.test_http import web
from tests.permissions.test_seal import anything, words
from tests.stubs.http_server import HttpStub, serving
from tests.waiting import until

MODERN, LEGACY = "2026-07-28", "2025-11-25"
WAYS = [(transport, era) for transport in ("stdio", "http") for era in (LEGACY, MODERN)]
VALUES, IN_ONE = 1_250, 25  # of each of the eight ways in all, and of one call


@dataclass
class Wire:
    """One connected server, the decisions about it, and what it read."""

    bench: Bench
    book: SealBook
    log: Path
    stub: HttpStub | None

    def approve(self, arguments: Mapping[str, Any], tool: str = "echo") -> str:
        made = self.bench.tools[f"s__{tool}"].spec.server
        assert made is not None
        name = f"d{random.random()}"
        self.book.open(made.connection, made.original, digest(arguments), name)
        return name

    def read(self, tool: str = "echo") -> list[bytes]:
        """Give the canonical arguments of each call that came, in order."""
        if self.stub is not None:
            messages = [call["message"] for call in self.stub.seen("tools/call")]
        else:
            messages = recorded(self.log, "tools/call")
        params = [message["params"] for message in messages]
        return [canonical(item["arguments"]) for item in params if item["name"] == tool]


@asynccontextmanager
async def wired(folder: Path, transport: str, era: str) -> AsyncIterator[Wire]:
    book, log, stub = SealBook(), folder / "read.jsonl", None
    with ExitStack() as stack:
        if transport == "http":
            stub = stack.enter_context(serving("--revisions", era))
            entry = web(stub.url, "s")
        else:
            entry = spec("s", "--revisions", era, "--record", log, of="echo")
        async with bench(folder, seals=book) as b:  # type: ignore[arg-type]  # it binds
            await b.up(entry)
            yield Wire(b, book, log, stub)


def random_calls(seed: int) -> Iterator[dict[str, Any]]:
    dice = random.Random(seed)
    for _ in range(VALUES // IN_ONE):
        yield {f"{words(dice)}{n}": anything(dice, 3) for n in range(IN_ONE)}


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "sdk"])
@pytest.mark.parametrize(("transport", "era"), WAYS)
def test_random_arguments_arrive_as_approved_once_and_edited_ones_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, era: str, direct: bool
) -> None:
    if not direct:
        monkeypatch.setattr(Tap, "direct", property(lambda self: None))

    async def main() -> None:
        async with wired(tmp_path, transport, era) as wire:
            shown = []
            for arguments in random_calls(20_260_728 + direct):
                shown.append(canonical(arguments))
                decision = wire.approve(arguments)
                edited = {**arguments, "edited": True}  # as a hook would, after the answer
                assert (await wire.bench.call("s__echo", edited)).outcome is Outcome.REFUSED
                result = await wire.bench.call("s__echo", arguments)
                assert result.outcome is Outcome.OK, result
                assert not wire.book.close(decision)
            again = await wire.bench.call("s__echo", arguments)  # nobody decided about it
            assert again.outcome is Outcome.REFUSED
            assert wire.read() == shown

    run(main)


@pytest.mark.parametrize(("transport", "era"), WAYS)
def test_each_decision_lets_one_call_through_whatever_happens(
    tmp_path: Path, transport: str, era: str
) -> None:
    async def main() -> None:
        async with wired(tmp_path, transport, era) as wire:
            b, same = wire.bench, {"text": "same"}
            wire.approve(same)
            wire.approve(same)
            ended = await asyncio.gather(*(b.call("s__echo", dict(same)) for _ in range(5)))
            outcomes = sorted(result.outcome.value for result in ended)
            assert outcomes == ["ok", "ok", "refused", "refused", "refused"]
            assert wire.read() == [canonical(same)] * 2

            nap, slow = {"seconds": 60}, "sleep" if transport == "stdio" else "slow"
            wire.approve(nap, slow)
            task = asyncio.create_task(b.call(f"s__{slow}", nap))
            await until(lambda: wire.read(slow), what="the call arrived")
            task.cancel()
            await asyncio.wait([task])
            assert (await b.call(f"s__{slow}", nap)).outcome is Outcome.REFUSED  # no retry either
            assert len(wire.read(slow)) == 1

            before = b.tools["s__echo"]
            wire.approve(same)
            await b.manager.restart("s")
            await b.apply()
            assert b.tools["s__echo"] is not before
            assert (
                await b.call("s__echo", same)
            ).outcome is Outcome.REFUSED  # that was another one
            assert len(wire.read()) == 2

    run(main)


@pytest.mark.parametrize(("transport", "era"), WAYS)
def test_arguments_edited_while_they_wait_to_be_written_are_not_sent_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str, era: str
) -> None:
    async def main() -> None:
        async with wired(tmp_path, transport, era) as wire:
            arguments: dict[str, Any] = {"text": "a", "deep": {"list": [1]}}
            shown = canonical(arguments)
            wire.approve(arguments)
            write = Tap._write

            async def edit_first(self: Tap, *told: Any) -> None:
                arguments["text"] = "b"
                arguments["deep"]["list"].append(2)
                await write(self, *told)

            monkeypatch.setattr(Tap, "_write", edit_first)
            await wire.bench.call("s__echo", arguments)
            assert wire.read() == [shown]

    run(main)

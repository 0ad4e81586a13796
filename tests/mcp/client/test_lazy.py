"""Lazy servers: known without a process, woken by a call, asleep again when nobody needs them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from kage.config.schema import RestartSpec, ServerSpec
from kage.core.events import ServerChanged
from kage.core.messages import Outcome
from kage.core.servers import Fault, ServerState, Stage
from tests.mcp.client.harness import (
    Seals,
    TestClock,
    bench,
    recorded,
    run,
    spec,
    text,
)
from tests.waiting import until

CONNECTED, FAILED, IDLE = ServerState.CONNECTED, ServerState.FAILED, ServerState.IDLE


def lazy(name: str, *options: object, **more: Any) -> ServerSpec:
    more.setdefault("idle_timeout", 300.0)
    return spec(name, *options, start="lazy", **more)


def children() -> list[psutil.Process]:
    """Servers only: the watchdog is no server."""
    every = psutil.Process().children(recursive=True)
    return [child for child in every if "/stubs/" in " ".join(child.cmdline())]


async def learn(folder: Path, *specs: ServerSpec) -> None:
    """Be the kage that met the servers first."""
    async with bench(folder, manifests=folder / "manifests") as b:
        await b.up(*specs)


def test_a_server_met_before_is_known_without_a_process_and_the_first_call_starts_it(
    tmp_path: Path,
) -> None:
    counter = tmp_path / "starts"

    async def main() -> None:
        entry = lazy(
            "restart_breaks", "--counter", counter, "--works", "9", "--instructions", "Be kind."
        )
        await learn(tmp_path, entry)
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(entry)
            assert children() == []
            assert b.states("restart_breaks") == ["idle"]
            status = b.status("restart_breaks")
            assert (status.tools, status.pid, status.fault) == (1, None, None)
            assert status.version == "restart_breaks 1.0"
            assert status.tokens > 0
            assert b.manager.instructions() == (("restart_breaks", "Be kind."),)
            assert b.manager.offers("restart_breaks")["capabilities"]["tools"]
            before = b.tools["restart_breaks__echo"].spec.server
            results = await asyncio.gather(
                *(b.call("restart_breaks__echo", {"text": str(n)}) for n in range(5))
            )
            assert [text(result) for result in results] == list("01234")
            assert b.states("restart_breaks") == ["idle", "connecting", "connected"]
            assert counter.read_text() == "xx"  # five calls at once share one start
            # what the decision was bound to is what the tap of the new process asked about
            assert before is not None
            assert {asked[0] for asked in b.seals.asked} == {before.connection}
            assert await b.apply() == []

    run(main)


def test_a_call_nobody_approved_is_not_let_through_by_a_server_that_just_woke(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        await learn(tmp_path, lazy("echo", "--record", record))
        seals = Seals(willing=False)
        async with bench(tmp_path, manifests=tmp_path / "manifests", seals=seals) as b:
            await b.up(lazy("echo", "--record", record))
            assert (await b.call("echo__echo", {"text": "no"})).outcome is Outcome.REFUSED

    run(main)
    assert recorded(record, "tools/call") == []


def test_a_server_never_met_starts_once_to_be_known_and_sleeps_when_nobody_needs_it(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        clock = TestClock()
        async with bench(tmp_path, manifests=tmp_path / "manifests", clock=clock) as b:
            await b.up(lazy("echo", health_interval=0))
            assert b.status("echo").state is CONNECTED
            first = b.status("echo").pid
            assert first is not None
            running = asyncio.create_task(b.call("echo__sleep", {"seconds": 0.5}))
            await asyncio.sleep(0.1)
            clock.advance(1000)  # not during a call, however long it takes
            assert text(await running) == "slept"
            await asyncio.sleep(0.1)
            assert b.status("echo").state is CONNECTED
            clock.advance(299)
            await asyncio.sleep(0.1)
            assert b.status("echo").state is CONNECTED
            clock.advance(1.5)
            await b.state("echo", IDLE)
            await until(lambda: not psutil.pid_exists(first))
            assert b.status("echo").tools > 5
            assert text(await b.call("echo__echo", {"text": "again"})) == "again"
            assert b.status("echo").pid not in (None, first)
            await until(lambda: clock.waiting == [300.0], what="one timer, and no polling")

    run(main)


def test_a_server_that_is_held_does_not_fall_asleep(tmp_path: Path) -> None:
    async def main() -> None:
        clock = TestClock()
        async with bench(tmp_path, clock=clock) as b:
            await b.up(lazy("echo", health_interval=0))
            rest = b.manager._fleet.get("echo").rest
            rest.hold("resource")
            clock.advance(1000)
            await asyncio.sleep(0.1)
            assert b.status("echo").state is CONNECTED
            rest.release("resource")
            await until(lambda: clock.waiting)
            clock.advance(301)
            await b.state("echo", IDLE)

    run(main)


def test_an_eager_server_with_an_idle_time_sleeps_and_wakes_too(tmp_path: Path) -> None:
    async def main() -> None:
        clock = TestClock()
        async with bench(tmp_path, clock=clock) as b:
            await b.up(spec("echo", idle_timeout=60.0, health_interval=0))
            assert b.states("echo") == ["connecting", "connected"]
            clock.advance(61)
            await b.state("echo", IDLE)
            assert text(await b.call("echo__echo", {"text": "up"})) == "up"

    run(main)


def test_a_definition_that_changed_while_it_slept_is_not_called(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        entry = lazy("changer", "--record", record)
        await learn(tmp_path, entry)
        [file] = (tmp_path / "manifests").iterdir()
        known = json.loads(file.read_text())
        known["tools"][0]["description"] = "victim, as it was"  # what the person approves
        file.write_text(json.dumps(known))
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(entry)
            refused, other = await asyncio.gather(
                b.call("changer__victim"), b.call("changer__mutate", {"how": "add", "quiet": 1})
            )
            assert refused.outcome is Outcome.REFUSED
            assert "definition changed since it was approved" in text(refused)
            assert text(other) == "changed add"  # its own definition is as it was
            assert await b.apply() == ["changer"]
            assert b.tools["changer__victim"].spec.description.endswith("victim")
            assert text(await b.call("changer__victim")) == "still here"

    run(main)
    assert [m["params"]["name"] for m in recorded(record, "tools/call")] == ["mutate", "victim"]


def test_another_entry_does_not_use_the_old_manifest(tmp_path: Path) -> None:
    async def main() -> None:
        await learn(tmp_path, lazy("echo"))
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(lazy("echo", "--version", "2.0"))
            assert b.states("echo") == ["idle", "connecting", "connected"]
            assert b.status("echo").version == "echo 2.0"

    run(main)


def test_a_crash_lets_it_sleep_and_the_next_call_brings_it_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(lazy("echo"))
            pid = b.status("echo").pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await b.state("echo", IDLE)
            fault = b.status("echo").fault
            assert fault is not None
            assert fault.exit_code == -signal.SIGKILL
            assert text(await b.call("echo__echo", {"text": "back"})) == "back"
            assert b.status("echo").fault is None

    run(main)


def test_a_start_that_fails_costs_its_calls_and_after_the_last_try_its_tools(
    tmp_path: Path,
) -> None:
    counter = tmp_path / "starts"

    async def main() -> None:
        entry = lazy(
            "restart_breaks",
            "--counter",
            counter,
            "--works",
            "1",
            protocol="legacy",
            restart=RestartSpec(max_attempts=2),
        )
        await learn(tmp_path, entry)
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(entry)
            for left in (IDLE, IDLE, FAILED):
                call = await b.call("restart_breaks__echo", {"text": "x"})
                assert call.outcome is Outcome.NEVER_SENT
                assert "exit code 4" in text(call)
                assert b.status("restart_breaks").state is left
            assert await b.apply() == ["restart_breaks"]
            assert b.tools == {}

    run(main)
    assert counter.read_text() == "x" * 4


def test_an_interrupted_call_leaves_the_start_to_the_others(tmp_path: Path) -> None:
    async def main() -> None:
        await learn(tmp_path, lazy("slow", "--delay", "0.5"))
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(lazy("slow", "--delay", "0.5"))
            first = asyncio.create_task(b.call("slow__echo", {"text": "1"}))
            second = asyncio.create_task(b.call("slow__echo", {"text": "2"}))
            await b.state("slow", ServerState.CONNECTING)
            first.cancel()
            assert text(await second) == "2"
            with pytest.raises(asyncio.CancelledError):
                await first

    run(main)


def test_stopping_while_a_call_wakes_a_server_ends_both(tmp_path: Path) -> None:
    async def main() -> None:
        await learn(tmp_path, lazy("slow", "--delay", "0.2"))
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(lazy("slow", "--delay", "0.2"))
            call = asyncio.create_task(b.call("slow__echo", {"text": "1"}))
            await b.state("slow", ServerState.CONNECTING)
            await b.manager.stop()
            assert (await call).outcome is Outcome.NEVER_SENT
        assert children() == []

    run(main)


def test_a_sleeping_server_can_be_restarted_switched_off_and_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        await learn(tmp_path, lazy("echo"))
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(lazy("echo"))
            await b.manager.restart("echo")
            assert b.status("echo").state is CONNECTED
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "a"})) == "a"
            await b.manager.set_enabled("echo", False)
            await b.apply()
            assert b.tools == {}
            await b.manager.set_enabled("echo", True)
            await b.manager.settled()
            assert b.status("echo").state is IDLE
            await b.apply()
            b.manager.start([lazy("echo", "--version", "3.0")])
            await until(lambda: b.status("echo").version == "echo 3.0")
            await b.apply()
            assert text(await b.call("echo__echo", {"text": "b"})) == "b"

    run(main)


def test_an_entry_nobody_trusts_starts_nothing_until_somebody_does(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []
    fault: list[Fault] = [Fault(stage=Stage.CONFIG, what="echo is not trusted", fix="Trust it")]

    def trusted(entry: ServerSpec, digest: str) -> Fault | None:
        asked.append((entry.name, digest))
        return fault[0] if fault else None

    async def main() -> None:
        async with bench(tmp_path, trusted=trusted) as b:
            await b.up(spec("echo"), lazy("legacy24"))
            assert children() == []
            for name in ("echo", "legacy24"):
                assert b.status(name).state is ServerState.UNTRUSTED
                assert b.status(name).fault == fault[0]
            assert all(len(digest) == 64 for _, digest in asked)
            fault.clear()
            b.manager.retrust("echo")
            await b.state("echo", CONNECTED)
            assert b.status("legacy24").state is ServerState.UNTRUSTED
            # a change nobody agreed to: the old one serves on until somebody does
            fault.append(Fault(stage=Stage.CONFIG, what="echo is held"))
            pid = b.status("echo").pid
            b.manager.start([spec("echo", "--version", "2.0"), lazy("legacy24")])
            await until(lambda: any("held" in str(event) for event in b.events))
            assert (b.status("echo").pid, b.status("echo").state) == (pid, CONNECTED)
            fault.clear()
            b.manager.retrust("echo")
            await until(lambda: b.status("echo").version == "echo 2.0")

    run(main)


def test_what_it_offers_beside_tools_is_known_as_it_was_last(tmp_path: Path) -> None:
    async def main() -> None:
        entry = lazy("offers")
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(entry)
            before = len((await b.manager.beside.listed("offers")).resources)
            await b.call("offers__change", {"what": "resources", "count": 1})

            def told() -> bool:  # after it every list is fetched, and it is written down
                changes = (e for e in b.events if isinstance(e, ServerChanged))
                return any(change.status.resources > before for change in changes)

            await until(told)
        async with bench(tmp_path, manifests=tmp_path / "manifests") as b:
            await b.up(entry)
            assert children() == []
            (held,) = b.manager.beside.offered()
            assert len(held.resources) > before

    run(main)

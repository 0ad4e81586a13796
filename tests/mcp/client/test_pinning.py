"""A server that changes what it says: held at its start, its restart, its wake and any moment."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from kage.config.schema import ServerSpec
from kage.core.events import DefinitionsHeld
from kage.core.messages import Outcome
from kage.core.pins import INSTRUCTIONS, HeldChange, PinAnswer
from kage.core.servers import ServerState
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.pins.book import PinBook
from tests.mcp.client.harness import Bench, bench, recorded, run, spec, text
from tests.stubs.rugpull import INSTRUCTIONS as WORDS
from tests.waiting import until


class Bank:
    """A rugpull server, and the pins of one person."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / "state"
        self.record = home / "record"

    def book(self) -> PinBook:
        log = DecisionLog(self.home / "decisions")
        return PinBook(self.home / "pins", log=log, records=True)

    def bench(self, book: PinBook | None = None) -> Any:
        return bench(self.home, pins=book or self.book(), manifests=self.home / "manifests")

    def entry(self, *options: object, **more: Any) -> ServerSpec:
        given = ("--state", self.state, "--record", self.record, *options)
        return spec("bank", *given, of="rugpull", **more)

    def becomes(self, *names: str) -> None:
        draft = self.state.with_name("draft")
        draft.write_text("\n".join(names))
        os.replace(draft, self.state)


def told(b: Bench) -> list[HeldChange]:
    return [one for e in b.events if isinstance(e, DefinitionsHeld) for one in e.changes]


def names(b: Bench) -> set[str]:
    return set(b.tools)


async def becomes(b: Bench, bank: Bank, *mutations: str, held: int) -> None:
    """Change the server, wait until that was judged, and take what is offered then."""
    bank.becomes(*mutations)
    await until(lambda: len(b.status("bank").held) == held and b.manager.changed.is_set())
    await b.apply()


def test_a_change_at_any_moment_withdraws_the_tool_and_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        bank = Bank(tmp_path)
        book = bank.book()
        async with bank.bench(book) as b:
            await b.up(bank.entry())
            assert names(b) == {"bank__pay", "bank__look"}
            pay = b.tools["bank__pay"]
            await becomes(b, bank, "word", held=1)
            assert names(b) == {"bank__look"}
            assert b.status("bank").state is ServerState.CONNECTED
            assert b.status("bank").held[0].startswith("pay: changed")
            assert [change.name for change in told(b)] == ["pay"]
            b.tools["old"] = pay  # of a call that was under way to the gate
            assert (await b.call("old", {"account": "a", "amount": 1})).outcome is Outcome.REFUSED
            del b.tools["old"]
            assert recorded(bank.record, "tools/call") == []
            assert book.held(pay.spec) is not None
            assert text(await b.call("bank__look")) == "called look"
            await becomes(b, bank, held=0)  # as it was
            assert names(b) == {"bank__pay", "bank__look"}
            await becomes(b, bank, "rename", held=1)
            assert names(b) == {"bank__look"}
            assert b.status("bank").held == ("pay_now: looks like pay under another name",)

    run(main)


def test_reordering_and_new_tools_pass_at_any_moment(tmp_path: Path) -> None:
    async def main() -> None:
        bank = Bank(tmp_path)
        async with bank.bench() as b:
            await b.up(bank.entry())
            await becomes(b, bank, "reorder", held=0)
            await becomes(b, bank, "new", held=0)
            assert names(b) == {"bank__pay", "bank__look", "bank__forecast"}
            assert told(b) == []

    run(main)


def test_a_change_across_restart_and_start_is_held_and_an_answer_frees_it(tmp_path: Path) -> None:
    async def main() -> None:
        bank = Bank(tmp_path)
        async with bank.bench() as b:
            await b.up(bank.entry())
            assert dict(b.manager.instructions()) == {"bank": WORDS}
            bank.becomes("enum", "instructions")
            await b.manager.restart("bank")
            await b.apply()
            assert names(b) == {"bank__look"}
            assert b.manager.instructions() == ()
        book = bank.book()
        async with bank.bench(book) as b:
            await b.up(bank.entry())
            assert names(b) == {"bank__look"}
            assert {change.name for change in told(b)} == {"pay", INSTRUCTIONS}
            for change in b.manager.held():
                assert await asyncio.to_thread(book.answer, change, PinAnswer.ACCEPT)
            b.manager.repin()
            await until(lambda: not b.status("bank").held)
            await b.apply()
            assert names(b) == {"bank__pay", "bank__look"}
            assert [name for name, _ in b.manager.instructions()] == ["bank"]

    run(main)


def test_what_another_kage_accepted_counts_here_once_it_is_looked_at_again(tmp_path: Path) -> None:
    async def main() -> None:
        bank, other = Bank(tmp_path), Bank(tmp_path).book()
        async with bank.bench() as b, bank.bench(other) as c:
            await b.up(bank.entry())
            await becomes(b, bank, "word", held=1)
            await c.up(bank.entry())
            [change] = c.manager.held()
            await asyncio.to_thread(other.answer, change, PinAnswer.ACCEPT)
            b.manager.repin()
            await until(lambda: not b.status("bank").held)

    run(main)


def test_a_sleeping_server_offers_only_what_is_known_and_is_judged_when_it_wakes(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        bank = Bank(tmp_path)
        entry = bank.entry(start="lazy", idle_timeout=300.0)
        async with bank.bench() as b:
            await b.up(entry)
        bank.becomes("word")
        async with bank.bench() as b:
            await b.up(entry)
            assert b.status("bank").state is ServerState.IDLE
            assert names(b) == {"bank__pay", "bank__look"}
            result = await b.call("bank__pay", {"account": "a", "amount": 1})
            assert result.outcome is Outcome.REFUSED
            assert recorded(bank.record, "tools/call") == []
            await b.apply()
            assert names(b) == {"bank__look"}
        async with bank.bench() as b:  # and from what was written down of it
            await b.up(entry)
            assert b.status("bank").state is ServerState.IDLE
            assert names(b) == {"bank__look"}

    run(main)


def test_the_setting_counts_as_soon_as_it_is_changed(tmp_path: Path) -> None:
    async def main() -> None:
        bank = Bank(tmp_path)
        async with bank.bench() as b:
            await b.up(bank.entry())
            await becomes(b, bank, "word", held=1)
            b.manager.reconcile([bank.entry(pin="off")])
            await b.apply()
            await until(lambda: not b.status("bank").held)
            await b.apply()
            assert names(b) == {"bank__pay", "bank__look"}
            b.manager.reconcile([bank.entry(pin="ask")])
            await b.apply()
            await until(lambda: b.status("bank").held)
            b.manager.reconcile([bank.entry(pin="warn")])
            await b.apply()
            await until(lambda: not b.status("bank").held)
            assert {change.name for change in told(b)} == {"pay"}

    run(main)

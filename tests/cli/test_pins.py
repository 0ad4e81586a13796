"""``kage mcp pins``, ``-p`` and ``mcp.lock``, used by a person, a script, the agent's shell."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kage.permissions.decisions.log import verify
from tests.cli.conftest import Kage
from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, server
from tests.waiting import wait_for

WORDS = "[-nothing-]{+everything+}"


class Bank:
    """A rugpull server in a house."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.state = house.home / "state"
        self.configure()

    def configure(self, **keys: object) -> None:
        self.house.write(server("bank", "rugpull", "--state", self.state, **keys))

    def becomes(self, *names: str) -> None:
        draft = self.state.with_name("draft")
        draft.write_text("\n".join(names))
        os.replace(draft, self.state)

    def met(self, kage: Kage) -> None:
        """Let the model meet the server as it is."""
        assert kage("-p", "hello", "--model", "offline").code == 0


@pytest.fixture
def bank(house: House) -> Bank:
    return Bank(house)


def test_a_held_tool_is_named_everywhere_and_called_nowhere(
    bank: Bank, house: House, kage: Kage
) -> None:
    assert "No definition is known yet" in kage("mcp", "pins").out
    bank.met(kage)
    rows = kage("mcp", "pins", "--json").json
    assert {(row["tool"], row["state"]) for row in rows} == {
        (name, "known") for name in ("", "pay", "look")
    }
    bank.becomes("word")
    ended = kage("-p", "hello", "--model", "offline")
    assert ended.code == 0
    assert ended.err.count("server bank holds pay: changed since") == 1
    assert WORDS in ended.err and "kage mcp pins accept bank" in ended.err
    assert "bank__look" in ended.out and "bank__pay" not in ended.out
    assert "bank__pay   held: changed since" in kage("mcp", "tools").out
    called = kage("mcp", "call", "bank__pay", "account=a", "amount=1")
    assert called.code == 4 and WORDS in called.err and called.out == ""
    assert kage("mcp", "call", "bank__look").out == "called look\n"
    assert "held: pay: changed since" in kage("mcp", "status", "--start").out
    [held] = kage("mcp", "get", "bank", "--json").json["held"]
    assert held.startswith("pay: changed since")
    assert kage("-p", "hello", "--model", "offline", "--require-mcp").code == 3
    bank.configure(required="true")
    ended = kage("-p", "hello", "--model", "offline")
    assert (ended.code, ended.out) == (3, "") and WORDS in ended.err


def test_the_model_never_reads_what_is_held(bank: Bank, house: House, kage: Kage) -> None:
    bank.met(kage)
    bank.becomes("word", "instructions")
    with ScriptedModel([call("bank__pay", account="a", amount=1), say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "pay", "--allow", "bank__pay")
        assert ended.code == 0
        sent = json.dumps([request.body for request in model.requests])
    assert "everything else" not in sent and "tell nobody" not in sent
    assert "bank__look" in sent
    assert "There is no tool 'bank__pay' now" in sent


def test_a_person_accepts_exactly_what_was_shown(bank: Bank, house: House, kage: Kage) -> None:
    bank.met(kage)
    assert kage("mcp", "pins", "diff").code == 0
    assert kage("mcp", "pins", "accept", "bank").code == 1
    bank.becomes("word", "new")
    shown = kage("mcp", "pins", "diff", "bank/pay")
    assert shown.code == 1 and WORDS in shown.out
    [change] = kage("mcp", "pins", "diff", "--json").json
    assert f"hash  {change['digest']}" in shown.out
    assert (change["name"], change["cause"]) == ("pay", "changed")
    for flags in ((), ("--yes",), ("--yes", "--hash", "0" * 64)):
        assert kage("mcp", "pins", "accept", "bank", *flags).code == 2
    done = kage("mcp", "pins", "accept", "bank/pay", "--yes", "--hash", change["digest"])
    assert (done.code, done.out) == (0, "bank/pay is accepted\n")
    assert "holds" not in kage("-p", "hello", "--model", "offline").err
    bank.becomes("enum")
    assert kage("mcp", "pins", "refuse", "bank/pay").code == 0
    assert "holds" not in kage("-p", "hello", "--model", "offline").err  # nor asked about
    assert "you refused it" in kage("mcp", "tools").out
    assert kage("mcp", "pins", "disable", "bank/pay").code == 0
    bank.becomes("word")
    assert "held: you disabled it" in kage("mcp", "tools").out
    assert kage("mcp", "pins", "forget", "bank/pay").code == 2
    assert kage("mcp", "pins", "forget", "bank/pay", "--yes").out == "1 definition forgotten\n"
    assert "held" not in kage("mcp", "tools").out
    assert kage("mcp", "pins", "forget", "nobody", "--yes").code == 1
    assert verify(house.data / "decisions") == []


def test_the_agent_may_not_decide(
    bank: Bank, house: House, kage: Kage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.met(kage)
    bank.becomes("word")
    [change] = kage("mcp", "pins", "diff", "--json").json
    before = sorted(path.read_bytes() for path in (house.data / "pins").glob("*.json"))
    monkeypatch.setenv("KAGE_AGENT", "1")
    verbs = ("accept", "refuse", "disable", "forget")
    for words in [
        *((verb, "bank/pay") for verb in verbs),
        ("accept", "bank", "--yes", "--hash", change["digest"]),
        ("forget", "bank", "--yes"),
        ("lock",),
        ("diff",),
    ]:
        assert kage("mcp", "pins", *words).code == 2
    assert before == sorted(path.read_bytes() for path in (house.data / "pins").glob("*.json"))


def test_enter_through_the_question_accepts_nothing(bank: Bank, house: House, kage: Kage) -> None:
    bank.met(kage)
    bank.becomes("word")
    with house.terminal("mcp", "pins", "accept", "bank") as terminal:
        terminal.until("[y/N]")
        terminal.send("\r")
        terminal.until("It stays held")


def test_files_that_were_deleted_or_forged_accept_nothing(
    bank: Bank, house: House, kage: Kage
) -> None:
    bank.met(kage)
    bank.becomes("word")
    [file] = (house.data / "pins").glob("*.json")
    whole = file.read_text()
    file.write_text(whole.replace("nothing", "everything"))
    assert "holds pay" in kage("-p", "hello", "--model", "offline").err
    file.unlink()
    assert "holds pay" in kage("-p", "hello", "--model", "offline").err


def test_a_lock_fails_closed_and_is_checked(bank: Bank, house: House, kage: Kage) -> None:
    lock = house.workspace / "mcp.lock"
    assert kage("mcp", "pins", "lock", "--check").code == 2
    written = kage("mcp", "pins", "lock")
    assert written.code == 0 and "3 definitions of 1 server" in written.out
    first = lock.read_bytes()
    bank.becomes("reorder")
    assert kage("mcp", "pins", "lock", "--check").code == 0
    assert kage("mcp", "pins", "lock").code == 0 and lock.read_bytes() == first
    bank.becomes("word", "new")
    checked = kage("mcp", "pins", "lock", "--check")
    assert checked.code == 1 and WORDS in checked.out
    assert "forecast is not in mcp.lock" in checked.out
    ended = kage("-p", "hello", "--model", "offline")  # the first use of them
    assert ended.code == 0 and "holds pay: is not what mcp.lock says" in ended.err
    assert "bank__pay" not in ended.out and "bank__forecast" not in ended.out
    bank.becomes("gone")
    assert "pay is gone" in kage("mcp", "pins", "lock", "--check").out
    lock.write_text("<<<<<<< ours")
    assert kage("mcp", "pins", "lock", "--check").code == 2
    ended = kage("-p", "hello", "--model", "offline")
    assert "bank__look" not in ended.out
    bank.becomes()
    assert kage("mcp", "pins", "lock").code == 0 and lock.read_bytes() == first


def test_a_lock_is_not_written_over_what_waits_for_a_person(
    bank: Bank, house: House, kage: Kage
) -> None:
    bank.met(kage)
    bank.becomes("word")
    refused = kage("mcp", "pins", "lock")
    assert refused.code == 1 and "bank holds pay" in refused.err
    assert not (house.workspace / "mcp.lock").exists()


def test_only_the_persons_own_file_may_loosen_it(bank: Bank, house: House, kage: Kage) -> None:
    bank.met(kage)
    bank.becomes("word")
    bank.configure(pin='"warn"')
    ended = kage("-p", "hello", "--model", "offline")
    assert "server bank changed pay" in ended.err and WORDS in ended.err
    assert "bank__pay" in ended.out
    assert kage("-p", "hello", "--model", "offline").err == ""
    bank.configure()
    assert kage("-p", "hello", "--model", "offline").err == ""  # it is known by now
    bank.becomes()
    bank.configure(pin='"off"')
    assert kage("-p", "hello", "--model", "offline").err == ""
    (house.workspace / ".kage").mkdir()
    project = house.workspace / ".kage" / "config.toml"
    project.write_text(server("team", "rugpull", pin='"off"'))
    assert "only your own config.toml" in kage("config", "check").err


def test_accepting_in_another_shell_reaches_a_kage_that_runs(
    bank: Bank, house: House, kage: Kage
) -> None:
    bank.met(kage)
    bank.becomes("word")
    with house.terminal("--model", "offline") as terminal:
        terminal.until("held until you look at it")
        [change] = kage("mcp", "pins", "diff", "--json").json
        words = ("accept", "bank", "--yes", "--hash", change["digest"])
        assert kage("mcp", "pins", *words).code == 0

        def free() -> bool:
            [status] = kage("mcp", "status", "--json").json
            return status["state"] == "connected" and status["held"] == []

        wait_for(free, what="it is offered there too")


def test_the_folder_of_pins_is_for_its_owner_alone(bank: Bank, house: House, kage: Kage) -> None:
    bank.met(kage)
    folder: Path = house.data / "pins"
    assert folder.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())

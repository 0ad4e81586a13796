"""Every call passes the gate, is sealed and is recorded: the proofs the mutants must break.

They run kage inside the test's process, so that a mutant of ``tests.proof.mutants`` reaches them.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kage.cli.commands import run
from kage.cli.ground import Options, ground
from kage.cli.servers import connected
from kage.core.errors import KageError
from kage.core.gate import CallRequest
from kage.core.messages import Outcome
from kage.core.tools import Invocation
from kage.permissions.decisions.log import verify
from tests.llm import ScriptedModel, call, say
from tests.llm.script import Turn
from tests.proof.house import House, server


@pytest.fixture(autouse=True)
def inside(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in the workspace of the house."""
    monkeypatch.chdir(house.workspace)


def _print(
    house: House, monkeypatch: pytest.MonkeyPatch, turns: list[Turn], *words: str
) -> tuple[int, ScriptedModel]:
    with ScriptedModel(turns) as model:
        for name, value in model.environ().items():
            monkeypatch.setenv(name, value)
        return run(["-p", "go", *words]), model


def _sent(record: Path) -> list[str]:
    """Give the names of the tools that were called on the wire."""
    messages = [json.loads(line) for line in record.read_text().splitlines() if line]
    return [m["params"]["name"] for m in messages if m.get("method") == "tools/call"]


def _verdicts(house: House) -> list[str]:
    return [r["verdict"] for r in house.records() if r["kind"] == "decision"]


def test_no_call_of_a_server_leaves_without_an_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = house.home / "seen"
    house.write(server("srv", "echo", "--record", record))
    turns: list[Turn] = [call("srv__echo", text="x"), say("done")]
    code, model = _print(house, monkeypatch, turns)
    assert code == 4
    assert _sent(record) == []
    assert "refused" in model.requests[1].last_result
    assert _verdicts(house) == ["deny"]


def test_no_command_no_write_and_no_fetch_happens_without_an_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[Turn] = [
        [
            call("bash", command="touch by-bash"),
            call("write", path="by-write", content="x"),
            call("web_fetch", url="https://example.invalid/"),
        ],
        say("done"),
    ]
    code, model = _print(house, monkeypatch, turns)
    assert code == 4
    assert list(house.workspace.iterdir()) == []
    assert all("refused" in result for result in model.requests[1].results)
    assert _verdicts(house) == ["deny"] * 3


def test_a_rule_that_denies_holds_against_one_that_allows(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write('[permissions.tools.bash]\ndeny = ["touch *"]')
    turns: list[Turn] = [call("bash", command="touch here"), say("done")]
    code, _ = _print(house, monkeypatch, turns, "--allow", "bash")
    assert code == 4
    assert not (house.workspace / "here").exists()


def test_every_call_that_ran_has_a_record_before_and_after(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = house.home / "seen"
    house.write(server("srv", "echo", "--record", record))
    (house.workspace / "a").write_text("text")
    turns: list[Turn] = [
        [call("srv__echo", text="x"), call("read", path="a"), call("bash", command="true")],
        say("done"),
    ]
    code, _ = _print(house, monkeypatch, turns, "--allow", "srv__echo", "--allow", "bash")
    assert code == 0
    assert _sent(record) == ["echo"]
    decided = {r["call"]: r for r in house.records() if r["kind"] == "decision"}
    ended = {r["call"]: r for r in house.records() if r["kind"] == "outcome"}
    assert sorted(r["tool"] for r in decided.values()) == ["bash", "read", "srv__echo"]
    assert decided.keys() == ended.keys()
    assert all(ended[key]["decision"] == decided[key]["id"] for key in ended)
    assert all(ended[key]["n"] > decided[key]["n"] for key in ended)
    assert verify(house.data / "decisions") == []


def test_a_tool_that_is_run_past_the_gate_sends_nothing(house: House) -> None:
    record = house.home / "seen"
    house.write(server("srv", "echo", "--record", record))

    async def main() -> None:
        async with connected(ground(Options()), ["srv"]) as up:
            tool = next(tool for tool in up.offered["srv"] if tool.spec.name == "srv__echo")
            try:
                result = await tool.run(_invocation(house, {"text": "x"}))
            except KageError:
                return
            assert result.outcome is Outcome.REFUSED

    asyncio.run(main())
    assert _sent(record) == []


def test_an_answer_about_some_arguments_lets_no_others_through(house: House) -> None:
    record = house.home / "seen"
    house.write(server("srv", "echo", "--record", record))

    async def main() -> None:
        here = ground(Options(allow=("srv__echo",)))
        async with connected(here, ["srv"]) as up:
            tool = next(tool for tool in up.offered["srv"] if tool.spec.name == "srv__echo")
            gate = up.guard.gate("s1", None)
            request = CallRequest(
                call_id="c1", tool=tool.spec, arguments={"text": "shown"}, workspace=here.workspace
            )
            decision = await gate.decide(request)
            assert decision.allowed
            for text in ("other", "shown", "shown"):  # the last one is one too many
                try:
                    await tool.run(_invocation(house, {"text": text}))
                except KageError:
                    continue
            await gate.finish(request, decision, Outcome.OK, seconds=0.0, result="")

    asyncio.run(main())
    sent = [json.loads(line) for line in record.read_text().splitlines() if line]
    arguments = [m["params"]["arguments"] for m in sent if m.get("method") == "tools/call"]
    assert arguments == [{"text": "shown"}]


def _invocation(house: House, arguments: dict[str, object]) -> Invocation:
    return Invocation(
        call_id="c1",
        arguments=arguments,
        workspace=house.workspace,
        roots=(house.workspace,),
        scratch=house.home / "scratch",
    )

"""Every way a decision can come about is explained from its record, as the gate writes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import Place, ToolRules
from kage.core.gate import Answer, Mode, Question, Reply
from kage.core.messages import Outcome
from kage.permissions.decisions.cases import Case, newest
from kage.permissions.decisions.explain import explain, granting
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.rules.rules import Hook
from tests.permissions.calls import call, mcp, rules
from tests.permissions.test_gate import House, Person

RM = ToolRules(tool="bash", deny=("rm *",), place=Place(file=Path("config.toml"), line=7))
LS = ToolRules(tool="bash", allow=("ls",), place=Place(file=Path("config.toml"), line=9))
GIT = ToolRules(tool="bash", ask=("git *",), place=Place(file=Path("config.toml"), line=8))


def person(answer: Answer, say: str = "", scope: int = 0) -> Person:
    return Person(Reply(answer=answer, say=say, scope=scope))


def told(house: House) -> list[str]:
    """Explain the last decision as ``kage log why`` does."""
    folder = house.log.directory
    last = next(newest(folder, lambda case: case.kind == "decision"))
    source = next(newest(folder, lambda other: granting(last, other)), None)
    return list(explain(last, source=source))


PATHS: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    (
        "asked, yes",
        {"person": person(Answer.YES)},
        {},
        ["allowed this one call", "every MCP tool asks", "not in the log"],
    ),
    (
        "asked, for the session",
        {"person": person(Answer.SESSION, scope=1)},
        {},
        ["allowed filesystem__read_file for the session"],
    ),
    ("asked, no", {"person": person(Answer.NO)}, {}, ["you were asked and said no"]),
    (
        "asked, no and what instead",
        {"person": person(Answer.NO_SAY, say="read it yourself")},
        {},
        ["You said: read it yourself"],
    ),
    ("nobody to ask", {}, {}, ["nobody was there", "every MCP tool asks", "--allow RULE"]),
    (
        "a deny rule",
        {"found": rules(RM)},
        {"tool": "bash", "arguments": {"command": "rm x"}},
        ["Refused without a question: the rule bash(rm *)", "To change it: config.toml:7"],
    ),
    (
        "an allow rule",
        {"found": rules(LS)},
        {"tool": "bash", "arguments": {"command": "ls"}},
        ["Allowed without a question: the rule bash(ls) (config.toml:9) allows it"],
    ),
    (
        "--allow",
        {"found": rules(allow=("bash(ls)",))},
        {"tool": "bash", "arguments": {"command": "ls"}},
        ["the rule bash(ls) (--allow) allows it"],
    ),
    (
        "a whole server refused",
        {"found": rules(servers={"filesystem": "deny"})},
        {},
        ["Refused without a question: [permissions.mcp] says deny"],
    ),
    (
        "an ask rule, and yes",
        {"found": rules(GIT), "person": person(Answer.YES)},
        {"tool": "bash", "arguments": {"command": "git push"}},
        ["It asked because the rule bash(git *) (config.toml:8) asks every time"],
    ),
    (
        "free by default",
        {},
        {"tool": "read", "arguments": {"path": "a"}},
        ["Allowed without a question: reading inside the workspace is free"],
    ),
    (
        "by hand",
        {},
        {"by_hand": True},
        ["you made this call yourself"],
    ),
    (
        "held",
        {"held": lambda tool: "its definition changed"},
        {},
        ["Refused: the tool is held", "its definition changed"],
    ),
    (
        "a hook",
        {},
        {"hook": Hook(wish="deny", plugin="careful", why="it is Friday")},
        ["a plugin's hook refused it", "the plugin careful says so: it is Friday"],
    ),
    (
        "arguments that cannot be sealed",
        {},
        {"arguments": {"n": float("nan")}},
        ["Refused before any rule was looked at"],
    ),
]


@pytest.mark.parametrize(
    ("parts", "request_", "said"), [row[1:] for row in PATHS], ids=[row[0] for row in PATHS]
)
def test_a_decision_is_explained(
    tmp_path: Path, parts: dict[str, Any], request_: dict[str, Any], said: list[str]
) -> None:
    house = House(tmp_path, parts.get("person"), parts.get("found"), held=parts.get("held"))
    request = {"tool": mcp(), "arguments": {"path": "a"}, **request_}
    house.decide(request.pop("tool"), request.pop("arguments"), **request)
    text = "\n".join(told(house))
    for part in said:
        assert part in text


@pytest.mark.parametrize("mode", [Mode.DENY, Mode.ASK])
def test_the_mode_of_the_session_is_named(tmp_path: Path, mode: Mode) -> None:
    house = House(tmp_path, person(Answer.NO))
    house.gate.mode = mode
    house.decide(mcp(), {})
    text = "\n".join(told(house))
    expected = "set to refuse what would ask" if mode is Mode.DENY else "every call asks in this"
    assert expected in text


@pytest.mark.parametrize("answer", [Answer.SESSION, Answer.ALWAYS])
def test_a_permission_is_traced_to_the_decision_that_gave_it(
    tmp_path: Path, answer: Answer
) -> None:
    house = House(tmp_path, person(answer, scope=1))
    house.decide(mcp(), {"path": "a"})
    given = house.records[-1]["id"]
    house.decide(mcp(original="other"), {"path": "a"})
    house.decide(mcp(), {"path": "b"})
    covered, where, *_ = told(house)
    assert "filesystem__read_file covers it" in covered
    assert given in where
    assert ("for good" if answer is Answer.ALWAYS else "for the session") in where


def test_a_question_taken_back_and_a_call_that_changed_are_told(tmp_path: Path) -> None:
    house = House(tmp_path, Person())
    arguments = {"path": "a"}
    house.person.before = lambda: arguments.update(path="b")
    house.decide(mcp(), arguments)
    assert "no longer the one you had been shown" in told(house)[0]

    class Never:
        async def ask(self, question: Question) -> Reply:
            asyncio.current_task().cancel()
            await asyncio.sleep(0)
            raise AssertionError

    house = House(tmp_path, Never())
    with pytest.raises(asyncio.CancelledError):
        house.decide(mcp(), {"path": "c"})
    house.log.close()
    assert told(house)[0] == "The question was taken back before you answered it, so nothing ran."


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.OK, "It ran and worked (0.5 s)."),
        (Outcome.TOOL_ERROR, "the tool said it failed"),
        (Outcome.NEVER_SENT, "never sent: nothing happened"),
        (Outcome.UNKNOWN, "never sent"),  # its seal was never used
        (Outcome.REFUSED, "refused on the way"),
    ],
)
def test_how_a_call_ended_is_told(tmp_path: Path, outcome: Outcome, said: str) -> None:
    house = House(tmp_path, Person())
    request = call(mcp(), {"path": "a"}, workspace=house.workspace)

    async def main() -> None:
        decision = await house.gate.decide(request)
        await house.gate.finish(request, decision, outcome, seconds=0.5, result="")
        house.log.close()

    asyncio.run(main())
    assert said in told(house)[-1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "trust", "act": "trusted", "server": "team", "origin": "/p"}, "You trusted"),
        ({"kind": "trust", "act": "held", "server": "x", "origin": "user"}, "kage held it"),
        ({"kind": "trust", "act": "new word", "server": "x", "origin": "user"}, "new word"),
        ({"kind": "handed", "action": "decline", "server": "s", "original": "t"}, "s__t"),
        ({"kind": "gap", "missed": 3, "reason": "the disk was full"}, "3 records are missing"),
        ({"kind": "gap", "missed": 0, "reason": "the head was gone"}, "the head was gone"),
        ({"kind": "later", "reason": "of another version"}, "later: of another version"),
        ({"kind": "decision"}, ""),
        ({"kind": "decision", "verdict": "allow", "who": "client"}, "answers for its person"),
        ({"kind": "decision", "verdict": "deny", "who": "somebody", "rule": "r"}, "question: r"),
        ({}, "unknown"),
        ({"kind": "decision", "verdict": 7, "who": [], "reason": None}, ""),
    ],
)
def test_every_record_is_explained_whatever_it_holds(fields: dict[str, Any], said: str) -> None:
    assert said in "\n".join(explain(Case(fields=fields)))
    assert "\n".join(explain(Case(fields=fields, ended={"outcome": "odd"})))


def test_a_permission_of_another_session_or_server_is_no_source(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions")
    given = {"scope": "session", "rule": "s__t", "server": "s", "session": "s1"}
    for number, change in enumerate(({"session": "s2"}, {"server": "z"}, {"rule": "s__u"}, {})):
        log.append("decision", {"id": f"d{number}", **given, **change})
    last = Case(fields={**given, "time": "9999"})
    found = newest(log.directory, lambda other: granting(last, other))
    assert [case.text("id") for case in found] == ["d3"]

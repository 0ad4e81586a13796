"""Suggested rules save real questions, and are never broader than what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.canonical import digest
from kage.permissions.decisions.cases import Case
from kage.permissions.decisions.suggest import Evidence, Suggestion
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import parse_rule
from kage.permissions.rules.rules import Case as Asking
from kage.permissions.rules.rules import Rules
from tests.permissions.calls import builtin, call, mcp, rules

SPECS = {name: builtin(name) for name in ("bash", "read", "write", "edit", "web_fetch")}
WORK = "/home/me/work"


def asked(name: str, given_: Mapping[str, Any], /, **more: Any) -> Case:
    """Give the record of a question as the gate writes it."""
    server, _, original = name.partition("__") if "__" in name else ("", "", name)
    fields = {
        "kind": "decision",
        "time": "2026-02-02T02:00:00.000Z",
        "tool": name,
        "server": server,
        "origin": "user" if server else "",
        "original": original,
        "arguments": given_,
        "digest": digest(given_),
        "workspace": WORK,
        "verdict": "allow",
        "who": "person",
        "rule": "",
        "by_hand": False,
    }
    return Case(fields={**fields, **more})


def line(text: str, /, **more: Any) -> Case:
    return asked("bash", {"command": text}, **more)


def suggested(found: Iterable[Case], judged: Rules | None = None) -> tuple[Suggestion, ...]:
    judge = judged or rules()

    def savable(reading: Reading) -> bool:
        judgement = judge.judge(reading, Asking(mode=judge.mode))
        return judgement.wish == "ask" and not judgement.every_time

    evidence = Evidence(specs=SPECS, servers=("github", "db"), savable=savable)
    for case in found:
        evidence.take(case)
    return evidence.suggestions()


def names(found: Iterable[Case], judged: Rules | None = None) -> list[str]:
    return [str(one.rule) for one in suggested(found, judged)]


def test_a_line_that_was_asked_again_and_again_comes_with_its_evidence() -> None:
    later = "2026-03-02T02:00:00.000Z"
    other = line("make test", workspace="/home/me/other")
    (one,) = suggested([line("make test"), line("make test", time=later), other, line("ls")])
    assert (str(one.rule), one.saved, one.calls, one.folders) == ("bash(make test)", 3, 2, 2)
    assert (one.first, one.last) == ("2026-02-02T02:00:00.000Z", later)
    assert one.examples == ("make test", "make test")


@pytest.mark.parametrize(
    "text",
    [
        "make && rm -rf build",
        "make; make",
        "cat a | sh",
        "echo hi > file",
        "FOO=1 make",
        "echo $(id)",
        "echo `id`",
        "cat <<< x",
        "(make)",
        "make &",
    ],
)
def test_no_compound_line_is_suggested(text: str) -> None:
    assert names([line(text)] * 9) == []


def test_a_line_with_stars_is_suggested_for_itself_alone() -> None:
    (one,) = suggested([line("ls *.py")] * 3)
    assert str(one.rule) == r"bash(ls \*.py)"
    assert parse_rule(str(one.rule)) == one.rule


def test_what_a_person_refused_is_never_suggested() -> None:
    refused = asked("github__get", {"repo": "secret", "n": 1}, verdict="deny")
    allowed = [asked("github__get", {"repo": "kage", "n": n}) for n in range(9)]
    assert names([*allowed, refused]) == ["github__get(repo=kage)"]
    assert names([*allowed]) == ["github__get(repo=kage)"]
    assert names([line("make")] * 5 + [line("make", verdict="deny")]) == []


def test_a_tool_as_a_whole_needs_many_different_calls_with_nothing_in_common() -> None:
    few = [asked("github__get", {"id": n}) for n in range(3)]
    assert names(few) == []
    assert names([asked("github__get", {"id": n}) for n in range(6)]) == ["github__get"]
    same = [asked("github__get", {"id": 1})] * 9
    assert names(same) == ["github__get(id=1)"]


def test_rules_never_cross_servers() -> None:
    found = [asked(f"{server}__get", {"id": n}) for server in ("github", "db") for n in range(6)]
    assert names(found) == ["db__get", "github__get"]


def test_a_folder_needs_several_files_and_is_never_the_whole_workspace() -> None:
    files = [asked("write", {"path": f"docs/{n}.md", "content": str(n)}) for n in range(3)]
    assert names(files) == [f"write({WORK}/docs/*)"]
    assert names(files[:2]) == []
    top = [asked("write", {"path": f"{n}.md", "content": str(n)}) for n in range(9)]
    assert names(top) == []
    outside = [asked("read", {"path": f"/etc/{n}"}) for n in range(9)]
    assert names(outside) == []
    assert names([asked("read", {"path": "/etc/hosts"})] * 2) == ["read(/etc/hosts)"]


def test_a_site_needs_several_addresses() -> None:
    pages = [asked("web_fetch", {"url": f"https://docs.rs/{n}"}) for n in range(3)]
    assert names(pages) == ["web_fetch(https://docs.rs/*)"]
    assert names(pages[:2]) == []
    odd = [asked("web_fetch", {"url": f"https://me@docs.rs/{n}"}) for n in range(9)]
    assert names(odd) == []


def test_what_is_allowed_by_now_or_asks_every_time_is_not_suggested() -> None:
    found = [line("make test")] * 5
    assert names(found, rules(allow=("bash(make *)",))) == []
    assert names(found, rules(mode="ask")) == []


@pytest.mark.parametrize(
    "more",
    [
        {"by_hand": True},
        {"rule": "by hand"},
        {"who": "grant"},
        {"who": "nobody", "verdict": "deny"},
        {"verdict": "withdrawn"},
        {"kind": "trust"},
        {"arguments": {"command": "curl -H [redacted:TOKEN]"}},
        {"arguments": {"cut": "{...", "characters": 99999}},
        {"arguments": {"unreadable": "?"}},
        {"arguments": "odd"},
        {"workspace": ""},
        {"tool": "no_such_tool"},
    ],
)
def test_what_is_no_evidence_is_passed_over(more: dict[str, Any]) -> None:
    assert names([line("make", **more)] * 9) == []


@pytest.mark.parametrize("more", [{"origin": "/project"}, {"server": "gone"}])
def test_a_server_that_rules_cannot_be_about_is_passed_over(more: dict[str, Any]) -> None:
    assert names([asked("github__get", {"id": 1}, **more)] * 9) == []


ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b,c", "d=e"]),
    st.integers(0, 2) | st.sampled_from(["*", "x,y", "../z", "\\", "", "é"]),
    max_size=2,
)


CALLS = st.tuples(st.sampled_from(["github__get", "db__get"]), ARGUMENTS)


@given(allowed=st.lists(CALLS, max_size=12), refused=st.lists(CALLS, max_size=3))
def test_every_suggestion_saves_what_it_says_and_nothing_that_was_refused(
    allowed: list[tuple[str, dict[str, Any]]], refused: list[tuple[str, dict[str, Any]]]
) -> None:
    found = [asked(*one) for one in allowed]
    against = [asked(*one, verdict="deny") for one in refused]
    for one in suggested([*found, *against]):
        with_rule = rules(allow=(str(one.rule),), known=("github", "db"))
        judged = [_wish(with_rule, case) for case in found]
        assert judged.count("allow") >= one.saved > 1
        assert "allow" not in [_wish(with_rule, case) for case in against]
        assert one.rule.server in ("github", "db")


def _wish(judge: Rules, case: Case) -> str:
    tool = mcp(case.text("server"), case.text("original"))
    reading = Reading.of(call(tool, case.fields["arguments"], workspace=Path(WORK)))
    return judge.judge(reading).wish


@pytest.mark.parametrize(
    "lost", [{"id": "[redacted:TOKEN]"}, {"cut": "{", "characters": 99_999}, {"unreadable": "?"}]
)
def test_a_refusal_that_cannot_be_read_speaks_against_every_rule_of_its_tool(lost: Any) -> None:
    found = [asked("github__get", {"id": n}) for n in range(6)]
    assert names(found) == ["github__get"]
    assert names([*found, asked("github__get", lost, verdict="deny")]) == []
    assert names([*found, asked("db__get", lost, verdict="deny")]) == ["github__get"]

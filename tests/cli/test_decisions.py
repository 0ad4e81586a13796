"""``kage log``: asked, explained, proven, exported and learned from, the way a person does."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from kage.core.canonical import digest
from kage.permissions.decisions.log import DecisionLog
from tests.cli.conftest import Kage
from tests.proof.house import House, running
from tests.waiting import wait_for

EVIL = "\x1b[31mred\x07 \u202eevil\u200b [/bold]"


def decided(house: House, name: str, tool: str, arguments: Any, **more: Any) -> None:
    """Write one decision as the gate does."""
    server, _, original = tool.partition("__") if "__" in tool else ("", "", tool)
    fields = {
        "id": name,
        "session": "s1",
        "workspace": str(house.workspace),
        "call": f"call-{name}",
        "tool": tool,
        "server": server,
        "origin": "user" if server else "",
        "original": original,
        "arguments": arguments,
        "digest": digest(arguments),
        "by_hand": False,
        "verdict": "allow",
        "who": "person",
        "rule": "",
        "reason": "it asks",
    }
    assert log_of(house).append("decision", {**fields, **more})


def ended(house: House, name: str, outcome: str = "ok") -> None:
    fields = {"decision": name, "outcome": outcome, "seconds": 0.25, "result": "00"}
    assert log_of(house).append("outcome", fields)


def log_of(house: House) -> DecisionLog:
    return DecisionLog(house.data / "decisions")


def a_day(house: House) -> None:
    """Write a little of everything."""
    decided(house, "d1aaaa", "bash", {"command": "make test"})
    ended(house, "d1aaaa")
    decided(house, "d1bbbb", "github__search", {"q": "x"}, scope="session", rule="github__search")
    ended(house, "d1bbbb", "tool_error")
    decided(house, "d2cccc", "github__search", {"q": "y"}, who="grant", rule="github__search")
    decided(house, "d3dddd", "bash", {"command": "rm x"}, verdict="deny", who="rule", rule="bash")
    trusted = {"id": "t1", "act": "trusted", "who": "person", "server": "team", "origin": "/p"}
    log_of(house).append("trust", trusted)


def test_a_log_is_asked(house: House, kage: Kage) -> None:
    empty = kage("log")
    assert (empty.code, empty.out) == (0, "")
    assert "No decisions yet" in empty.err
    a_day(house)
    head, *rows = kage("log").out.splitlines()
    assert head.split() == ["TIME", "ID", "VERDICT", "WHO", "OUTCOME", "WHAT"]
    assert [row.split()[2] for row in rows] == ["d1aaaa", "d1bbbb", "d2cccc", "d3dddd", "t1"]
    assert rows[0].endswith("allow      person   ok          bash make test")
    assert rows[1].endswith('tool_error  github__search {"q": "x"}')
    assert rows[4].endswith("server team of /p")
    found = kage("log", "server=github", "since=1h", "--json", "-n", "1").events
    assert [(one["id"], one["ended"]) for one in found] == [("d2cccc", None)]
    asked = kage("log", "server=github outcome=tool_error", "--json").events
    assert [one["ended"]["seconds"] for one in asked] == [0.25]
    assert len(kage("log", "list", "-n", "2").out.splitlines()) == 3
    nothing = kage("log", "server=nowhere")
    assert (nothing.code, nothing.out) == (0, "")
    assert "fits" in nothing.err
    wrong = kage("log", "verdct=deny")
    assert (wrong.code, "Did you mean verdict?" in wrong.err) == (2, True)
    helped = kage("log", "--help")
    assert (helped.code, "suggest" in helped.out) == (0, True)


def test_one_record_is_shown_and_explained(house: House, kage: Kage) -> None:
    a_day(house)
    shown = kage("log", "show", "d1aaaa").out
    assert "session: s1\n" in shown and "ended outcome: ok\n" in shown
    assert kage("log", "show", "1", "--json").json["id"] == "d1aaaa"
    assert kage("log", "show", "call-d1bbbb", "--json").json["ended"]["outcome"] == "tool_error"
    assert kage("log", "show", "d3dd", "--json").json["verdict"] == "deny"
    several = kage("log", "show", "call-d1")
    assert (several.code, "2 records begin" in several.err) == (2, True)
    assert kage("log", "show", "nothing").code == 2
    why = kage("log", "why", "d2cccc")
    assert "the permission github__search covers it" in why.out
    assert "You gave it for the session in d1bbbb" in why.out
    assert "not in the log: it still runs" in why.out
    told = kage("log", "why", "call-d3dddd", "--json").json
    assert (told["id"], told["why"][0]) == ("d3dddd", "Refused without a question: it asks.")


def test_a_log_is_proven_and_what_was_changed_is_named(house: House, kage: Kage) -> None:
    assert "whole: 0 records" in kage("log", "verify").out
    a_day(house)
    whole = kage("log", "verify")
    assert (whole.code, "whole: 7 records" in whole.out) == (0, True)
    noted = whole.out.split()[-1]
    assert kage("log", "verify", "--noted", noted).code == 0
    assert kage("log", "verify", "--noted", "7:0000000000").code == 1
    assert kage("log", "verify", "--noted", "seven").code == 2
    (file,) = (house.data / "decisions").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"make test", b"make love"))
    bad = kage("log", "verify")
    assert (bad.code, f"{file}:1: it was changed" in bad.out) == (1, True)
    told = kage("log", "verify", "--json")
    assert (told.code, told.json["whole"], told.json["problems"][0]["line"]) == (1, False, 1)
    file.unlink()
    file.mkdir()
    assert "cannot be read" in kage("log", "verify").out
    for verb in (["log"], ["log", "show", "d1"], ["log", "why", "d1"], ["log", "suggest"]):
        unread = kage(*verb)
        assert (unread.code, "cannot be read" in unread.err) == (1, True), verb


def test_a_log_is_exported_for_other_programs(house: House, kage: Kage, tmp_path: Path) -> None:
    a_day(house)
    decided(house, "d4eeee", "bash", {"command": "x"}, reason="=cmd|' /C calc'!A0")
    lines = kage("log", "export").events
    assert [one["id"] for one in lines][:2] == ["d1aaaa", "d1bbbb"]
    rows = list(csv.DictReader(io.StringIO(kage("log", "export", "--format", "csv").out)))
    assert [row["outcome"] for row in rows] == ["ok", "tool_error", "", "", "", ""]
    assert rows[-1]["reason"].startswith("'=")
    file = tmp_path / "out.csv"
    done = kage("log", "export", "verdict=denied", "--format", "csv", "-o", str(file))
    assert "1 records" in done.err
    assert file.stat().st_mode & 0o077 == 0
    before = file.read_bytes()
    again = kage("log", "export", "-o", str(file))
    assert (again.code, file.read_bytes()) == (1, before)


def test_suggested_lines_can_be_pasted_and_then_count(house: House, kage: Kage) -> None:
    assert "No rule" in kage("log", "suggest").out
    house.write('[mcp.servers.github]\ncommand = "/nonexistent"')
    for number in range(6):
        decided(house, f"d1{number}", "bash", {"command": 'make "all" \\*'})
        decided(house, f"d2{number}", "github__get", {"id": number})
        decided(house, f"d3{number}", "github__list", {"repo": "a", "page": number})
    shown = kage("log", "suggest").out
    assert "saves 6 questions, in one folder" in shown
    found = kage("log", "suggest", "--json").json
    assert [one["rule"] for one in found] == [
        'bash(make "all" \\\\\\*)',
        "github__get",
        "github__list(repo=a)",
    ]
    with house.config.open("a") as stream:
        stream.write(shown[shown.index("[permissions") :])
    assert tomllib.loads(house.config.read_text())["permissions"]["tools"]["github__get"]
    assert kage("config", "check").code == 0
    assert "No rule" in kage("log", "suggest").out
    decided(house, "d4", "bash", {"command": "true"})
    decided(house, "d5", "bash", {"command": "true"})
    assert "bash(true)" in kage("log", "suggest", "since=1d").out
    assert f"there is a table for bash already: {house.config}:" in kage("log", "suggest").out
    decided(house, "d6", "bash", {"command": "true"}, verdict="deny")
    assert "bash(true)" not in kage("log", "suggest", "verdict=allow").out


def test_nothing_in_the_log_reaches_the_terminal_as_it_is(house: House, kage: Kage) -> None:
    house.write('[mcp.servers.s]\ncommand = "/nonexistent"')
    for name in ("d1", "d2"):
        extra = {"reason": EVIL, "say": EVIL, EVIL: EVIL, "session": EVIL}
        decided(house, name, f"s__t{EVIL}", {EVIL: EVIL}, **extra)
    log_of(house).append("trust", {"id": EVIL, "act": EVIL, "server": EVIL, "who": EVIL})
    verbs = (
        ["log"],
        ["log", "--json"],
        ["log", "show", "1"],
        ["log", "why", "1"],
        ["log", "show", EVIL],
        ["log", "why", EVIL],
        ["log", "suggest"],
        ["log", "export"],
        ["log", "export", "--format", "csv"],
        ["log", f"who={EVIL}"],
        ["log", f"{EVIL}=1"],
    )
    for verb in verbs:
        said = kage(*verb)
        assert not {"\x1b", "\x07", "\u202e", "\u200b"} & set(said.out + said.err), verb


def test_a_log_is_followed(house: House) -> None:
    a_day(house)
    with running(house, "log", "verdict=denied", "-n", "1", "--follow", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["id"] == "d3dddd"
        decided(house, "d8aaaa", "bash", {"command": "ls"})
        decided(house, "d9aaaa", "bash", {"command": "rm y"}, verdict="deny", who="rule")
        assert json.loads(process.stdout.readline())["id"] == "d9aaaa"
        process.send_signal(signal.SIGINT)
        assert process.wait(50) == 130
        assert process.stderr is not None and process.stderr.read() == ""


def test_a_reader_that_goes_away_is_told_nothing(house: House) -> None:
    for number in range(40):
        decided(house, f"d{number}", "bash", {"command": "x" * 9000})
    with running(house, "log", "--json", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        wait_for(lambda: process.poll() is not None, deadline=50, what="it ends")
        assert process.stderr.read() == ""

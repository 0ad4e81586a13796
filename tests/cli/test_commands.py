"""The verbs as a person uses them: what they print, their JSON, exit codes and mistakes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, running, server
from tests.waiting import wait_for

GOOD = server("srv", "echo")


def test_list_shows_every_entry_and_starts_nothing(house: House) -> None:
    record = house.home / "seen"
    house.write(
        server("srv", "echo", "--record", record),
        server("off", "echo", disabled="true"),
        server("web", "", url='"https://example.invalid/mcp"', headers='{ Authorization = "x" }'),
    )
    (house.workspace / ".mcp.json").write_text('{"mcpServers": {"team": {"command": "team-mcp"}}}')
    text = house.kage("mcp", "list")
    assert text.code == 0
    rows = [line.split() for line in text.out.splitlines()]
    assert rows[0] == ["NAME", "TYPE", "ENABLED", "ORIGIN", "ENDPOINT"]
    assert [row[:3] for row in rows[1:]] == [
        ["srv", "stdio", "yes"],
        ["off", "stdio", "no"],
        ["web", "http", "yes"],
        ["team", "stdio", "untrusted"],
    ]
    entries = house.kage("mcp", "list", "--json").json
    assert [entry["name"] for entry in entries] == ["srv", "off", "web", "team"]
    assert entries[2]["headers"] == ["Authorization"]  # names, never values
    assert not record.exists()


def test_list_without_a_server_shows_how_to_declare_one(house: House) -> None:
    ended = house.kage("mcp", "list")
    assert ended.code == 0
    assert "kage mcp add " in ended.out
    assert "kage mcp import" in ended.out
    assert str(house.config) in ended.out
    assert house.kage("mcp", "list", "--json").json == []


def test_get_shows_the_entry_and_the_three_lists(house: House) -> None:
    house.write(GOOD)
    found = house.kage("mcp", "get", "srv", "--json").json
    assert (found["name"], found["state"], found["place"]) == (
        "srv",
        "connected",
        f"{house.config}:1",
    )
    assert {"srv__echo", "srv__add"} <= {tool["name"] for tool in found["tools"]}
    assert found["prompts"] == found["resources"] == found["templates"] == []
    assert "tools" in found["capabilities"]
    text = house.kage("mcp", "get", "srv")
    assert text.code == 0
    assert "state: connected" in text.out
    assert "srv__echo" in text.out


def test_test_tells_whether_a_server_works(house: Inside) -> None:
    house.write(GOOD, server("bad", "exits", "--code", 3), server("off", "echo", disabled="true"))
    good = house.kage("mcp", "test", "srv", "--json")
    assert good.code == 0
    assert (good.json["state"], good.json["tools"]) == ("connected", 9)
    assert good.json["ready_ms"] > 0
    bad = house.outside("mcp", "test", "bad")
    assert bad.code == 1
    assert "failed" in bad.out
    assert len(bad.lines("kage: handshake", "exit code 3")) == 1
    assert bad.lines("line 1: cannot find module")  # its own stderr, on ours
    assert house.kage("mcp", "test", "off").code == 0  # asked for by name


def test_tools_lists_what_the_model_would_see(house: House) -> None:
    house.write(GOOD, server("bad", "exits"))
    one = house.kage("mcp", "tools", "srv", "--json")
    assert one.code == 0
    echo = next(tool for tool in one.json if tool["name"] == "srv__echo")
    assert (echo["raw"], echo["server"], echo["schema"]["type"]) == ("echo", "srv", "object")
    every = house.kage("mcp", "tools")
    assert every.code == 1  # one of them is down
    assert "srv__echo" in every.out
    assert len(every.lines("kage: handshake", "bad")) == 1


def test_tools_that_are_left_out_are_named_with_the_reason(house: House) -> None:
    house.write(server("srv", "badschema"))
    found = house.kage("mcp", "tools")
    assert found.code == 0
    assert "srv__good" in found.out
    for told in (found.err, house.kage("mcp", "get", "srv").out):
        assert len([line for line in told.splitlines() if "left out" in line]) == 11
        assert "no_schema: it has no inputSchema" in told
    assert house.kage("mcp", "tools", "--json").lines("left out", "no_schema")
    called = house.kage("mcp", "call", "srv__no_schema")
    assert called.code == 2
    assert "left out: it has no inputSchema" in called.err


def test_get_and_status_exit_0_for_a_server_that_is_down(house: House) -> None:
    house.write(server("bad", "exits", "--code", 3))
    for words in (("get", "bad"), ("status",)):
        shown = house.kage("mcp", *words)
        assert shown.code == 0
        assert "failed" in shown.out
        assert "test" in house.kage("mcp", words[0], "--help").out  # which exits 1


def test_status_shows_every_server_with_its_reason(house: House) -> None:
    house.write(GOOD, server("bad", "exits", "--code", 3), server("off", "echo", disabled="true"))
    found = {s["name"]: s for s in house.kage("mcp", "status", "--json").json}
    assert {name: s["state"] for name, s in found.items()} == {
        "srv": "connected",
        "bad": "failed",
        "off": "disabled",
    }
    assert found["bad"]["fault"]["exit_code"] == 3
    text = house.kage("mcp", "status").out
    assert "exit code 3" in next(line for line in text.splitlines() if line.startswith("bad"))


def test_call_runs_one_tool_and_says_how_it_ended_by_its_exit_code(house: House) -> None:
    house.write(
        GOOD,
        server("bad", "exits"),
        server("dies", "crash"),
        "[permissions.tools.srv__add]",
        'default = "deny"',
    )
    assert house.kage("mcp", "call", "srv__echo", "text=hello").out == "hello\n"
    for spelling in ("mcp__srv__echo", "mcp:srv:echo"):
        assert house.kage("mcp", "call", spelling, "text=hello").out == "hello\n"
    found = house.kage("mcp", "call", "srv__echo", '{"text": "hi"}', "--json")
    assert found.json["outcome"] == "ok"
    assert found.json["content"][0]["text"] == "hi"
    failed = house.kage("mcp", "call", "srv__fail", "text=broken")
    assert (failed.code, failed.out, failed.err) == (1, "", "broken\n")
    assert house.kage("mcp", "call", "srv__add", "a=1", "b=2").code == 4
    assert house.kage("mcp", "call", "bad__echo").code == 3
    assert house.kage("mcp", "call", "dies__crash").code == 5
    verdicts = [r["verdict"] for r in house.records() if r["kind"] == "decision"]
    assert verdicts == [*["allow"] * 5, "deny", "allow"]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("mcp", "test", "filesystm"), "filesystem"),
        (("mcp", "get", "filesystm"), "filesystem"),
        (("mcp", "tools", "filesystm"), "filesystem"),
        (("mcp", "call", "filesystem__ech"), "filesystem__echo"),
        (("mcp", "call", "filesystm__echo"), "filesystem"),
        (("mcp", "lst"), "list"),
        (("mpc",), "mcp"),
        (("--jsn",), "--json"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    house: House, words: tuple[str, ...], near: str
) -> None:
    house.write(server("filesystem", "echo"))
    ended = house.kage(*words)
    assert (ended.code, ended.out) == (2, "")
    assert near in ended.err.replace(" ".join(words), ""), ended.err


@pytest.mark.parametrize(
    "words",
    [
        ("mcp", "test", "srv"),
        ("mcp", "get", "srv"),
        ("mcp", "tools"),
        ("mcp", "status"),
        ("mcp", "call", "srv__echo"),
        ("-p", "hello"),
    ],
    ids=" ".join,
)
def test_the_agents_own_shell_cannot_start_or_call_a_server(
    house: House, words: tuple[str, ...]
) -> None:
    record = house.home / "seen"
    house.write(server("srv", "echo", "--record", record))
    ended = house.kage(*words, environ={"KAGE_AGENT": "1"})
    assert (ended.code, ended.out) == (2, "")
    assert "agent" in ended.err
    assert not record.exists()


def test_the_agents_bash_carries_the_mark(house: House) -> None:
    with ScriptedModel(
        [call("bash", command="echo mark=$KAGE_AGENT"), lambda request: say(request.last_result)]
    ) as model:
        house.use(model)
        ended = house.kage("-p", "go", "--allow", "bash")
    assert "mark=1" in ended.out


def test_session_verbs_find_a_conversation_by_the_beginning_of_its_id(house: House) -> None:
    assert "No sessions" in house.kage("session", "list").out
    with ScriptedModel([], then=say("the answer")) as model:
        house.use(model)
        house.kage("-p", "the question")
        listed = house.kage("session", "list", "--json").json
        assert [(s["title"], s["messages"]) for s in listed] == [("the question", 2)]
        name = listed[0]["id"]
        assert name in house.kage("session", "list").out
        shown = house.kage("session", "show", name[:-3])
        assert (shown.code, shown.err) == (0, "")
        assert "the answer" in shown.out
        assert len(house.kage("session", "show", name, "--json").json["messages"]) == 2
        missing = house.kage("session", "show", "zzz")
        assert missing.code in {1, 2}
        assert "zzz" in missing.err
        again = house.kage("session", "resume", name)  # needs a terminal
        assert again.code == 2
        house.kage("-p", "and then?", "--continue")
        assert len(model.requests[-1].messages) == 3


# SPEC J32: all mistakes at once, each with its place, what was expected and what stands there
BROKEN: dict[str, tuple[str, str]] = {
    "no command": ("[mcp.servers.s]\nargs = []", "1: mcp.servers.s: has no command"),
    "misspelt": ('[mcp.servers.s]\ncomand = "x"', '2: mcp.servers.s.comand: is not known; did you'),
    "list as command": (
        '[mcp.servers.s]\ncommand = ["x"]',
        "2: mcp.servers.s.command: has the wrong type, expected text, got a list",
    ),
    "number as args": (
        '[mcp.servers.s]\ncommand = "x"\nargs = [1]',
        "3: mcp.servers.s.args",
    ),
    "two ways": ('[mcp.servers.s]\ncommand = "x"\nurl = "http://h"', "3: mcp.servers.s.url"),
    "bad url": ('[mcp.servers.s]\nurl = "ftp://h"', "2: mcp.servers.s.url: is no http address"),
    "milliseconds": (
        '[mcp.servers.s]\ncommand = "x"\ntimeout = 30000',
        "3: mcp.servers.s.timeout: looks like milliseconds",
    ),
    "double underscore": ('[mcp.servers.a__b]\ncommand = "x"', "1: mcp.servers.a__b: is no name"),
    "negative limit": ("[limits]\nmax_turns = -1", "2: limits.max_turns"),
    "unknown verdict": ('[permissions.tools.bash]\ndefault = "maybe"', "2: permissions.tools.bash"),
    "no provider kind": (
        '[providers.p]\nkind = "telepathy"\nbase_url = "http://h"',
        "2: providers.p.kind",
    ),
    "not toml": ("[mcp\n", "1: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_told_with_its_place(house: House, name: str) -> None:
    text, words = BROKEN[name]
    house.write(text)
    ended = house.kage("config", "check")
    assert ended.code == 2
    assert f"{house.config}:{words}" in ended.err, ended.err
    assert ended.err.count(f"{house.config}:") == 1, ended.err


def test_all_mistakes_are_told_at_once_and_as_json(house: House) -> None:
    house.write(
        '[mcp.servers.s]\ncomand = "x"\n[mcp.servers.t]\ncommand = "x"\ntimeout = 30000',
        "[limits]\nmax_turns = -1",
    )
    text = house.kage("config", "check")
    assert (text.code, text.out, len(text.err.splitlines())) == (2, "", 3)
    found = house.kage("config", "check", "--json")
    assert found.code == 2
    assert [fault["line"] for fault in found.json] == [2, 5, 7]
    assert set(found.json[0]) == {"file", "line", "key", "what", "expected", "got"}
    for words in (("-p", "x"), ("mcp", "test", "t"), ("mcp", "status"), ("mcp", "serve")):
        ended = house.kage(*words)
        assert ended.code == 2, words
        assert len(ended.lines(str(house.config))) == 3


def test_a_sound_configuration_is_said_to_be_sound(house: House) -> None:
    nothing = house.kage("config", "check")
    assert (nothing.code, nothing.err) == (0, "")
    house.write(GOOD)
    assert house.kage("config", "check").out == f"{house.config}: sound\n"
    assert house.kage("config", "check", "--json").json == []


def test_path_shows_where_everything_is(house: House) -> None:
    found = house.kage("config", "path", "--json").json
    assert found["config"] == str(house.config)
    assert Path(found["data"]) == house.data
    assert str(house.config) in house.kage("config", "path").out


def test_a_named_configuration_is_used_instead(house: House, tmp_path: Path) -> None:
    house.write("[mcp.servers.own]\ncommand = 'x'")
    other = tmp_path / "other.toml"
    other.write_text("[mcp.servers.other]\ncommand = 'x'")
    listed = house.kage("--config", str(other), "mcp", "list", "--json").json
    assert [entry["name"] for entry in listed] == ["other"]
    missing = house.kage("--config", str(tmp_path / "none.toml"), "mcp", "list")
    assert missing.code == 2
    assert "none.toml" in missing.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("mcp",),
        *(("mcp", verb) for verb in ("list", "get", "test", "tools", "status", "call", "serve")),
        ("session",),
        *(("session", verb) for verb in ("list", "show", "resume")),
        ("config",),
        *(("config", verb) for verb in ("check", "path", "set", "get")),
        *(("mcp", verb) for verb in ("add", "add-json", "remove", "rm", "enable", "disable")),
        *(("mcp", verb) for verb in ("import", "export", "stub", "log")),
        ("doctor",),
        ("init",),
    ],
    ids=lambda words: " ".join(words) or "kage",
)
def test_the_help_of_every_command_has_an_example(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    from kage.cli.commands import run

    try:
        code = run([*words, "--help"])
    except SystemExit as stop:
        code = int(stop.code or 0)
    out = capsys.readouterr().out
    assert code == 0
    assert "xamples:" in out or "examples (" in out
    assert " ".join(("  kage", *words)) in out


def test_an_interrupted_test_leaves_nothing(house: House) -> None:
    house.write(server("slow", "slow", "--delay", 60))
    with running(house, "mcp", "test", "slow") as process:
        wait_for(lambda: len(house.processes()) >= 2, what="it is started")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(15) == 130
        assert process.stderr is not None
        assert not process.stderr.read().strip()
    house.empty()


def test_json_on_stdout_is_never_mixed_with_other_words(house: House) -> None:
    house.write(server("odd", "banner", "--lines", 5), server("bad", "exits"))
    assert json.loads(house.kage("mcp", "test", "odd", "--json").out)["stray_lines"] >= 5
    assert json.loads(house.kage("mcp", "test", "bad", "--json").out)["state"] == "failed"

"""Whatever is broken is told exactly once, with where and why, and the rest keeps working (K10)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.llm import ScriptedModel, call, drop, fail, say
from tests.llm.script import Turn
from tests.proof.house import Ended, House, server

FAST = {"restart": "{ delay = 0.05, max_delay = 0.1, max_attempts = 2 }"}
GOOD = server("good", "echo")
ALLOWED = [word for name in ("good", "bad", "odd") for word in ("--allow", f"{name}__*")]


def _hello(house: House, *more: str, turns: list[Turn] | None = None) -> Ended:
    """Let a whole run use the good server, with JSON lines."""
    script: list[Turn] = turns or [call("good__echo", text="still here"), say("done")]
    with ScriptedModel(script) as model:
        house.use(model)
        ended = house.kage("-p", "hello", "--json", *ALLOWED, *more)
        assert model.unused == 0, ended
    return ended


def _allowing(names: Iterable[str]) -> list[str]:
    return [word for name in names for word in ("--allow", f"{name}__*")]


def _results(ended: Ended) -> list[dict[str, Any]]:
    messages = [event["message"] for event in ended.of("message_appended")]
    return [message for message in messages if message["kind"] == "tool_message"]


def _good_works(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    ok = [r for r in _results(ended) if r["name"] == "good__echo" and r["outcome"] == "ok"]
    assert ok[-1]["content"][0]["text"] == "still here"


# each server: its entry, the stage it fails in, words of its one report
STARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "missing": (
        server("missing", "", command='"no-such-program"'),
        "spawn",
        ("Cannot find no-such-program", "PATH", "full path"),
    ),
    "launcher": (
        server("launcher", "", command='"npx"', env='{ PATH = "/nowhere" }'),
        "spawn",
        ("Cannot find npx", "Node.js"),
    ),
    "plain-file": (
        server("plain-file", "", command='"./server.py"'),
        "spawn",
        ("not executable", "chmod +x"),
    ),
    "folder": (
        server("folder", "", command='"/"'),
        "spawn",
        ("Cannot start /", "is a folder"),
    ),
    "nowhere": (
        server("nowhere", "echo", cwd='"/no/such/folder"'),
        "spawn",
        ("/no/such/folder",),
    ),
    "exits": (
        server("exits", "exits", "--code", 3, stderr='"log"', **FAST),
        "handshake",
        ("exit code 3", "| line 3: cannot find module", "The launcher was found"),
    ),
    "killed": (
        server("killed", "exits", "--signal", 9, "--lines", 0, **FAST),
        "handshake",
        ("signal SIGKILL", "see its output above"),
    ),
    "silent": (
        server("silent", "silent", timeout='"1s"', **FAST),
        "handshake",
        ("never answered the handshake within 1 s", "raise timeout for [mcp.servers.silent]"),
    ),
    "cat": (
        server("cat", "", command='"cat"', timeout='"1s"', **FAST),
        "handshake",
        ("MCP server",),
    ),
    "version": (
        server("version", "wrong_version"),
        "handshake",
        ("1999-01-01",),
    ),
    "web": (
        server("web", "", url='"http://127.0.0.1:9/mcp"', **FAST),
        "handshake",
        ("http://127.0.0.1:9/mcp", "nothing listens"),
    ),
    "unset": (
        server("unset", "echo", env='{ TOKEN = "${KAGE_TEST_UNSET}" }'),
        "config",
        ("KAGE_TEST_UNSET",),
    ),
}


def _report(ended: Ended, name: str) -> str:
    """Give the one report about a server, with the lines that belong to it."""
    lines = ended.err.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(f"kage: server {name} ")]
    assert len(starts) == 1, (name, ended.err)
    end = starts[0] + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    return "\n".join(lines[starts[0] : end])


def test_each_server_that_does_not_start_is_told_once_with_stage_and_reason(house: House) -> None:
    (house.workspace / "server.py").write_text("print()")
    house.write(*(entry for entry, _, _ in STARTS.values()), GOOD)
    ended = _hello(house)
    _good_works(ended)
    statuses = [event["status"] for event in ended.of("server_changed")]
    down = [s for s in statuses if s["fault"] and s["state"] in {"failed", "connecting"}]
    failed = {s["name"]: s["fault"]["stage"] for s in down}  # some are still tried again
    assert failed == {name: stage for name, (_, stage, _) in STARTS.items()}
    for name, (_, stage, words) in STARTS.items():
        report = _report(ended, name)
        for word in (f"({stage})", *words):
            assert word in report, report


# each server: its entry, a call it must answer
HEALS: dict[str, tuple[str, Turn]] = {
    "dies": (server("dies", "probe_dies"), call("dies__echo", text="fine")),
    "deaf": (server("deaf", "probe_deaf"), call("deaf__echo", text="fine")),
    "banner": (server("banner", "banner", "--lines", 5), call("banner__echo", text="fine")),
    "bytes": (server("bytes", "bad_utf8"), call("bytes__send")),
    "old": (server("old", "legacy24"), call("old__echo", text="fine")),
    "loud": (
        server("loud", "noisy", "--lines", 200_000, "--long", "--bytes", stderr='"log"'),
        call("loud__echo", text="fine"),
    ),
}


def test_what_kage_can_live_with_costs_no_call_and_no_report(house: House) -> None:
    house.write(*(entry for entry, _ in HEALS.values()), GOOD)
    turns: list[Turn] = [
        [turn for _, turn in HEALS.values()], call("good__echo", text="still here"), say("done"),
    ]  # fmt: skip
    ended = _hello(house, *_allowing(HEALS), turns=turns)
    _good_works(ended)
    results = {r["name"].split("__")[0]: r["outcome"] for r in _results(ended)}
    assert results == dict.fromkeys([*HEALS, "good"], "ok")
    own = [line for line in ended.err.splitlines() if line.startswith("kage:")]
    assert not own


def test_invalid_tools_cost_only_themselves_and_are_named_once(house: House) -> None:
    house.write(server("odd", "badschema"), GOOD)
    turns: list[Turn] = [call("odd__good"), call("good__echo", text="still here"), say("done")]
    ended = _hello(house, turns=turns)
    _good_works(ended)
    assert _results(ended)[0]["outcome"] == "ok"
    left_out = ended.lines("server odd: left out")
    assert left_out
    assert len(left_out) == len(set(left_out))
    last = [e["status"] for e in ended.of("server_changed") if e["status"]["name"] == "odd"][-1]
    assert len(last["dropped"]) == len(left_out)


def test_odd_names_are_made_fit_and_each_still_reaches_its_tool(house: House) -> None:
    house.write(server("odd", "names"), GOOD)
    with ScriptedModel([say("ok")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
        names = [name for name in model.requests[0].tools if name.startswith("odd__")]
    assert ended.code == 0
    assert len(names) >= 15
    assert all(len(name) <= 64 and name.isascii() for name in names)
    long = next(name for name in names if "xxxx" in name)
    called = house.kage("mcp", "call", long)
    assert (called.code, called.out.strip()[:5]) == (0, "tool "), called


# each server: its entry, the call that goes wrong, how it ends, words of its one result
CALLS: dict[str, tuple[str, Turn, str, tuple[str, ...]]] = {
    "crash": (
        server("crash", "crash", "--when", "after", **FAST),
        call("crash__crash"),
        "unknown",
        ("crash", "exit code 7"),
    ),
    "half": (
        server("half", "crash", "--when", "half", **FAST),
        call("half__crash"),
        "unknown",
        ("half", "exit code 7"),
    ),
    "hang": (
        server("hang", "silent", "--listed", tool_timeout='"1s"'),
        call("hang__hang"),
        "unknown",
        ("hang", "1 s", "may still be running"),
    ),
    "full": (
        server("full", "stops_reading", tool_timeout='"1s"'),
        call("full__take", text="x" * 300_000),
        "unknown",
        ("full", "take"),
    ),
    "huge": (
        server("huge", "huge_line", max_message_bytes="2_000_000"),
        call("huge__huge", size=8_000_000),
        "tool_error",
        ("huge", "bytes"),
    ),
    "null": (
        server("null", "odd_results"),
        call("null__odd", how="null"),
        "tool_error",
        ("null",),
    ),
    "error": (
        server("error", "odd_results"),
        call("error__odd", how="error"),
        "tool_error",
        ("boom",),
    ),
}


def test_each_call_that_fails_has_one_honest_result_and_the_run_goes_on(house: House) -> None:
    house.write(*(entry for entry, *_ in CALLS.values()), GOOD)
    turns: list[Turn] = [
        [turn for _, turn, *_ in CALLS.values()],
        call("good__echo", text="still here"),
        say("done"),
    ]
    ended = _hello(house, *_allowing(CALLS), turns=turns)
    _good_works(ended)
    by_server: dict[str, list[dict[str, Any]]] = {}
    for result in _results(ended):
        by_server.setdefault(result["name"].split("__")[0], []).append(result)
    assert {name: len(found) for name, found in by_server.items()} == dict.fromkeys(
        [*CALLS, "good"], 1
    )
    for name, (_, _, outcome, words) in CALLS.items():
        result = by_server[name][0]
        text = result["content"][0]["text"]
        assert result["outcome"] == outcome, (name, text)
        for word in words:
            assert word in text, (name, text)
        assert "\x1b" not in ended.err
    records = house.records()
    for kind in ("decision", "outcome"):
        assert len([r for r in records if r["kind"] == kind]) == len(CALLS) + 1


def test_a_crash_while_idle_takes_the_tools_away_and_is_told_once_per_try(house: House) -> None:
    house.write(server("bad", "crash", "--when", "idle", "--after", 0.3, **FAST), GOOD)
    turns: list[Turn] = [
        call("bash", command="sleep 3"), call("good__echo", text="still here"), say("done"),
    ]  # fmt: skip
    ended = _hello(house, "--allow", "bash", turns=turns)
    _good_works(ended)
    states = [e["status"]["state"] for e in ended.of("server_changed")
              if e["status"]["name"] == "bad"]  # fmt: skip
    assert "connected" in states
    reports = ended.lines("kage: ", "server bad failed")
    assert len(reports) >= 1
    assert len(reports) == len(set(reports))  # no report twice


def test_a_storm_of_changes_ends_with_the_right_tools(house: House) -> None:
    house.write(server("odd", "changer"), GOOD)
    turns: list[Turn] = [
        call("odd__storm", count=2000), call("bash", command="sleep 2"),
        call("odd__extra_1"), call("good__echo", text="still here"), say("done"),
    ]  # fmt: skip
    ended = _hello(house, "--allow", "bash", turns=turns)
    _good_works(ended)
    assert [r["outcome"] for r in _results(ended)][2] == "ok", _results(ended)[2]


@pytest.mark.parametrize(
    ("turns", "code", "words"),
    [
        ([fail(401)], 1, ("refused", "ANTHROPIC_API_KEY")),
        ([fail(429, retry_after=0.05), say("done")], 0, ("trying again",)),
        ([fail(500), say("done")], 0, ("trying again",)),
        ([drop("half"), say("done")], 0, ("trying again",)),
        ([fail(400, "the input is odd")], 1, ("the input is odd",)),
    ],
    ids=["401", "429", "500", "drop", "400"],
)
def test_a_failing_model_is_told_once(
    house: House, turns: list[Turn], code: int, words: tuple[str, ...]
) -> None:
    with ScriptedModel(turns) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert ended.code == code, ended
    assert ended.out == ("done\n" if code == 0 else "")
    assert len(ended.err.strip().splitlines()) == 1, ended.err
    for word in words:
        assert word in ended.err


@pytest.fixture
def read_only(house: House) -> Iterator[Path]:
    """Make the data folder one nobody can write to, root neither: a file stands in its way."""
    house.data.parent.mkdir(parents=True, exist_ok=True)
    house.data.write_text("")
    yield house.data


def test_without_a_place_to_write_the_run_goes_on_in_memory_and_says_so(
    house: House, read_only: Path
) -> None:
    house.write(GOOD)
    with ScriptedModel([call("ls"), say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert (ended.code, ended.out) == (0, "done\n"), ended
    lines = ended.err.strip().splitlines()
    assert lines
    assert len(lines) == len(set(lines)), ended.err
    assert [line for line in lines if str(read_only) in line], ended.err


def test_a_corrupt_session_loads_what_is_whole_and_says_what_was_dropped(house: House) -> None:
    with ScriptedModel([say("one"), say("two")]) as model:
        house.use(model)
        house.kage("-p", "first")
        file = next((house.data / "sessions").glob("*/session.jsonl"))
        with file.open("ab") as stream:
            stream.write(b'{"kind": "user", "id": "m1", "cont')
        name = file.parent.name
        shown = house.kage("session", "show", name)
        assert "you: first" in shown.out
        assert len(shown.err.strip().splitlines()) == 1, shown.err
        ended = house.kage("-p", "second", "--resume", name, "--json")
    assert ended.code == 0
    assert len(ended.of("session_opened")[0]["dropped"]) == 1
    assert [m["role"] for m in model.requests[1].messages] == ["user", "assistant", "user"]


def test_corrupt_grants_allow_nothing_and_are_told_once(house: House) -> None:
    house.write(GOOD)
    house.data.mkdir(parents=True)
    (house.data / "grants.toml").write_text('[[grants]\nrule = "good__echo"')
    with ScriptedModel([call("good__echo", text="x"), say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert ended.code == 4
    assert len(ended.lines("grants.toml")) == 1, ended.err
    assert (house.data / "grants.toml").read_text().startswith("[[grants]\n")


def test_a_broken_config_stops_print_mode_with_every_mistake(house: House) -> None:
    house.write('[mcp.servers.a]\ncomand = "x"', "[limits]\nmax_turns = -1")
    ended = house.kage("-p", "hello")
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 2
    assert all(line.startswith(f"{house.config}:") for line in ended.err.splitlines())


def test_kages_own_files_are_for_the_person_alone(house: House) -> None:
    house.write(GOOD)
    _hello(house)
    for folder, _, files in os.walk(house.data):
        for file in files:
            mode = os.stat(os.path.join(folder, file)).st_mode
            assert not stat.S_IMODE(mode) & 0o077, os.path.join(folder, file)

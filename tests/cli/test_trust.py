"""``kage mcp trust`` and ``get --origin``, used by a person, a script and the agent's shell."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from kage.permissions.decisions.log import verify
from tests.cli.conftest import Kage
from tests.proof.house import House, server
from tests.stubs import stub
from tests.tui.terminal import Terminal
from tests.waiting import wait_for


def team(house: House, *options: object, **keys: object) -> Path:
    """Declare a stub server in the project's .mcp.json."""
    command, *args = stub("echo", *options)
    entry = {"command": command, "args": args, **keys}
    path = house.workspace / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"team": entry}}))
    return path


def looked_at(house: House, name: str = "team") -> str:
    shown = house.kage("mcp", "trust", name, "--show", "--json")
    assert shown.json["state"] != "trusted" and shown.code == 1
    found: str = shown.json["hash"]
    return found


def test_a_script_trusts_exactly_what_it_looked_at(house: House) -> None:
    team(house, env={"MODE": "${MODE:-plain}"})
    shown = house.kage("mcp", "trust", "team", "--show", "--json").json
    assert shown["place"] == f"{house.workspace / '.mcp.json'}:1"
    assert shown["entry"]["env MODE"] == "${MODE:-plain}"
    assert shown["variables"] == {"MODE": False}
    assert "echo.py" in shown["entry"]["command"] and shown["entry"]["program"].startswith("/")
    assert house.kage("mcp", "trust", "team", "--yes").code == 2
    assert house.kage("mcp", "trust", "team", "--yes", "--hash", "0" * 64).code == 2
    assert house.kage("mcp", "test", "team", "--json").json["state"] == "untrusted"
    done = house.kage("mcp", "trust", "team", "--yes", "--hash", shown["hash"])
    assert (done.code, done.out) == (0, "team is trusted\n")
    assert house.kage("mcp", "test", "team", "--json").json["state"] == "connected"
    (entry,) = house.kage("mcp", "list", "--json").json
    assert entry["state"] == "enabled"
    assert verify(house.data / "decisions") == []


def test_a_changed_entry_stops_and_shows_the_difference(house: House) -> None:
    team(house)
    house.kage("mcp", "trust", "team", "--yes", "--hash", looked_at(house))
    team(house, "--record", house.home / "mark")
    assert house.kage("mcp", "test", "team", "--json").json["state"] == "untrusted"
    shown = house.kage("mcp", "trust", "team", "--show")
    assert "changed since it was trusted" in shown.out
    old, new = (line for line in shown.out.splitlines() if line.startswith(("    - ", "    + ")))
    assert "--record" not in old and "--record" in new
    assert not (house.home / "mark").exists()


def test_trust_is_taken_back_or_refused_for_good(house: House) -> None:
    team(house)
    house.kage("mcp", "trust", "team", "--yes", "--hash", looked_at(house))
    assert house.kage("mcp", "trust", "team", "--revoke").code == 0
    assert house.kage("mcp", "trust", "team", "--revoke").code == 1
    assert house.kage("mcp", "trust", "team", "--never").code == 0
    (entry,) = house.kage("mcp", "trust", "--list", "--json").json
    assert entry["state"] == "never"
    assert house.kage("mcp", "list", "--json").json[0]["state"] == "disabled"


def test_enter_through_every_default_trusts_nothing(house: House) -> None:
    team(house, "--record", house.home / "mark")
    with house.terminal("mcp", "trust", "team") as terminal:
        terminal.until("[y/N]")
        terminal.send("\r")
        terminal.until("team is not trusted")
    with house.terminal("mcp", "trust", "team", columns=200) as terminal:
        terminal.until("[y/N]")
        terminal.send("y\r")
        terminal.until("team is trusted")
    assert not (house.home / "mark").exists()


def test_the_agent_may_not_trust_and_nobody_is_asked_without_a_terminal(house: House) -> None:
    team(house)
    found = looked_at(house)
    agent = {"KAGE_AGENT": "1"}
    for words in (["--yes", "--hash", found], [], ["--revoke"], ["--never"]):
        assert house.kage("mcp", "trust", "team", *words, environ=agent).code == 2
    asked = house.kage("mcp", "trust", "team")
    assert asked.code == 2 and "Nobody is here to be asked" in asked.err and found in asked.out
    assert house.kage("mcp", "trust", "nobody").code == 2
    assert not (house.data / "trust.toml").exists()


def test_a_run_names_what_is_not_trusted_and_fails_only_when_it_is_required(house: House) -> None:
    mark = house.home / "mark"
    team(house, "--record", mark)
    ended = house.kage("-p", "hello", "--model", "offline")
    assert ended.code == 0
    assert len(ended.lines("server team is not started", "not trusted yet")) == 1
    assert ended.lines("kage mcp trust team")
    assert house.kage("-p", "hello", "--model", "offline", "--require-mcp").code == 3
    team(house, "--record", mark, required=True)
    assert house.kage("-p", "hello", "--model", "offline").code == 3
    assert not mark.exists()


def test_a_project_replaces_the_persons_server_only_once_trusted(house: House) -> None:
    theirs = house.home / "theirs"
    house.write(server("team", "echo"))
    team(house, "--record", theirs)
    assert house.kage("mcp", "test", "team").code == 0
    ended = house.kage("-p", "hello", "--model", "offline")
    assert ended.lines("would replace your server team", "not trusted")
    assert not theirs.exists()
    house.kage("mcp", "trust", "team", "--yes", "--hash", looked_at(house))
    assert house.kage("mcp", "test", "team").code == 0
    assert theirs.exists()
    theirs.unlink()
    house.write(server("team", "echo", locked="true"))
    assert house.kage("mcp", "test", "team").code == 0
    assert not theirs.exists()


def test_origin_names_file_and_line_of_every_value(house: House) -> None:
    house.write('[mcp]\ntool_timeout = "90s"', server("srv", "echo", timeout='"5s"'))
    found = house.kage("mcp", "get", "srv", "--origin", "--json").json
    assert (found["tool_timeout"]["value"], found["tool_timeout"]["layer"]) == (90, "user [mcp]")
    assert (found["tool_timeout"]["file"], found["tool_timeout"]["line"]) == (str(house.config), 2)
    assert found["timeout"]["replaced"] == [
        {"value": 30.0, "layer": "default", "file": "", "line": 0}
    ]
    text = house.kage("mcp", "get", "srv", "--origin")
    assert any(
        line.split()[:2] == ["timeout", "5.0"] and line.endswith(f"{house.config}:6")
        for line in text.out.splitlines()
    ), text.out


@pytest.mark.parametrize("kind", ["trust.toml", "decisions"])
def test_forged_trust_starts_nothing(house: House, kind: str) -> None:
    mark = house.home / "mark"
    team(house, "--record", mark)
    found = looked_at(house)
    house.data.mkdir(parents=True, exist_ok=True)
    if kind == "trust.toml":
        (house.data / kind).write_text(
            f'version = 1\n[[entry]]\nname = "team"\norigin = "{house.workspace}"\n'
            f'hash = "{found}"\ndecision = "d1"\n'
        )
    else:  # a record in the log alone is no trust either
        (house.data / kind).mkdir()
        line = {"n": 1, "prev": "0" * 64, "kind": "trust", "act": "trusted", "entry_hash": found}
        (house.data / kind / "2026-01.jsonl").write_text(json.dumps(line) + "\n")
    assert house.kage("mcp", "test", "team").code == 1
    assert not mark.exists()


def _press(terminal: Terminal, key: str, done: Callable[[], bool]) -> None:
    """Press a key until it is taken: not before the question has stood there for a moment."""

    def tried() -> bool:
        terminal.send(key)
        terminal.read(0.7)
        return done()

    wait_for(tried, deadline=30, what="the answer is taken")


def test_a_kage_on_the_screen_asks_and_starts_only_what_is_trusted(house: House) -> None:
    mark = house.home / "mark"
    team(house, "--record", mark)
    with house.terminal(columns=120) as terminal:
        terminal.until("May this server start?")
        terminal.until("echo.py")
        _press(terminal, "\r", lambda: "is not started; /mcp trust" in terminal.text)
        assert not mark.exists()
        terminal.send("/mcp trust team\r")
        terminal.until("May this server start?")
        _press(terminal, "1", mark.exists)
    (entry,) = tomllib.loads((house.data / "trust.toml").read_text())["entry"]
    assert entry["name"] == "team" and entry["seen"]["transport"] == "stdio"


def test_a_running_kage_holds_what_is_written_and_hears_of_trust_from_another_shell(
    house: House,
) -> None:
    mine, evil = house.home / "mine", house.home / "evil"
    team(house, "--record", mine)
    house.write("")
    with house.terminal(columns=120) as terminal:
        terminal.until("May this server start?")
        _press(terminal, "\r", lambda: "is not started; /mcp trust" in terminal.text)
        house.kage("mcp", "trust", "team", "--yes", "--hash", looked_at(house))
        wait_for(mine.exists, deadline=30, what="it starts")
        house.write(server("added", "echo", "--record", evil))
        terminal.until("May this change count?")
        assert not evil.exists()
    ended = house.kage("-p", "hello", "--model", "offline")
    assert ended.code == 0 and ended.lines("server added is not started", "held")
    assert not evil.exists()
    found = looked_at(house, "added")
    assert house.kage("mcp", "trust", "added", "--yes", "--hash", found).code == 0
    assert house.kage("mcp", "test", "added").code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": "${OPENAI_API_KEY}"}}}}', "a: uses"),
        ("{", ".mcp.json:1"),
    ],
    ids=["an entry", "the whole file"],
)
def test_a_mistake_of_a_project_costs_its_servers_and_stops_nobody(
    house: House, kage: Kage, text: str, told: str
) -> None:
    (house.workspace / ".mcp.json").write_text(text)
    house.write('model = "offline"', server("mine", "echo"))
    for words in (("mcp", "get", "mine"), ("-p", "ls path=."), ("mcp", "list")):
        ended = kage(*words)
        assert ended.code == 0, ended.err
        assert ended.err.count(told) == 1 and "left out" in ended.err
    assert kage("config", "check").code == 2
    assert kage("--require-mcp", "-p", "ls path=.").code == 2
    rules = house.workspace / ".kage" / "config.toml"
    rules.parent.mkdir()
    rules.write_text("[permissions.tools.bash]\ndeny = 3\n")  # it might have refused something
    assert kage("-p", "ls path=.").code == 2

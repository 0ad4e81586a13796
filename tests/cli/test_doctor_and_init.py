"""The first look and the first file, the stub for people's own tests, and the log for faults."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from kage.cli.init import PROJECT_STARTER, STARTER
from kage.cli.logs import rules
from kage.core.errors import UsageError
from tests.cli.conftest import Inside, Kage
from tests.proof.house import House, server

ROOT = Path(__file__).parents[2]
STUB = json.dumps(["PYTHONPATH=" + str(ROOT), sys.executable, "-m", "kage", "mcp", "stub", "echo"])


def test_the_doctor_looks_at_everything_and_names_fixes(
    house: House, kage: Kage, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = house.home / "seen"
    house.write(
        'model = "offline"',
        server("good", "echo"),
        server("bad", "exits", "--code", 3),
        server("off", "echo", disabled="true"),
    )
    (house.workspace / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"team": {"command": "touch", "args": [str(record)]}}})
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-nobody")
    ended = kage("doctor", "--json")
    assert ended.code == 1
    assert "key-of-nobody" not in ended.out
    found = {(one["area"], one["name"]): one for one in ended.json}
    states = {name: one["state"] for (area, name), one in found.items() if area == "servers"}
    assert states == {"good": "ok", "bad": "fail", "off": "ok", "team": "warn"}
    assert found["servers", "bad"]["fix"]
    assert "trust team" in found["servers", "team"]["fix"]
    assert not record.exists()
    assert found["model", "keys"]["text"] == "ANTHROPIC_API_KEY set"
    assert {area for area, _ in found} == {
        "kage", "terminal", "folders", "configuration", "model", "tools", "servers", "plugins",
    }  # fmt: skip
    for one in ended.json:
        assert one["state"] != "fail" or one["fix"], one


def test_the_doctor_tells_mistakes_and_is_content_when_there_are_none(
    house: House, kage: Kage
) -> None:
    house.write('model = "offline"\n[limits]\nmax_turns = -1')
    sick = kage("--no-mcp", "doctor")
    assert sick.code == 1
    assert f"{house.config}:3: limits.max_turns" in sick.out
    house.write('model = "offline"', server("srv", "exits"))
    well = kage("--no-mcp", "doctor")
    assert well.code == 0, well.out
    assert "1 configured, none is started" in well.out


def test_init_writes_a_file_that_is_sound_also_with_everything_taken_in(
    house: House, kage: Kage
) -> None:
    made = kage("init")
    assert made.code == 0
    assert str(house.config) in made.out and "kage mcp add" in made.out
    assert house.config.read_text() == STARTER
    assert stat.S_IMODE(house.config.stat().st_mode) == 0o600
    assert kage("config", "check").code == 0
    bare = [line.removeprefix("#") if line[:2] > "# " else line for line in STARTER.splitlines()]
    house.config.write_text("\n".join(bare))
    assert {"model", "providers", "mcp", "permissions"} == set(tomllib.loads("\n".join(bare)))
    assert kage("config", "check").code == 0
    again = kage("init")
    assert (again.code, again.out) == (2, "")
    assert "stays as it is" in again.err
    assert "max_parallel_calls" in kage("init", "--full").out


def test_init_takes_over_servers_only_when_that_is_wished(house: House, kage: Kage) -> None:
    other = house.home / ".cursor" / "mcp.json"
    other.parent.mkdir()
    other.write_text('{"mcpServers": {"docs": {"command": "docs-mcp"}}}')
    asked = kage("init", "--json")
    assert asked.json == {"file": str(house.config), "servers": []}
    assert "kage mcp import" in asked.err
    house.config.unlink()
    taken = kage("init", "--yes")
    assert "+ docs" in taken.out and "kage mcp test docs" in taken.out
    assert tomllib.loads(house.config.read_text())["mcp"]["servers"] == {
        "docs": {"command": "docs-mcp"}
    }
    made = kage("init", "--scope", "project")
    assert made.code == 0
    assert (house.workspace / ".kage" / "config.toml").read_text() == PROJECT_STARTER
    assert kage("config", "check").code == 0


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
def test_the_shipped_stub_does_everything_right(house: House, protocol: str) -> None:
    house.write(
        f'[mcp.servers.try]\ncommand = "env"\nargs = {STUB}\nprotocol = "{protocol}"\n',
        'env = { HOME = "${HOME}" }',
    )
    assert house.kage("mcp", "call", "try__echo", "text=hello").out == "hello\n"
    if protocol == "auto":
        assert house.kage("mcp", "call", "try__add", "a=1", "b=2.5").out == "3.5\n"
        failed = house.kage("mcp", "call", "try__fail", "text=as wished")
        assert (failed.code, failed.err) == (1, "as wished\n")
        assert house.kage("mcp", "call", "try__sleep", "seconds=0").out == "slept 0 s\n"


def test_the_debug_log_goes_to_a_file_by_name_and_level_and_hides_secrets(house: Inside) -> None:
    house.write(server("srv", "echo", env='{ MY_TOKEN = "${SECRET}" }'))
    quiet = {"SECRET": "s3cr3t-value"}
    file = house.data / "debug.log"
    assert house.outside("mcp", "test", "srv", environ=quiet).code == 0
    assert not file.exists()
    ended = house.outside("mcp", "test", "srv", environ={**quiet, "KAGE_LOG": "mcp.*=debug"})
    assert ended.code == 0
    assert "DEBUG" not in ended.out + ended.err
    text = file.read_text()
    assert "kage.mcp.server.srv connected, 9 tools" in text
    assert "s3cr3t" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.unlink()
    house.outside("mcp", "test", "srv", environ={**quiet, "KAGE_LOG": "agent.*=debug"})
    assert file.read_text() == ""
    wrong = house.outside("mcp", "test", "srv", environ={**quiet, "KAGE_LOG": "mcp=loud"})
    assert (wrong.code, wrong.out) == (2, "")
    assert "mcp.*=debug" in wrong.err


def test_the_names_and_levels_of_the_debug_log() -> None:
    import logging

    def takes(text: str, name: str, level: int) -> bool:
        record = logging.LogRecord(name, level, "", 0, "", (), None)
        return any(rule.takes(record) for rule in rules(text))

    assert takes("mcp.*=debug", "kage.mcp.server.x", logging.DEBUG)
    assert takes("mcp.*", "mcp", logging.DEBUG)
    assert takes("kage.mcp.*=info, agent.*=error", "kage.mcp.x", logging.INFO)
    assert not takes("mcp.*=info", "kage.mcp.x", logging.DEBUG)
    assert not takes("mcp.*=debug", "kage.agent.run", logging.ERROR)
    assert not rules("")
    with pytest.raises(UsageError, match="NAME=LEVEL"):
        rules("=debug")


def test_the_shell_completes_names_without_starting_anything(house: House) -> None:
    record = house.home / "seen"
    house.write(server("alpha", "echo", "--record", record), server("beta", "echo"))
    words = {"COMP_WORDS": "kage mcp get a", "COMP_CWORD": "3"}
    ended = house.kage(environ={"_KAGE_COMPLETE": "bash_complete", **words})
    assert ended.out == "plain,alpha\n"
    words = {"COMP_WORDS": "kage mcp call be", "COMP_CWORD": "3"}
    ended = house.kage(environ={"_KAGE_COMPLETE": "bash_complete", **words})
    assert ended.out == "plain,beta__\n"
    assert not record.exists()

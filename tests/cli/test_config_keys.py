"""Single keys of the settings from the command line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Kage
from tests.proof.house import House

MINE = """\
# mine
model = "offline" # no key

[mcp]
default_timeout = "30s" # long enough

[mcp.servers.fs]
command = "x"
"""


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("mcp.enabled", "true", "enabled = true"),
        ("mcp.default_timeout", "45s", 'default_timeout = "45s" # long enough'),
        ("mcp.default_timeout", "45", "default_timeout = 45 # long enough"),
        ("model", "anthropic:claude-x", 'model = "anthropic:claude-x" # no key'),
        ("limits.max_turns", "7", "max_turns = 7"),
        ("mcp.servers.fs.args", '["a", "b"]', 'args = ["a", "b"]'),
        ("mcp.servers.fs.env.PORT", "8080", 'env = { PORT = "8080" }'),
        ("mcp.servers.fs.command", "true", 'command = "true"'),
        ("keys.ctrl+g", "servers", '"ctrl+g" = "servers"'),
        ('permissions.tools."fs__*".default', "deny", 'default = "deny"'),
        ("permissions.mode", "ask", 'mode = "ask"'),
        ("plugins.x.config.max", "4", "max = 4"),
    ],
)
def test_a_key_is_set_by_its_type_and_comments_stay(
    house: House, kage: Kage, key: str, value: str, line: str
) -> None:
    house.write(MINE)
    ended = kage("config", "set", key, value)
    if key.endswith("env.PORT"):
        line = 'PORT = "8080"'
    assert (ended.code, ended.err) == (0, "")
    text = house.config.read_text()
    assert line in text.splitlines()
    number = text.splitlines().index(line) + 1
    assert ended.out == f"{key}: {house.config}:{number}\n"
    assert "# mine" in text
    assert kage("config", "check").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mcp.default_timeout", "90000"), "looks like milliseconds"),
        (("limits.max_turns", "many"), "expected a whole number"),
        (("limits.max_turns", "-5"), "limits.max_turns"),
        (("mcp.nope", "1"), "mcp.nope: is not known"),
        (("mcp.servers.fs.comand", "x"), 'did you mean "command"?'),
        (("mcp.servers.fs", "x"), "cannot be changed"),
        (("mcp.servers.fs.url", "https://h/"), "stands beside command"),
        (("model.name", "x"), "cannot be changed"),
        (("a..b", "1"), "is no key"),
        (("model",), "either a value or --unset"),
        (("model", "x", "--unset"), "either a value or --unset"),
    ],
)
def test_nothing_is_written_that_kage_would_refuse(
    house: House, kage: Kage, words: tuple[str, ...], said: str
) -> None:
    house.write(MINE)
    ended = kage("config", "set", *words)
    assert ended.code in {1, 2}
    assert ended.out == ""
    assert said in ended.err
    assert house.config.read_text() == MINE + "\n"


def test_a_key_is_read_and_taken_out_again(house: House, kage: Kage) -> None:
    house.write(MINE, "env = { MY_TOKEN = 'abcdef', A = '1' }")
    assert kage("config", "get", "model").out == "offline\n"
    assert kage("config", "get", "mcp.default_timeout", "--json").json == "30s"
    shown = kage("config", "get", "mcp")
    assert 'servers.fs.command = "x"' in shown.out.splitlines()
    found: dict[str, Any] = kage("config", "get", "mcp.servers.fs", "--json").json
    assert found["env"] == {"MY_TOKEN": "[hidden]", "A": "1"}
    assert "abcdef" not in shown.out
    missing = kage("config", "get", "theme")
    assert (missing.code, missing.out) == (1, "")
    gone = kage("config", "set", "model", "--unset", "--json").json
    assert (gone["written"], gone["line"]) == (True, 0)
    assert "model" not in house.config.read_text()
    assert "nothing to change" in kage("config", "set", "model", "--unset").out


def test_a_dry_run_and_the_first_key_of_all(house: House, kage: Kage) -> None:
    shown = kage("config", "set", "mcp.enabled", "true", "--dry-run")
    assert "+enabled = true" in shown.out
    assert not house.config.exists()
    assert kage("config", "set", "mcp.enabled", "true").code == 0
    assert house.config.read_text() == "[mcp]\nenabled = true\n"
    assert kage("config", "set", "mcp.enabled", "false", "--scope", "project").code == 2

"""Adding, removing and switching servers: the file, what is said, and what is refused."""

from __future__ import annotations

import io
import json
import tomllib
from typing import Any

import pytest

from kage.cli.change import prepare, write
from kage.cli.ground import Options, ground
from kage.config.edit import TomlText
from tests.cli.conftest import Kage
from tests.proof.house import House, server
from tests.stubs import stub

MINE = "# mine\nmodel = 'offline' # no key\n\n[limits]\nmax_turns = 3 # few"


def servers(house: House) -> dict[str, Any]:
    """Give the servers of config.toml."""
    mcp = tomllib.loads(house.config.read_text()).get("mcp", {})
    found: dict[str, Any] = mcp.get("servers", {})
    return found


def test_a_server_is_added_where_it_is_said_and_the_rest_of_the_file_stays(
    house: House, kage: Kage
) -> None:
    house.write(MINE)
    before = house.config.read_text()
    added = kage(
        *("mcp", "add", "fs", "-e", "MODE=a=b", "--env", "KEY=${FS_KEY}", "--cwd", "sub"),
        *("--required", "--lazy", "--timeout", "45s", "--env-pass", "PROXY", "--safety", "safe"),
        *("--", "npx", "-y", "pkg", "-e", "X"),
    )
    assert (added.code, added.err) == (0, "")
    assert added.out == f"fs: {house.config}:7\n"
    assert house.config.read_text().startswith(before)
    assert servers(house)["fs"] == {
        "command": "npx",
        "args": ["-y", "pkg", "-e", "X"],
        "cwd": "sub",
        "env": {"MODE": "a=b", "KEY": "${FS_KEY}"},
        "env_pass": ["PROXY"],
        "safety_level": "safe",
        "timeout": "45s",
        "required": True,
        "start": "lazy",
    }
    assert kage("mcp", "list").out.splitlines()[1].split()[:4] == ["fs", "stdio", "yes", "user"]
    assert kage("mcp", "rm", "fs").out == f"fs: taken out of {house.config}\n"
    assert house.config.read_text() == before


def test_both_spellings_write_the_same_entry(house: House, kage: Kage) -> None:
    kage("mcp", "add", "a", "-e", "K=v", "--safety", "moderate", "--", "npx", "-y", "pkg")
    kage(
        *("mcp", "add", "b", "--type", "stdio", "--command", "npx", "--args", "-y,pkg"),
        *("--env", "K=v", "--safety", "moderate", "--scope", "user"),
    )
    address, header = "https://h.invalid/mcp", "X-Team: core"
    kage("mcp", "add", "c", "--transport", "sse", address, "-H", "X-Team=core")
    kage("mcp", "add", "d", "--type", "sse", "--url", address, "--header", header)
    found = servers(house)
    assert found["a"] == found["b"] == {
        "command": "npx", "args": ["-y", "pkg"], "env": {"K": "v"}, "safety_level": "moderate",
    }  # fmt: skip
    assert found["c"] == found["d"] == {
        "url": address, "transport": "sse", "headers": {"X-Team": "core"},
    }  # fmt: skip


def test_an_entry_is_added_from_json_and_from_stdin(
    house: House, kage: Kage, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"type": "http", "url": "https://h.invalid/", "enabled": False, "sparkle": 1}
    added = kage("mcp", "add-json", "a", json.dumps(entry))
    assert added.code == 0
    assert "sparkle is left out" in added.err
    monkeypatch.setattr("sys.stdin", io.StringIO('{"command": "x", "tool_timeout": "5s"}'))
    assert kage("mcp", "add-json", "b", "-").code == 0
    assert servers(house) == {
        "a": {"url": "https://h.invalid/", "enabled": False},
        "b": {"command": "x", "tool_timeout": "5s"},
    }
    for bad in ("{", "[]", '{"command": 5}', '{"args": []}'):
        assert kage("mcp", "add-json", "c", bad).code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "bad name", "--", "x"), "Take bad-name"),
        (("add", "a__b", "--", "x"), "Take a_b"),
        (("add", "read", "--", "x"), "built-in"),
        (("add", "a", "npx", "-y", "pkg"), "comes after --"),
        (("add", "a"), "no command and no URL"),
        (("add", "a", "--url", "https://h/", "--", "x"), "both a command and a URL"),
        (("add", "a", "-e", "K", "--", "x"), "-e takes NAME=VALUE"),
        (("add", "a", "--timeout", "90000", "--", "x"), "looks like milliseconds"),
        (("add", "a", "--transport", "pigeon", "--", "x"), "transport"),
        (("add", "a", "-H", "K=V", "--", "x"), "headers: does not fit command"),
        (("add", "a", "ftp://h/x", "--transport", "http"), "url: is no http address"),
        (("add", "there", "--", "x"), "config.toml:1. --replace"),
        (("remove", "ther"), "Did you mean there?"),
        (("enable", "nobody"), "There is no server 'nobody'"),
        (("disable", "team"), ".mcp.json:1, which other programs share"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    house: House, kage: Kage, words: tuple[str, ...], said: str
) -> None:
    house.write('[mcp.servers.there]\ncommand = "x"')
    (house.workspace / ".mcp.json").write_text('{"mcpServers": {"team": {"command": "x"}}}')
    before = house.config.read_bytes()
    ended = kage("mcp", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert house.config.read_bytes() == before


def test_a_broken_file_is_not_touched(house: House, kage: Kage) -> None:
    house.write("[mcp")
    for words in (("mcp", "add", "a", "--", "x"), ("config", "set", "model", "offline")):
        ended = kage(*words)
        assert ended.code == 2
        assert f"{house.config}:1: is no valid TOML" in ended.err
    assert house.config.read_text() == "[mcp\n"


def test_an_entry_can_be_added_to_a_file_with_a_mistake_elsewhere(house: House, kage: Kage) -> None:
    house.write("[limits]\nmax_turns = -1")
    assert kage("mcp", "add", "a", "--", "x").code == 0
    assert "max_turns = -1" in house.config.read_text()


def test_enable_and_disable_speak_the_words_of_the_entry(house: House, kage: Kage) -> None:
    house.write('[mcp.servers.a]\ncommand = "x"\n[mcp.servers.b]\ncommand = "x"\nenabled = true')
    before = house.config.read_text()
    for name in "ab":
        assert kage("mcp", "disable", name).code == 0
    assert servers(house)["a"]["disabled"] is True
    assert servers(house)["b"] == {"command": "x", "enabled": False}
    assert [row["state"] for row in kage("mcp", "list", "--json").json] == ["disabled"] * 2
    for name in "ab":
        assert kage("mcp", "enable", name).code == 0
    assert house.config.read_text() == before
    assert "nothing to change" in kage("mcp", "enable", "a").out


def test_a_dry_run_shows_the_change_and_writes_nothing(house: House, kage: Kage) -> None:
    house.write(MINE)
    for words in (("add", "a", "x"), ("add-json", "a", '{"command": "x"}')):
        shown = kage("mcp", *words, "--dry-run")
        assert "+[mcp.servers.a]" in shown.out
        assert "nothing was written" in shown.err
    found = kage("mcp", "add", "a", "-n", "--json", "--", "x").json
    assert (found["written"], found["entry"]) == (False, {"command": "x"})
    assert house.config.read_text() == MINE + "\n"


def test_json_tells_where_it_stands_and_hides_secrets(house: House, kage: Kage) -> None:
    ended = kage("mcp", "add", "a", "-e", "API_TOKEN=s3cr3t-value", "--json", "--", "x")
    assert "s3cr3t" not in ended.out + ended.err
    assert "plain text" in ended.err
    found = ended.json
    assert found["entry"]["env"] == {"API_TOKEN": "[hidden]"}
    assert {key: found[key] for key in ("name", "scope", "file", "line", "written")} == {
        "name": "a", "scope": "user", "file": str(house.config), "line": 1, "written": True,
    }  # fmt: skip
    assert servers(house)["a"]["env"] == {"API_TOKEN": "s3cr3t-value"}
    assert "s3cr3t" not in kage("mcp", "disable", "a", "--json").out


@pytest.mark.parametrize(
    ("words", "entry"),
    [
        (("-e", "API_KEY=abc", "--", "x"), {"command": "x", "env": {"API_KEY": "${API_KEY}"}}),
        (
            ("https://h.invalid/", "-H", "Authorization=Bearer abc"),
            {"url": "https://h.invalid/", "headers": {"Authorization": "Bearer ${A_TOKEN}"}},
        ),
        (("--", "x", "--token", "abc"), {"command": "x", "args": ["--token", "${TOKEN}"]}),
        (("--", "x", "--api-key=abc"), {"command": "x", "args": ["--api-key=${API_KEY}"]}),
        (
            ("--", "x", f"ghp_{'a' * 36}"),
            {"command": "x", "args": ["${A_TOKEN}"]},
        ),
        (("https://h.invalid/?key=abc",), {"url": "https://h.invalid/?key=${A_TOKEN}"}),
        (("https://u:abc@h.invalid/",), {"url": "https://u:${A_PASSWORD}@h.invalid/"}),
    ],
)
def test_secrets_become_variables_when_that_is_wished(
    house: House, kage: Kage, words: tuple[str, ...], entry: object
) -> None:
    ended = kage("mcp", "add", "a", "--to-variables", *words)
    assert ended.code == 0
    assert "before kage starts" in ended.err
    assert servers(house)["a"] == entry


def test_a_server_that_does_not_work_is_not_written_unless_forced(house: House, kage: Kage) -> None:
    good = kage("mcp", "add", "good", "--test", "--", *stub("echo"))
    assert good.code == 0
    assert "connected" in good.out
    bad = kage("mcp", "add", "bad", "--test", "--", *stub("exits", "--code", 3))
    assert bad.code == 1
    assert "was not written" in bad.err
    assert list(servers(house)) == ["good"]
    assert kage("mcp", "add", "bad", "--test", "--force", "--", *stub("exits")).code == 0
    assert list(servers(house)) == ["good", "bad"]


def test_what_a_verb_wrote_is_recorded_so_that_a_running_kage_does_not_hold_it(
    house: House, kage: Kage
) -> None:
    kage("mcp", "add", "a", "--", "x")
    acts = [record for record in house.records() if record["kind"] == "trust"]
    assert [(act["act"], act["server"]) for act in acts] == [("changed", "a")]


def test_what_others_wrote_while_a_verb_asked_is_not_recorded_as_the_persons(
    house: House, kage: Kage
) -> None:
    house.write('[mcp.servers.old]\ncommand = "x"')
    here = ground(Options())  # the verb begins, and asks its questions
    house.write(
        '[mcp.servers.old]\ncommand = "evil"',
        '[mcp.servers.evil]\ncommand = "evil"',
        '[permissions.tools.bash]\nallow = ["*"]',
    )

    def edit(text: TomlText) -> None:
        text.put(("mcp", "servers", "mine"), {"command": "y"})
        text.set(("permissions", "mcp"), {"mine": "allow"})

    write(here, prepare(here, "user", edit), ["mine"])
    acts = [record for record in house.records() if record["kind"] == "trust"]
    assert [(act["act"], act["server"]) for act in acts] == [
        ("changed", "mine"), ("changed", "permissions"),
    ]  # fmt: skip
    assert "mcp.mine" in acts[1]["record"] or "mine" in acts[1]["detail"]


def test_a_project_entry_goes_into_the_project_and_is_trusted_by_who_typed_it(
    house: House, kage: Kage
) -> None:
    added = kage("mcp", "add", "team", "--scope", "project", "--", *stub("echo"))
    file = house.workspace / ".kage" / "config.toml"
    assert added.out == f"team: {file}:1\n"
    assert kage("mcp", "test", "team").code == 0
    assert not house.config.exists()
    house.write(server("team", "echo"))
    both = kage("mcp", "remove", "team")
    assert both.code == 2
    assert str(file) in both.err and str(house.config) in both.err
    assert kage("mcp", "remove", "team", "--scope", "project").code == 0
    assert file.read_text() == ""
    assert kage("mcp", "remove", "team", "--scope", "project").code == 2
    assert list(servers(house)) == ["team"]


@pytest.mark.parametrize(
    "words",
    [
        ("mcp", "add", "a", "--", "x"),
        ("mcp", "add-json", "a", "{}"),
        ("mcp", "remove", "there"),
        ("mcp", "rm", "there"),
        ("mcp", "enable", "there"),
        ("mcp", "disable", "there"),
        ("mcp", "import", "x.json", "--apply"),
        ("mcp", "export", "--with-secrets"),
        ("config", "set", "model", "offline"),
        ("init",),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_the_agents_own_shell_changes_nothing(
    house: House, kage: Kage, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    house.write('[mcp.servers.there]\ncommand = "x"')
    before = house.config.read_bytes()
    monkeypatch.setenv("KAGE_AGENT", "1")
    ended = kage(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "agent" in ended.err
    assert house.config.read_bytes() == before


def test_a_person_is_asked_about_secrets_and_may_try_the_server(house: House) -> None:
    words = ("mcp", "add", "srv", "-e", "MY_TOKEN=abcdef", "--", *stub("echo"))
    with house.terminal(*words, columns=200) as terminal:
        terminal.until("set it yourself? [y/N]")
        terminal.send("y\r")
        terminal.until("to see whether it works? [y/N]")
        terminal.send("y\r")
        terminal.until("variable MY_TOKEN in env.MY_TOKEN is not set")
        assert terminal.ended() == 0
    assert servers(house)["srv"]["env"] == {"MY_TOKEN": "${MY_TOKEN}"}

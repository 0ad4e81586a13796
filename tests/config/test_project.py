"""A project may name servers and be stricter; it may not grant, pass or start anything."""

from __future__ import annotations

import json
import os

import pytest

from tests.config.files import Files


def test_servers_of_a_project_are_found_with_their_origin(files: Files) -> None:
    files.project_json('{"mcpServers": {"a": {"type": "stdio", "command": "x", "env": {}}}}')
    files.project_toml('[mcp.servers.b]\ncommand = "y"\ncwd = "sub"\n')
    loaded = files.load('[mcp.servers.own]\ncommand = "z"')
    assert loaded.faults == ()
    assert list(loaded.settings.servers) == ["own", "a", "b"]
    own, a, b = loaded.settings.servers.values()
    real = os.path.realpath(files.project)
    assert (own.origin, a.origin, b.origin) == ("user", real, real)
    assert files.load(strict=True).settings.servers == {}


def test_an_untrusted_entry_replaces_nothing(files: Files) -> None:
    files.project_toml('[mcp.servers.own]\ncommand = "theirs"\n')
    loaded = files.load('[mcp.servers.own]\ncommand = "mine"')
    assert loaded.settings.servers["own"].command == "mine"
    assert [spec.command for spec in loaded.settings.project_servers] == ["theirs"]
    assert "only once you trust it" in loaded.advice[-1]
    trusted = loaded.settled(lambda spec: True)
    assert trusted.settings.servers["own"].command == "theirs"
    assert trusted.settings.project_servers == ()
    assert "own replaces" in trusted.settings.notes[-1]


@pytest.mark.parametrize(
    "text",
    [
        'model = "a:b"',
        '[providers.x]\nbase_url = "http://evil"',
        '[permissions]\nmode = "default"',
        '[permissions.mcp]\na = "allow"',
        '[permissions.tools.bash]\nallow = ["*"]',
        '[permissions.tools.bash]\ndefault = "allow"',
        "[limits]\nmax_turns = 0",
        '[keys]\n"a" = "quit"',
        "[plugins.x]\nenabled = true",
        "[mcp]\nenabled = true",
        '[mcp.servers.a]\ncommand = "x"\nenv_pass = ["*"]',
        '[mcp.servers.a]\ncommand = "x"\nenv_pass = ["HOME"]',
        '[mcp.servers.a]\ncommand = "x"\nlocked = true',
        '[mcp.servers.a]\ncommand = "x"\npin = "off"',
        '[mcp.servers.a]\nurl = "https://h"\nheaders_command = ["x"]',
        '[mcp.servers.a]\ncommand = "x"\nenv = { A = "${X:-${OPENAI_API_KEY}}" }',
        '[mcp.servers.a]\nurl = "https://h"\noauth = { client_id = "${ANTHROPIC_API_KEY}" }',
        '[mcp.servers.a]\ncommand = "x"\nsafety_level = "safe"',
        '[mcp.servers.a]\ncommand = "x"\nargs = ["${OPENAI_API_KEY}"]',
        '[mcp.servers.a]\nurl = "http://h"\nheaders = { A = "${ANTHROPIC_API_KEY:-}" }',
        '[mcp.servers.a]\ncommand = "x"\nenv = { A = "${LOCAL_KEY}" }',
    ],
)
def test_what_a_project_may_not_say_is_a_fault_and_has_no_effect(files: Files, text: str) -> None:
    config = '[providers.local]\nbase_url = "http://h"\napi_key_env = "LOCAL_KEY"'
    plain = files.load(config)
    path = files.project_toml(text)
    loaded = files.load(config)
    assert len(loaded.faults) == 1 and loaded.faults[0].file == path
    assert loaded.settings.servers == {} and loaded.settings.project_servers == ()
    assert loaded.settings.permissions.servers == {}
    assert all(
        not rule.allow and rule.default is None for rule in loaded.settings.permissions.tools
    )
    assert loaded.settings.providers == plain.settings.providers
    assert loaded.settings.limits == plain.settings.limits


def test_a_project_can_be_stricter(files: Files) -> None:
    files.project_toml('[permissions.tools.bash]\ndeny = ["rm *"]\nask = ["git *"]\n')
    loaded = files.load('[permissions.tools.bash]\nallow = ["git *"]\ndefault = "allow"\n')
    assert loaded.faults == ()
    own, theirs = loaded.settings.permissions.tools
    assert own.allow == ("git *",) and own.default == "allow"
    assert (theirs.deny, theirs.ask, theirs.allow, theirs.default) == (
        ("rm *",),
        ("git *",),
        (),
        None,
    )


def test_the_persons_relaxed_defaults_do_not_reach_a_projects_servers(files: Files) -> None:
    files.project_toml('[mcp.servers.a]\ncommand = "x"')
    loaded = files.load('[mcp]\nsafety_level = "safe"\npin = "off"')
    (server,) = loaded.settings.servers.values()
    assert (server.safety_level, server.pin) == ("dangerous", "ask")


def test_keys_of_other_programs_in_the_shared_file_are_noted_not_faults(files: Files) -> None:
    entry = {"command": "x", "alwaysAllow": ["*"], "description": "d"}
    files.project_json(json.dumps({"mcpServers": {"a": entry}, "inputs": []}))
    loaded = files.load()
    assert loaded.faults == () and list(loaded.settings.servers) == ["a"]
    assert any("alwaysAllow is not used" in note for note in loaded.settings.notes)


def test_a_broken_project_file_costs_only_itself(files: Files) -> None:
    files.project_json("{")
    files.project_toml("[")
    loaded = files.load('[mcp.servers.own]\ncommand = "x"')
    assert len(loaded.faults) == 2 and list(loaded.settings.servers) == ["own"]
    assert loaded.settings.permissions.mode == "default"


def test_the_persons_own_file_is_not_read_again_as_a_projects(files: Files) -> None:
    path = files.project_toml('model = "a:b"')
    loaded = files.load(config_file=path)
    assert loaded.faults == () and loaded.settings.model == "a:b"

"""What sound files mean: every key, every default, every layer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kage.config.load import load
from kage.config.paths import Paths
from kage.config.schema import RestartSpec, ServerSpec, Settings, ToolRules
from tests.config.files import Files

SPEC_EXAMPLE = """
[mcp]
enabled = true
default_timeout = "30s"
tool_timeout = "60s"
tool_max_time = "10m"
max_output_tokens = 25000
health_interval = "30s"
auto_reconnect = true
max_reconnect_attempts = 5
defer_tools = "auto"
allow_sampling = false

[mcp.servers.filesystem]
transport = "stdio"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "${PROJECT:-.}"]
cwd = "."
env = { TOKEN = "${FS_TOKEN}" }
env_pass = ["HTTPS_PROXY"]
disabled = false
required = false
start = "eager"
idle_timeout = 0
timeout = "30s"
tool_timeout = "60s"
enabled_tools = ["*"]
disabled_tools = []
safety_level = "dangerous"
stderr = "inherit"
protocol = "auto"
output = { resource = "artifact" }
restart = { enabled = true, max_attempts = 5, delay = "1s", max_delay = "30s" }
pin = "ask"

[mcp.servers.github]
url = "https://example.invalid/mcp"
headers = { Authorization = "Bearer ${GITHUB_TOKEN}" }
auth = "auto"
sse_fallback = true

[permissions.mcp]
"""


def test_without_any_file_the_defaults_hold(files: Files) -> None:
    loaded = files.load()
    assert loaded.settings == Settings() and loaded.faults == () and loaded.files == ()


def test_an_empty_file_is_sound(files: Files) -> None:
    loaded = files.load("")
    assert loaded.settings == Settings() and loaded.files == (files.config,)


def test_the_whole_example_of_the_design_is_sound(files: Files) -> None:
    loaded = files.load(SPEC_EXAMPLE)
    assert loaded.faults == ()
    filesystem, github = loaded.settings.servers.values()
    assert filesystem.command == "npx" and filesystem.args[2] == "${PROJECT:-.}"
    assert filesystem.place is not None and filesystem.place.line == 14
    assert (github.transport, github.url) == ("http", "https://example.invalid/mcp")
    assert all("has no effect" in note for note in loaded.settings.notes)


def test_every_other_table_is_read(files: Files) -> None:
    loaded = files.load(
        """
model = "anthropic:claude-sonnet-4-6"
theme = "nord"
[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:11434/v1"
api_key_env = "LOCAL_KEY"
models = ["qwen3:8b"]
context_window = 32768
[providers.anthropic]
thinking = 4096
[permissions]
mode = "ask"
[permissions.mcp]
filesystem = "allow"
[permissions.tools.bash]
deny = ["rm -rf *"]
ask = ["git push *"]
allow = ["git status *"]
default = "ask"
[permissions.tools."github__*"]
default = "deny"
[limits]
max_turns = 0
max_cost = 1.5
[keys]
"ctrl+g" = "servers"
[plugins.revive]
enabled = true
grant = ["anything at all"]
[plugins.revive.config]
max = 4
"""
    )
    assert loaded.faults == ()
    settings = loaded.settings
    assert settings.model == "anthropic:claude-sonnet-4-6" and settings.theme == "nord"
    local = settings.providers["local"]
    assert (local.kind, local.models, local.context_window) == ("openai", ("qwen3:8b",), 32768)
    assert settings.providers["anthropic"].kind == "anthropic"
    assert settings.permissions.mode == "ask"
    assert settings.permissions.servers == {"filesystem": "allow"}
    bash, github = settings.permissions.tools
    assert isinstance(bash, ToolRules) and bash.deny == ("rm -rf *",) and bash.default == "ask"
    assert (github.tool, github.default) == ("github__*", "deny")
    assert settings.limits.max_turns == 0 and settings.limits.max_cost == 1.5
    assert settings.keys == {"ctrl+g": "servers"}


def test_the_example_of_the_reference_parses_unchanged(files: Files) -> None:
    loaded = files.load(
        """
[mcp.servers.filesystem]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/projects"]

[mcp.servers.filesystem.env]
NODE_ENV = "production"

[mcp.servers.off]
command = "true"
disabled = true
"""
    )
    assert loaded.faults == ()
    assert loaded.settings.servers["filesystem"].env == {"NODE_ENV": "production"}
    assert loaded.settings.servers["off"].disabled


def test_a_servers_value_beats_the_table_and_the_table_beats_the_default(files: Files) -> None:
    servers = files.load(
        """
[mcp]
default_timeout = "5s"
tool_timeout = "7s"
safety_level = "safe"
max_reconnect_attempts = 9
[mcp.servers.a]
command = "x"
timeout = "3s"
restart = { delay = "2s" }
[mcp.servers.b]
command = "x"
tool_timeout = 90
tool_timeouts = { slow = "5m" }
[mcp.servers.b.restart]
max_attempts = 1
"""
    ).settings.servers
    assert (servers["a"].timeout, servers["a"].tool_timeout) == (3.0, 7.0)
    assert (servers["b"].timeout, servers["b"].tool_timeout) == (5.0, 90.0)
    assert servers["b"].tool_timeouts == {"slow": 300.0}
    assert servers["a"].safety_level == "safe" and servers["a"].tool_max_time == 600.0
    assert servers["a"].restart == RestartSpec(max_attempts=9, delay=2.0)
    assert servers["b"].restart == RestartSpec(max_attempts=1)


def test_lazy_servers_stop_after_five_minutes_unless_told_otherwise(files: Files) -> None:
    servers = files.load(
        """
[mcp.servers]
a = { command = "x", start = "lazy" }
b = { command = "x", start = "lazy", idle_timeout = 0 }
c = { command = "x" }
d = { command = "x", idle_timeout = "90s" }
"""
    ).settings.servers
    assert [server.idle_timeout for server in servers.values()] == [300.0, 0.0, 0.0, 90.0]


@pytest.mark.parametrize(
    ("keys", "transport"),
    [
        ('command = "x"', "stdio"),
        ('command = "x"\ntransport = "stdio"', "stdio"),
        ('command = "x"\ntype = "stdio"', "stdio"),
        ('url = "http://h"', "http"),
        ('url = "http://h"\ntype = "http"', "http"),
        ('url = "http://h"\ntransport = "streamable-http"', "http"),
        ('url = "http://h"\ntype = "streamableHttp"', "http"),
        ('url = "http://h"\ntransport = "sse"', "sse"),
        ('url = "${BASE}/mcp"', "http"),
        ('url = "https://${HOST}:8080/mcp"', "http"),
    ],
)
def test_the_transport_follows_from_the_keys_and_has_many_spellings(
    files: Files, keys: str, transport: str
) -> None:
    loaded = files.load(f"[mcp.servers.s]\n{keys}")
    assert loaded.faults == ()
    assert loaded.settings.servers["s"].transport == transport


@pytest.mark.parametrize(
    ("keys", "disabled"),
    [
        ("", False),
        ("disabled = true", True),
        ("disabled = false", False),
        ("enabled = true", False),
        ("enabled = false", True),
        ("enabled = true\ndisabled = false", False),
        ("enabled = false\ndisabled = true", True),
    ],
)
def test_enabled_is_disabled_the_other_way_round(files: Files, keys: str, disabled: bool) -> None:
    loaded = files.load(f'[mcp.servers.s]\ncommand = "x"\n{keys}')
    assert loaded.faults == ()
    assert loaded.settings.servers["s"].disabled is disabled


def test_servers_can_be_switched_off_altogether(files: Files) -> None:
    assert not files.load("[mcp]\nenabled = false").settings.mcp_enabled
    assert not files.load('[mcp]\nenabled = "no"').settings.mcp_enabled


def test_a_byte_order_mark_and_windows_line_ends_are_fine(files: Files) -> None:
    files.config.write_bytes(b'\xef\xbb\xbfmodel = "a:b"\r\n[mcp.servers.s]\r\ncommand = "x"\r\n')
    loaded = files.load()
    assert loaded.faults == () and loaded.settings.model == "a:b"
    place = loaded.settings.servers["s"].place
    assert place is not None and place.line == 2


def test_mcp_config_files_and_inline_json_lie_over_the_persons_file(
    files: Files, tmp_path: Path
) -> None:
    toml = tmp_path / "more.toml"
    toml.write_text('[mcp]\ndefault_timeout = "1s"\n[mcp.servers.b]\ncommand = "from-toml"\n')
    odd = tmp_path / "servers.conf"
    odd.write_text('{"mcpServers": {"c": {"type": "sse", "url": "http://h/sse"}}}')
    inline = '{"mcpServers": {"a": {"command": "inline", "args": ["1"], "enabled": false}}}'
    config = '[mcp]\ntool_timeout = "9s"\n[mcp.servers.a]\ncommand = "own"\n'
    loaded = files.load(config, mcp_config=[toml, str(odd), inline])
    assert loaded.faults == ()
    servers = loaded.settings.servers
    assert (servers["a"].command, servers["a"].disabled) == ("inline", True)
    assert (servers["b"].command, servers["b"].timeout, servers["b"].tool_timeout) == (
        "from-toml",
        1.0,
        9.0,
    )
    assert servers["c"].transport == "sse"
    assert all(server.origin == "user" for server in servers.values())
    assert any("a replaces" in note for note in loaded.settings.notes)
    strict = files.load(mcp_config=[inline], strict=True)
    assert list(strict.settings.servers) == ["a"]


def test_a_locked_entry_beats_mcp_config(files: Files) -> None:
    loaded = files.load(
        '[mcp.servers.a]\ncommand = "own"\nlocked = true',
        mcp_config=['{"mcpServers": {"a": {"command": "other"}}}'],
    )
    assert loaded.settings.servers["a"].command == "own"
    assert any("locked" in note for note in loaded.settings.notes)


def test_the_json_of_other_hosts_is_understood(files: Files) -> None:
    entry = {
        "transport": "stdio",
        "command": "npx",
        "args": ["-y"],
        "env": {"A": "b"},
        "safetyLevel": "moderate",
        "enabledTools": ["x"],
        "toolTimeout": 30,
        "restart": {"enabled": True, "maxAttempts": 3, "delayMs": 1500},
    }
    remote = {"url": "http://h", "reconnect": {"maxAttempts": 2}, "automaticSSEFallback": False}
    text = json.dumps({"mcpServers": {"a": entry, "b": remote}})
    loaded = files.load(mcp_config=[text])
    assert loaded.faults == ()
    a, b = loaded.settings.servers.values()
    assert (a.safety_level, a.enabled_tools, a.tool_timeout) == ("moderate", ("x",), 30.0)
    assert a.restart == RestartSpec(max_attempts=3, delay=1.5, max_delay=1.5)
    assert b.restart.max_attempts == 2
    nested = json.dumps({"mcp": {"servers": {"n": {"command": "x"}}}})
    assert "n" in files.load(mcp_config=[nested]).settings.servers


def test_a_settings_file_can_come_through_a_pipe(files: Files) -> None:
    reader, writer = os.pipe()
    os.write(writer, b'{"mcpServers": {"p": {"command": "x"}}}')
    os.close(writer)
    try:
        loaded = files.load(mcp_config=[f"/dev/fd/{reader}"])
    finally:
        os.close(reader)
    assert loaded.faults == () and "p" in loaded.settings.servers


def test_another_file_can_be_named(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('model = "x:y"')
    assert files.load("", config_file=other).settings.model == "x:y"
    paths = Paths.from_environ({"HOME": str(tmp_path), "KAGE_CONFIG": str(other)})
    assert load(paths=paths, workspace=files.project).settings.model == "x:y"
    missing = Paths.from_environ({"HOME": str(tmp_path), "KAGE_CONFIG": str(tmp_path / "no.toml")})
    assert "does not exist" in str(load(paths=missing, workspace=files.project).faults[0])


def test_secrets_in_the_file_are_advised_against(files: Files) -> None:
    loaded = files.load(
        """
[mcp.servers.a]
command = "x"
env = { API_TOKEN = "tops3cret", OTHER = "plain", GH_TOKEN = "${GH_TOKEN}" }
[mcp.servers.b]
url = "http://h"
headers = { Authorization = "Bearer tops3cret" }
"""
    )
    assert loaded.faults == () and len(loaded.advice) == 2
    assert "tops3cret" not in "".join(loaded.advice)


def test_a_rule_for_a_server_that_is_not_there_is_pointed_out(files: Files) -> None:
    loaded = files.load(
        '[mcp.servers.filesystem]\ncommand = "x"\n[permissions.mcp]\nfilesytem = "deny"\n'
    )
    assert any("did you mean filesystem" in note for note in loaded.settings.notes)


def test_a_spec_keeps_its_defaults(files: Files) -> None:
    found = files.load('[mcp.servers.s]\ncommand = "x"').settings.servers["s"]
    assert found == ServerSpec(name="s", command="x", place=found.place)


def test_offline_is_a_model_of_its_own(files: Files) -> None:
    loaded = files.load('model = "offline"')
    assert loaded.faults == () and loaded.settings.model == "offline"

"""Servers from other hosts and back: what is shown, written, refused and hidden."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Kage
from tests.proof.house import House

SAMPLES = Path(__file__).parents[1] / "config" / "importers" / "samples"


def servers(house: House) -> dict[str, Any]:
    """Give the servers of config.toml."""
    found: dict[str, Any] = tomllib.loads(house.config.read_text())["mcp"]["servers"]
    return found


def sample(house: House, place: str, name: str) -> Path:
    """Put a sample where its host keeps it."""
    file = house.home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((SAMPLES / name).read_bytes())
    return file


def test_nothing_is_written_unless_asked_and_a_bad_entry_costs_only_itself(
    house: House, kage: Kage
) -> None:
    house.write("# mine")
    file = str(SAMPLES / "claude-desktop.json")
    shown = kage("mcp", "import", file)
    assert shown.code == 0
    for words in (
        "+ memory",
        "! bad name!: it is no name for a server; --rename 'bad name!=bad-name' gives it another",
        "! no-command: it has neither command nor url",
        "+[mcp.servers.memory]",
        "nothing was written; --apply writes it",
    ):
        assert words in shown.out
    assert house.config.read_text() == "# mine\n"
    written = kage("mcp", "import", file, "--apply", "--rename", "bad name!=echo")
    assert written.code == 0
    assert set(servers(house)) == {"memory", "echo"}
    assert house.config.read_text().startswith("# mine\n")
    again = kage("mcp", "import", file, "--apply", "--only", "memory")
    assert "= memory: is there already" in again.out
    assert again.code == 0


def test_secrets_are_never_printed_also_those_that_stood_there_before(
    house: House, kage: Kage
) -> None:
    house.write('[mcp.servers.old]\ncommand = "x"\nenv = { OLD_TOKEN = "old-secret" }')
    for extra in ((), ("--json",), ("--apply",)):
        ended = kage("mcp", "import", str(SAMPLES / "nanobot.json"), *extra)
        assert ended.code == 0
        for secret in ("ghp_example", "Bearer example", "old-secret"):
            assert secret not in ended.out + ended.err
        assert "http://ha.example.invalid:8123/mcp" in ended.out
    assert servers(house)["github"]["env"] == {"GITHUB_TOKEN": "ghp_example"}
    kage(
        *("mcp", "import", str(SAMPLES / "nanobot.json"), "--apply", "--to-variables"),
        *("--on-conflict", "replace"),
    )
    assert servers(house)["github"]["env"] == {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}


@pytest.mark.parametrize(
    ("how", "names", "said"),
    [
        ("skip", {"db": "mine"}, "- db: the name is taken"),
        ("rename", {"db": "mine", "db-2": "uvx"}, "+ db: is called db-2 here"),
        ("replace", {"db": "uvx"}, "~ db: takes the place"),
    ],
)
def test_a_name_that_is_taken_is_treated_as_wished(
    house: House, kage: Kage, how: str, names: dict[str, str], said: str
) -> None:
    house.write('[mcp.servers.db]\ncommand = "mine"')
    file = str(SAMPLES / "claude-code.mcp.json")
    ended = kage("mcp", "import", file, "--only", "db", "--on-conflict", how, "--apply")
    assert said in ended.out
    assert {name: entry["command"] for name, entry in servers(house).items()} == names


def test_auto_looks_where_other_hosts_keep_their_servers(house: House, kage: Kage) -> None:
    nothing = kage("mcp", "import")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no servers of other hosts" in nothing.err
    sample(house, ".codex/config.toml", "codex.toml")
    sample(house, ".gemini/settings.json", "gemini-settings.json")
    broken = house.home / ".cursor" / "mcp.json"
    broken.parent.mkdir()
    broken.write_text('{"mcpServers":\n')
    project = house.workspace / ".vscode" / "mcp.json"
    project.parent.mkdir()
    project.write_bytes((SAMPLES / "vscode.json").read_bytes())
    found = kage("mcp", "import", "--json")
    assert found.code == 0
    assert f"{broken}:" in found.err
    assert [source["format"] for source in found.json["sources"]] == ["codex", "gemini"]
    assert [one["name"] for one in found.json["servers"]] == [
        "context", "figma", "py", "web", "sse",
    ]  # fmt: skip
    ours = kage("mcp", "import", "auto", "--scope", "project", "--apply")
    assert "VS Code" in ours.out and "set the variable API_KEY" in ours.out
    assert "perplex" in (house.workspace / ".kage" / "config.toml").read_text()
    assert kage("mcp", "list", "--json").json[0]["state"] == "untrusted"  # a stranger's file


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ('{"mcpServers": {\n"a": }}', (), ":2: is no valid JSON"),
        ("{}", (), "holds no servers kage can find"),
        ('{"mcpServers": {"a": {"command": "x"}}}', ("--only", "b"), "no server 'b'"),
        ('{"mcpServers": {"a": {"command": "x"}}}', ("--rename", "a"), "OLD=NEW"),
        ('{"mcpServers": {"a": {"command": "x"}}}', ("--rename", "a=b__c"), "is no name"),
    ],
)
def test_what_cannot_be_imported_is_said(
    house: House, kage: Kage, tmp_path: Path, text: str, words: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    ended = kage("mcp", "import", str(file), "--apply", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not house.config.exists()


def test_what_only_ones_own_file_may_say_is_taken_only_when_asked(
    house: House, kage: Kage, tmp_path: Path
) -> None:
    file = tmp_path / "servers.json"
    powers = {"locked": True, "allow_sampling": True, "roots": ["/"]}
    web = {
        "url": "https://h.invalid/mcp",
        "headers_command": ["print-token"],
        "oauth": {"client_id": "x", "idp_id_token_command": ["print-id"]},
        "locked": True,
    }
    held = {"a": {"command": "x", "env_pass": ["*", "HTTPS_PROXY"], **powers}, "b": web}
    file.write_text(json.dumps({"mcpServers": held}))
    taken = kage("mcp", "import", str(file), "--apply")
    assert servers(house) == {
        "a": {"command": "x", "env_pass": ["HTTPS_PROXY"]},
        "b": {"url": "https://h.invalid/mcp", "oauth": {"client_id": "x"}},
    }
    for key in ("locked", 'env_pass "*"', "roots", "headers_command", "oauth.idp_id_token_command"):
        assert f"{key} is left out: only your own config.toml may" in taken.out
    house.config.unlink()
    assert kage("mcp", "import", str(file), "--apply", "--with-powers").code == 0
    assert servers(house) == held
    codex = tmp_path / "codex.toml"
    codex.write_text('[mcp_servers.c]\ncommand = "x"\nenv_vars = ["*"]\n')
    assert 'env_pass "*" is left out' in kage("mcp", "import", str(codex), "--apply").out
    assert servers(house)["c"] == {"command": "x"}


def test_a_file_of_bad_entries_alone_is_a_failure(kage: Kage, tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"mcpServers": {"a\\u001b[31m": {"command": 1}}}')
    ended = kage("mcp", "import", str(file), "--apply")
    assert ended.code == 1
    assert "\x1b" not in ended.out + ended.err


EVERYTHING = """\
[mcp.servers.local]
command = "npx"
args = ["-y", "${PKG:-pkg}"]
env = { MODE = "a b", TOKEN = "${TOKEN}" }
cwd = "sub"
disabled = true
timeout = "45s"
tool_timeouts = { slow = "5m" }
enabled_tools = ["a*"]
restart = { max_attempts = 2, delay = "2s" }

[mcp.servers.web]
url = "https://h.invalid/mcp"
headers = { Authorization = "Bearer ${WEB_TOKEN}" }
required = true

[mcp.servers.events]
url = "https://h.invalid/sse"
transport = "sse"
"""


@pytest.mark.parametrize("shape", ["mcpServers", "vscode", "kage"])
def test_what_is_exported_comes_back_as_it_was(
    house: House, kage: Kage, tmp_path: Path, shape: str
) -> None:
    house.write(EVERYTHING)
    before = servers(house)
    out = kage("mcp", "export", "--format", shape)
    assert (out.code, out.err) == (0, "")
    file = tmp_path / ("out.toml" if shape == "kage" else "out.json")
    file.write_text(out.out)
    house.config.unlink()
    flags = ("--from", "kage") if shape == "mcpServers" else ()
    assert kage("mcp", "import", str(file), "--apply", *flags).code == 0
    if shape != "vscode":  # it has no words for the rest
        assert servers(house) == before
    assert servers(house)["events"] == before["events"]


def test_an_export_holds_no_secret_unless_asked(house: House, kage: Kage) -> None:
    house.write(
        '[mcp.servers.a]\ncommand = "x"\nenv = { API_TOKEN = "abcdef" }',
        '[mcp.servers.b]\ncommand = "y"',
    )
    safe = kage("mcp", "export", "a")
    assert json.loads(safe.out)["mcpServers"] == {
        "a": {"type": "stdio", "command": "x", "env": {"API_TOKEN": "${API_TOKEN}"}}
    }
    assert "API_TOKEN" in safe.err
    assert "abcdef" in kage("mcp", "export", "--with-secrets").out
    assert kage("mcp", "export", "c").code == 2

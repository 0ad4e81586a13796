"""Every mistake is told with file, line, key, what was expected and found; nothing ever crashes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.config.load import load
from kage.config.paths import Paths
from tests.config.files import Files

C = "config/kage/config.toml"
GOLDEN = [
    (
        '[mcp.servers.s]\nargs = ["x"]',
        f"{C}:1: mcp.servers.s: has no command, expected command or url",
    ),
    (
        '[mcp.servers.s]\ncomand = "x"',
        f'{C}:2: mcp.servers.s.comand: is not known; did you mean "command"?',
    ),
    (
        '[mcp.servers.s]\ncommand = ["npx", "-y"]',
        f"{C}:2: mcp.servers.s.command: has the wrong type, expected text, got a list",
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\nurl = "http://h"',
        f"{C}:3: mcp.servers.s.url: stands beside command, expected one of the two",
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\n\n\ntimeout = 30000',
        f"{C}:5: mcp.servers.s.timeout: looks like milliseconds, "
        'expected a duration like "30s" or "5m", or seconds, got 30000',
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\ntimeout = "30 parsecs"',
        f"{C}:3: mcp.servers.s.timeout: has no unit kage knows, "
        'expected a duration like "30s" or "5m", or seconds, got "30 parsecs"',
    ),
    (
        '[mcp.servers.s]\nurl = "file:///etc/passwd"',
        f"{C}:2: mcp.servers.s.url: is no http address, "
        "expected an http:// or https:// address, got text",
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\nenabled = true\ndisabled = true',
        f"{C}:3: mcp.servers.s.enabled: disagrees with disabled, expected one of the two, got true",
    ),
    (
        '[mcp.servers.bash]\ncommand = "x"',
        f"{C}:1: mcp.servers.bash: is the name of a built-in tool, "
        "expected letters, digits, . - and single _, at most 32 characters",
    ),
    (
        '[mcp.servers.a__b]\ncommand = "x"',
        f"{C}:1: mcp.servers.a__b: is no name for a server, "
        "expected letters, digits, . - and single _, at most 32 characters",
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\nenv = { PORT = 8080 }',
        f"{C}:3: mcp.servers.s.env: has a wrong type at PORT, expected text, got a table",
    ),
    (
        '[mcp.servers.s]\ncommand = "x"\nsafety_level = "none"',
        f"{C}:3: mcp.servers.s.safety_level: is not known, "
        'expected "safe", "moderate" or "dangerous", got "none"',
    ),
    (
        '[mcp.servers.s]\nurl = "http://h"\ntransport = "stdio"',
        f'{C}:3: mcp.servers.s.transport: does not fit url, expected "http" or "sse", got "stdio"',
    ),
    (
        '[mcp.servers]\ns = "npx"',
        f"{C}:2: mcp.servers.s: has the wrong type, expected a table, got text",
    ),
    ("mcp = 5", f"{C}:1: mcp: has the wrong type, expected a table, got a number"),
    ('model = "gpt"', f'{C}:1: model: names no provider, expected "provider:model", got "gpt"'),
    (
        '[providers.x]\nbase_url = "http://h"\napi_key = "sk-123456"',
        f"{C}:3: providers.x.api_key: would keep the key in this file, "
        'expected api_key_env = "NAME_OF_A_VARIABLE"',
    ),
    (
        '[providers.x]\nkind = "gemini"\nbase_url = "http://h"',
        f'{C}:2: providers.x.kind: is not known, expected "anthropic" or "openai", got "gemini"',
    ),
    (
        "[limits]\nmax_turns = -1",
        f"{C}:2: limits.max_turns: is out of range, "
        "expected a whole number from 0 to 1099511627776, got -1",
    ),
    ("[limit]\nmax_turns = 1", f'{C}:1: limit: is not known; did you mean "limits"?'),
    ('model = "a:b"\nmodel = "c:d"', f"{C}:2: is no valid TOML: Cannot overwrite a value"),
    ('a = "open', f"{C}:1: is no valid TOML: Unterminated string"),
    (
        '[mcp.servers.s]\ncommand = "x"\nenv_pass = ["OPENAI_API_KEY"]',
        f"{C}:3: mcp.servers.s.env_pass: holds OPENAI_API_KEY: provider keys are never passed",
    ),
]


@pytest.mark.parametrize(("text", "fault"), GOLDEN)
def test_a_mistake_is_told_with_place_key_expectation_and_finding(
    files: Files, text: str, fault: str
) -> None:
    loaded = files.load(text)
    assert files.faults(loaded) == [fault]


def test_all_mistakes_are_told_at_once_and_the_sound_rest_is_used(files: Files) -> None:
    files.project_json('{"mcpServers": {"p": {"command": 5}}}')
    loaded = files.load(
        """
model = 5
[mcp]
tool_timeout = "soon"
[mcp.servers.good]
command = "x"
[mcp.servers.bad]
command = 5
safety = "safe"
[providers.good]
base_url = "http://h"
[providers.bad]
base_url = "ftp://h"
[keys]
"ctrl+g" = 5
"ctrl+h" = "help"
""",
        mcp_config=["{", str(files.base / "missing.json"), '{"mcpServers": {"q": {}}}'],
    )
    assert [fault.split(": ")[0].split(":")[0] for fault in files.faults(loaded)] == [
        *[C] * 6,
        "--mcp-config",
        "--mcp-config",
        "missing.json",
        "project/.mcp.json",
    ]
    lines = [fault.line for fault in loaded.faults][:6]
    assert lines == sorted(lines) == [2, 4, 8, 9, 13, 15]
    assert list(loaded.settings.servers) == ["good"]
    assert list(loaded.settings.providers) == ["good"]
    assert loaded.settings.keys == {"ctrl+h": "help"}
    assert loaded.settings.servers["good"].tool_timeout == 60.0


def test_no_secret_stands_in_a_message(files: Files) -> None:
    secret = "s3cret-value"
    loaded = files.load(
        f"""
[mcp.servers.a]
command = "x"
args = [5, "{secret}"]
env = {{ A = ["{secret}"] }}
[mcp.servers.b]
url = "ftp://u:{secret}@h"
headers = {{ "bad header" = "{secret}" }}
[mcp.servers.c]
url = "http://h"
headers = "Bearer {secret}"
env = "{secret}"
[providers.x]
base_url = "http://h"
api_key = "{secret}"
api_key_env = "{secret}"
[providers.y]
token = "{secret}"
headers = {{ X = 1, Y = "{secret}" }}
[permissions]
mode = "ask"
""",
        mcp_config=[json.dumps({"mcpServers": {"d": {"command": "x", "env": [secret]}}})],
    )
    assert len(loaded.faults) >= 9
    assert secret not in "\n".join(map(str, loaded.faults)) + "\n".join(loaded.settings.notes)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        b'model = "a:b"\n# caf\xe9\n',
        b'[mcp.servers.a]\ncommand = "x',
        b"[mcp\n",
        b"\x00",
        b"a = " + b"[" * 50_000,
        b"a = " + b"9" * 10_000,
        b"a = 1979-99-99",
        b"a." * 400_000 + b"b = 1",
        b"x" * (2 << 20),
        b"{",
    ],
)
def test_a_broken_file_is_a_fault_and_is_never_written(files: Files, data: bytes) -> None:
    files.config.write_bytes(data)
    loaded = files.load()
    assert len(loaded.faults) == 1
    assert loaded.faults[0].file == files.config
    assert loaded.settings.servers == {}
    assert files.config.read_bytes() == data


def test_half_a_file_tells_its_line(files: Files) -> None:
    assert files.load('model = "a:b"\n[mcp.servers.a\n').faults[0].line == 2
    files.config.write_bytes(b'model = "a:b"\n# caf\xe9\n')
    assert files.load().faults[0].line == 2


def test_odd_places_are_faults(files: Files, tmp_path: Path) -> None:
    files.config.mkdir()
    assert "directory" in str(files.load().faults[0])
    files.config.rmdir()
    os.mkfifo(files.config)
    assert "regular" in str(files.load().faults[0])
    files.config.unlink()
    files.config.symlink_to(files.config)
    assert "cannot be read" in str(files.load().faults[0])
    files.config.unlink()
    for bad in ("/dev/zero", "/", "no\0name", str(tmp_path / "none"), "/dev/null/x", ""):
        assert len(files.load(mcp_config=[bad]).faults) == 1, bad


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_a_fault(files: Files) -> None:
    files.config.write_text("")
    files.config.chmod(0)
    assert "Permission denied" in str(files.load().faults[0])


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"x"',
        "{}",
        '{"mcpServer": {}}',
        '{"mcpServers": []}',
        '{"mcpServers": {"a": 5}}',
        '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}',
        '{"mcpServers": {"a": {"command": NaN}}}',
        '{"a":' * 5000,
        '{"mcpServers": {"a": {"command": "x", "timeout": 60000}}}',
        '{"mcpServers": {"a": {"command": "x", "restart": {"delayMs": "1"}}}}',
        '{"mcpServers": {"a": {"command": "x", "restart": {"delayMs": 1e400}}}}',
        '{"mcpServers": {"a": {"command": "x", "restart": {"delayMs": 1e300}}}}',
    ],
)
def test_broken_json_is_a_fault(files: Files, text: str) -> None:
    as_file = files.base / "servers.json"
    as_file.write_text(text)
    assert len(files.load(mcp_config=[as_file]).faults) == 1
    if text.startswith("{"):
        assert len(files.load(mcp_config=[text]).faults) == 1


def test_json_mistakes_have_lines(files: Files) -> None:
    path = files.base / "s.json"
    path.write_text('{\n "mcpServers": {\n  "a": {\n   "command": "x",\n   "args": "y"\n  }\n }\n}')
    fault = files.load(mcp_config=[path]).faults[0]
    assert (fault.line, fault.key) == (5, "mcpServers.a.args")


def test_thousands_of_mistakes_are_summed_up(files: Files) -> None:
    loaded = files.load("\n".join(f"key{n} = 1" for n in range(20_000)))
    assert len(loaded.faults) == 201
    assert "19800 more mistakes" in str(loaded.faults[-1])


@pytest.mark.parametrize(
    "rules",
    [
        '[permissions.tools.bash]\ndeny = "rm *"\nallow = ["ls"]',
        '[permissions.tools.bash]\ndenny = ["rm *"]',
        '[permissions.tools.bash]\ndeny = ["rm *", 5]',
        '[permissions.tools.bash]\ndefault = "dney"',
        "[permissions.tools]\nbash = 5",
    ],
)
def test_a_rule_with_a_mistake_refuses_until_it_is_mended(files: Files, rules: str) -> None:
    loaded = files.load(rules)
    assert len(loaded.faults) == 1
    (rule,) = loaded.settings.permissions.tools
    assert (rule.tool, rule.deny) == ("bash", ("*",))


def test_a_mistake_in_an_allow_list_only_drops_that_list(files: Files) -> None:
    loaded = files.load('[permissions.tools.bash]\nallow = "ls"\ndeny = ["rm *"]')
    (rule,) = loaded.settings.permissions.tools
    assert len(loaded.faults) == 1 and rule.allow == () and rule.deny == ("rm *",)


@pytest.mark.parametrize(
    "text",
    [
        '[permissions]\nmode = "dney"',
        "permissions = 5",
        '[permissions.tool.bash]\ndeny = ["x"]',
        "[permissions]\ntools = 5",
        "[permissions]\nmcp = 5",
        "broken",
    ],
)
def test_permissions_that_cannot_be_read_make_every_call_ask(files: Files, text: str) -> None:
    assert files.load(text).settings.permissions.mode == "ask"


def test_a_wish_that_is_none_refuses_the_server(files: Files) -> None:
    loaded = files.load('[permissions.mcp]\na = "dney"\nb = "allow"')
    assert loaded.settings.permissions.servers == {"a": "deny", "b": "allow"}


NAMES = st.sampled_from(
    [
        *("mcp", "servers", "command", "args", "env", "url", "headers", "transport", "type", "x"),
        *("enabled", "disabled", "timeout", "restart", "permissions", "tools", "mode", "deny"),
        *("allow", "providers", "base_url", "kind", "model", "limits", "keys", "plugins"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["stdio", "http://h", "30s", "ask", "${X}"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=st.dictionaries(NAMES, TREES, max_size=6))
def test_no_content_makes_loading_fail(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any]
) -> None:
    base = tmp_path_factory.mktemp("base", numbered=True)
    text = json.dumps(tree)
    toml = base / "kage" / "config.toml"
    toml.parent.mkdir()
    toml.write_text("\n".join(_toml(tree)), encoding="utf-8", errors="replace")
    (base / ".mcp.json").write_text(json.dumps({"mcpServers": tree}))
    (base / ".kage").mkdir()
    (base / ".kage" / "config.toml").write_bytes(toml.read_bytes())
    paths = Paths.from_environ({"HOME": str(base), "XDG_CONFIG_HOME": str(base)})
    wrapped = json.dumps({"mcpServers": tree.get("servers", tree)})
    loaded = load(paths=paths, workspace=base, mcp_config=[text, wrapped])
    assert all(str(fault) for fault in loaded.faults)


def _toml(tree: dict[str, Any]) -> list[str]:
    """Write a tree as TOML, one dotted line per key, with inline tables inside."""

    def value(item: Any) -> str:
        match item:
            case None:
                return '""'
            case bool():
                return str(item).lower()
            case dict():
                inner = ", ".join(f"{json.dumps(key)} = {value(v)}" for key, v in item.items())
                return "{ " + inner + " }"
            case list():
                return "[" + ", ".join(map(value, item)) + "]"
            case float():
                return repr(item)
            case _:
                return json.dumps(item)

    return [f"{json.dumps(key)} = {value(item)}" for key, item in tree.items()]

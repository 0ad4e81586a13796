"""Files of other hosts, byte for byte: what each becomes, and what is told about the rest."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.documents import Unreadable
from kage.config.edit import TomlText
from kage.config.importers import FORMATS, Found, Surroundings, known_places, read, suggested
from kage.core.errors import UsageError

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(file.name for file in SAMPLES.iterdir() if file.suffix != ".expected")
AROUND = Surroundings(home=Path("/nowhere/home"), workspace=Path("/nowhere/work"))


def told(found: Found) -> str:
    """Write what was found as config.toml would have it, with everything said beside it."""
    edit = TomlText(Path("config.toml"), "")
    lines = [f"# format: {found.format.name}", *(f"# file: {note}" for note in found.notes)]
    for one in found.servers:
        lines += [f"# {one.name} (line {one.line}): {note}" for note in one.notes]
        if one.problem:
            lines.append(f"# {one.name} (line {one.line}) is not imported: {one.problem}")
        else:
            edit.put(("mcp", "servers", one.name), one.table)
    return "\n".join([*lines, "", edit.text])


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_becomes_what_it_should(name: str) -> None:
    assert told(read(SAMPLES / name, AROUND)) == (SAMPLES / f"{name}.expected").read_text()


def test_a_list_of_servers_is_read_from_json_as_from_yaml(tmp_path: Path) -> None:
    import yaml

    data = yaml.safe_load((SAMPLES / "openparallax.yaml").read_text())
    file = tmp_path / "config.json"
    file.write_text(json.dumps(data))
    held = read(file, AROUND)
    expected = read(SAMPLES / "openparallax.yaml", AROUND)
    assert held.format is expected.format
    assert [(one.name, one.table) for one in held.servers] == [
        (one.name, one.table) for one in expected.servers
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_format_is_known_by_the_content_alone(name: str, tmp_path: Path) -> None:
    bare = tmp_path / "file"
    bare.write_bytes((SAMPLES / name).read_bytes())
    assert read(bare, AROUND).format is read(SAMPLES / name, AROUND).format


def found(tmp_path: Path, data: object, format_name: str) -> dict[str, tuple[object, str]]:
    file = tmp_path / "file.json"
    file.write_text(json.dumps(data))
    servers = read(file, AROUND, format_name=format_name).servers
    return {one.name: (one.table, " | ".join((one.problem, *one.notes))) for one in servers}


@pytest.mark.parametrize(
    ("format_name", "text", "becomes"),
    [
        ("cursor", "${env:A}/${userHome}", "${A}/${HOME}"),
        ("cursor", "${workspaceFolder}/x", "./x"),
        ("vscode", "${input:my-key 2}", "${MY_KEY_2}"),
        ("gemini", "$A-${B}", "${A}-${B}"),
        ("claude-code", "${A:-b}", "${A:-b}"),
        ("cursor", "${command:pick}", None),
        ("claude-code", "${A:+b}", None),
        ("cursor", "${env:A", None),
    ],
)
def test_variables_are_translated_or_the_entry_is_refused(
    tmp_path: Path, format_name: str, text: str, becomes: str | None
) -> None:
    top = "servers" if format_name == "vscode" else "mcpServers"
    table, notes = found(tmp_path, {top: {"s": {"command": "x", "args": [text]}}}, format_name)["s"]
    if becomes is None:
        assert "no word for ${" in notes
    else:
        assert table == {"command": "x", "args": [becomes]}


def test_a_file_in_braces_of_opencode_is_refused_and_its_variables_are_translated(
    tmp_path: Path,
) -> None:
    data = {
        "mcp": {
            "a": {"type": "local", "command": ["x", "{env:A}"]},
            "b": {"type": "local", "command": ["x", "{file:~/secret}"]},
            "c": {"type": "remote", "command": ["x"]},
        }
    }
    servers = found(tmp_path, data, "opencode")
    assert servers["a"][0] == {"command": "x", "args": ["${A}"]}
    assert "{file:~/secret}" in servers["b"][1]
    assert "no url" in servers["c"][1]


def test_the_workspace_of_an_editor_is_not_guessed_when_the_server_runs_elsewhere(
    tmp_path: Path,
) -> None:
    entry = {"command": "x", "cwd": "${workspaceFolder}/sub", "args": ["${workspaceFolder}"]}
    assert "no word" in found(tmp_path, {"servers": {"s": entry}}, "vscode")["s"][1]


def test_nothing_is_dropped_silently(tmp_path: Path) -> None:
    for name in FORMATS:
        entry: dict[str, object] = {"type": "stdio", "command": "x", "mystery": {"a": 1}}
        if name == "opencode":
            entry |= {"type": "local", "command": ["x"]}
        elif name == "goose":
            entry |= {"cmd": "x"}
            del entry["command"]
        data: object = {"mcpServers": {"s": entry}, "mcp": {"servers": {"s": entry}}}
        if name in {"vscode", "codex", "goose", "opencode"}:
            key = {"vscode": "servers", "codex": "mcp_servers", "goose": "extensions"}
            data = {key.get(name, "mcp"): {"s": entry}}
        elif name == "openparallax":
            data = {"mcp": {"servers": [{"name": "s", **entry}]}}
        for table, notes in found(tmp_path, data, name).values():
            assert table == {"command": "x"}, name
            assert "mystery is left out" in notes, name


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": ["x"]}, "command is a list, expected text"),
        ({"command": "x", "args": "y"}, "args is text, expected a list of text"),
        ({"command": "x", "env": {"A": None}}, "env.A is null, expected text"),
        ({"command": "x", "env": {"A=B": "1"}}, "env has the illegal name"),
        ({"url": "ftp://h"}, "url is no http address"),
        ({"url": "https://h", "command": "x"}, "both command and url"),
        ({"type": "stdio", "url": "https://h"}, "does not fit"),
        ({"type": "websocket", "url": "https://h"}, "does not speak"),
        ({"command": ""}, "command is empty"),
        ({"command": "x", "enabled": True, "disabled": True}, "opposite"),
        ("text", "it is no table"),
        (None, "it is no table"),
    ],
)
def test_a_bad_entry_costs_only_itself(tmp_path: Path, entry: object, problem: str) -> None:
    data = {"mcpServers": {"bad": entry, "good": {"command": "x"}}}
    servers = found(tmp_path, data, "claude-desktop")
    assert problem in servers["bad"][1]
    assert servers["good"] == ({"command": "x"}, "")


@pytest.mark.parametrize(
    ("format_name", "data", "word"),
    [
        (
            "claude-code",
            {"mcpServers": {"s": {"command": "x", "timeout": 10**400}}},
            "out of range",
        ),
        (
            "langchain",
            {"defaultToolTimeout": 10**400, "mcpServers": {"s": {"url": "https://h"}}},
            "of",
        ),
        (
            "langchain",
            {"outputHandling": {"text": ["x"]}, "mcpServers": {"s": {"url": "https://h"}}},
            "text",
        ),
        ("opencode", {"mcp": {"s": {"type": ["local"], "command": ["x"]}}}, "neither local nor"),
        (
            "opencode",
            {"mcp": {"s": {"type": "local", "command": ["x", "${A}"]}}},
            "puts variables in",
        ),
        (
            "codex",
            {"mcp_servers": {"s": {"command": "x", "http_headers": {"A": "b"}}}},
            "headers are",
        ),
        (
            "codex",
            {"mcp_servers": {"s": {"url": "https://h", "env_vars": ["A"]}}},
            "env_vars is left",
        ),
    ],
)
def test_what_no_host_would_write_is_told_all_the_same(
    tmp_path: Path, format_name: str, data: object, word: str
) -> None:
    assert word in found(tmp_path, data, format_name)["s"][1]
    with contextlib.suppress(UsageError):  # every format looks at it to tell whose it is
        read(tmp_path / "file.json", AROUND)


def test_claude_code_keeps_servers_per_folder(tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    mine = {"mcpServers": {"here": {"command": "x"}, "all": {"command": "z"}}}
    data = {
        "mcpServers": {"all": {"command": "y"}},
        "projects": {str(AROUND.workspace): mine, "/other": {"mcpServers": {"far": {}}}, "/e": {}},
    }
    file.write_text(json.dumps(data))
    held = read(file, AROUND)
    assert {one.name: one.table["command"] for one in held.servers} == {"all": "y", "here": "x"}
    assert any("/other" in note for note in held.notes)
    assert any(note.startswith("all: ") for note in held.notes)


def test_comments_and_a_comma_too_many_are_read_and_lines_stay(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(
        '{ // servers\n"servers": {\n/* two\nlines */ "s": {"command": "a//b", "args": ["/*"],},\n'
        '"t": {"url": "https://h/x"}, // last\n},}\n'
    )
    servers = read(file, AROUND).servers
    assert [(one.name, one.line, one.problem) for one in servers] == [("s", 4, ""), ("t", 5, "")]
    assert servers[0].table == {"command": "a//b", "args": ["/*"]}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"mcpServers": {\n"a": 1,,}}', ":2: is no valid JSON"),
        ("a.json", '{"mcpServers": {"a": {}, "a": {}}}', "stands twice"),
        ("a.yaml", "mcp:\n  servers: [\n", ": is no valid YAML"),
        ("a.yaml", "mcp:\n  servers: {}\n  servers: {}\n", ":3: the key servers stands twice"),
        ("a.yaml", "a: &a [1]\nb: *a\n", ":2: uses an alias"),
        ("a.yaml", "a: !!python/object:os.system x\n", ":1: uses an alias or a tag"),
        ("a.yaml", "a: " + "[" * 3000, "a.yaml"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.toml", "[mcp_servers", ":1: is no valid TOML"),
        ("a.json", "\0", ":1: is no valid JSON"),
    ],
)
def test_a_malformed_file_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(Unreadable) as caught:
        read(file, AROUND)
    assert words in str(caught.value)


def test_what_holds_no_servers_and_an_unknown_format_are_said(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    with pytest.raises(UsageError, match="--from"):
        read(file, AROUND)
    with pytest.raises(UsageError, match="no format"):
        read(file, AROUND, format_name="emacs")
    with pytest.raises(Unreadable, match="does not exist"):
        read(tmp_path / "none.json", AROUND)
    with pytest.raises(Unreadable, match="directory"):
        read(tmp_path, AROUND)


def test_known_places_are_those_that_are_there(tmp_path: Path) -> None:
    around = Surroundings(home=tmp_path / "home", workspace=tmp_path / "work")
    for place in ("home/.codex/config.toml", "work/.vscode/mcp.json"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    assert [one.name for _, one in known_places(around, project=False)] == ["codex"]
    assert [one.name for _, one in known_places(around, project=True)] == ["vscode"]


@pytest.mark.parametrize(
    ("name", "better"),
    [("bad name!", "bad-name"), ("a__b", "a_b"), ("x" * 50, "x" * 32), ("!!", ""), ("read", "")],
)
def test_a_better_name_is_suggested(name: str, better: str) -> None:
    assert suggested(name) == better


_JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    [
                        *("command", "args", "env", "url", "type", "headers", "timeout", "name"),
                        *("enabled", "disabled", "cmd", "uri", "restart", "outputHandling"),
                        *("transport", "cwd", "httpUrl", "environment", "mcpServers"),
                    ]
                ),
                st.text(max_size=5),
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=14,
)
_TOP = st.sampled_from(["mcpServers", "servers", "mcp", "mcp_servers", "extensions", "tools"])


@given(
    data=st.dictionaries(_TOP, st.one_of(_JUNK, st.fixed_dictionaries({"servers": _JUNK}))),
    name=st.sampled_from(sorted(FORMATS)),
)
def test_no_content_makes_an_importer_fail(
    tmp_path_factory: pytest.TempPathFactory, data: object, name: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "junk.json"
    file.write_text(json.dumps(data))
    try:
        for one in read(file, AROUND, format_name=name).servers:
            if not one.problem:
                assert one.table.get("command") or one.table.get("url")
                TomlText(Path("c"), "").put(("mcp", "servers", one.name), one.table)
    except Unreadable as error:
        assert "junk.json" in str(error)


@given(st.binary(max_size=200), st.sampled_from(["json", "toml", "yaml", "conf"]))
def test_no_bytes_make_an_importer_fail(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, ending: str
) -> None:
    file = tmp_path_factory.getbasetemp() / f"junk.{ending}"
    file.write_bytes(raw)
    try:
        read(file, AROUND)
    except (Unreadable, UsageError) as error:
        assert "junk" in str(error)

"""Single keys change, everything else in the file stays byte for byte."""

from __future__ import annotations

import os
import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.edit import TomlText
from kage.config.rewrite import preview, rewrite
from kage.core.errors import ConfigError, KageError

FILE = Path("config.toml")
FULL = """\
# my settings, sorted the way I like
model = "a:b"   # the cheap one

# servers
[mcp]
default_timeout = "30s"

[mcp.servers.one]   # first
command = "x"
args = [
  "-y",  # yes
  "pkg",
]
env = { A = "1" }

[mcp.servers.one.restart]
delay = "1s"

# the second
[mcp.servers.two]
url = "https://h/"

# what may run
[permissions]
mode = "ask"  # careful
"""


def changed(before: str, after: str) -> list[str]:
    """Give the lines that differ, each with its sign."""
    edit = TomlText(FILE, before)
    edit._text = after
    lines = edit.diff().splitlines()[2:]
    return [line for line in lines if line[:1] in "+-"]


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        (
            ("model",),
            "c:d",
            ['-model = "a:b"   # the cheap one', '+model = "c:d"   # the cheap one'],
        ),
        (("theme",), "dark", ['+theme = "dark"']),
        (("mcp", "enabled"), False, ["+enabled = false"]),
        (("mcp", "servers", "one", "disabled"), True, ["+disabled = true"]),
        (
            ("mcp", "servers", "one", "args"),
            ["z"],
            ["-args = [", '-  "-y",  # yes', '-  "pkg",', "-]", '+args = ["z"]'],
        ),
        (
            ("mcp", "servers", "one", "env", "B"),
            "2",
            ['-env = { A = "1" }', '+env = { A = "1", B = "2" }'],
        ),
        (("mcp", "servers", "one", "restart", "max_attempts"), 2, ["+max_attempts = 2"]),
        (
            ("permissions", "mode"),
            "default",
            ['-mode = "ask"  # careful', '+mode = "default"  # careful'],
        ),
        (("limits", "max_turns"), 5, ["+", "+[limits]", "+max_turns = 5"]),
        (("keys", "ctrl+g"), "servers", ["+", "+[keys]", '+"ctrl+g" = "servers"']),
    ],
)
def test_a_change_touches_only_its_own_line(
    path: tuple[str, ...], value: Any, difference: list[str]
) -> None:
    edit = TomlText(FILE, FULL)
    edit.set(path, value)
    assert changed(FULL, edit.text) == difference
    assert edit.get(path) == value


def test_a_new_server_stands_behind_the_others_and_taken_out_again_leaves_no_trace() -> None:
    edit = TomlText(FILE, FULL)
    edit.put(("mcp", "servers", "three"), {"command": "y", "env": {"K": "${K}"}})
    added = ["+[mcp.servers.three]", '+command = "y"', '+env = { K = "${K}" }', "+"]
    assert sorted(changed(FULL, edit.text)) == sorted(added)
    assert edit.text.index("three") < edit.text.index("# what may run")
    edit.remove(("mcp", "servers", "three"))
    assert edit.text == FULL


def test_taking_out_a_server_keeps_the_comments_around_it() -> None:
    edit = TomlText(FILE, FULL)
    assert edit.remove(("mcp", "servers", "one"))
    assert not edit.remove(("mcp", "servers", "one"))
    for comment in ("# my settings", "# the cheap one", "# servers", "# the second", "# careful"):
        assert comment in edit.text
    assert "restart" not in edit.text
    assert tomllib.loads(edit.text)["mcp"]["servers"] == {"two": {"url": "https://h/"}}


@pytest.mark.parametrize(
    "text",
    [
        'mcp = { servers = { one = { command = "x" } } } # all on one line\n',
        '[mcp]\nservers.one.command = "x" # dotted\n',
        'mcp.servers.one.command = "x" # dotted\n',
        '[mcp.servers]\none = { command = "x" } # inline\n',
        '[mcp.servers."one"] # quoted\n"command" = \'x\'\n',
        '[mcp.servers.one.env]\nA = "1"\n\n[mcp.servers.one] # below\ncommand = "x"',
        '[mcp.servers.one]\r\ncommand = "x" # dos\r\n\r\n[limits]\r\nmax_turns = 3\r\n',
        '\ufeff[mcp.servers.one]\ncommand = "x" # mark\n',
    ],
)
def test_every_way_to_write_a_table_can_be_changed(text: str) -> None:
    edit = TomlText(FILE, text)
    server = ("mcp", "servers", "one")
    edit.set((*server, "disabled"), True)
    edit.set((*server, "env", "B"), "2")
    edit.put(("mcp", "servers", "new"), {"command": "y"})
    edit.set(("model",), "a:b")
    found = tomllib.loads(edit.text.removeprefix("\ufeff"))
    assert found["model"] == "a:b"
    assert found["mcp"]["servers"]["new"] == {"command": "y"}
    assert found["mcp"]["servers"]["one"]["disabled"] is True
    assert found["mcp"]["servers"]["one"]["env"]["B"] == "2"
    assert "#" not in text or text[text.index("#") :].splitlines()[0] in edit.text
    assert edit.text.startswith("\ufeff") == text.startswith("\ufeff")
    if "\r\n" in text:
        assert "\n" not in edit.text.replace("\r\n", "")
    edit.remove(server)
    assert list(tomllib.loads(edit.text.removeprefix("\ufeff"))["mcp"]["servers"]) == ["new"]


def test_what_cannot_be_changed_is_said_with_its_place_and_stays() -> None:
    edit = TomlText(FILE, "a = 1\n[[b]]\nc = 1\n[[b]]\nc = 2\n")
    for path in (("a", "x"), ("b", "c"), ("b", "d")):
        with pytest.raises(KageError, match="cannot be changed"):
            edit.set(path, 3)
    assert not edit.changed


_KEY = st.sampled_from(["a", "b", "mcp", "servers", "k-1", "ä b", 'q"q', "x.y"])
_VALUE = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 5), st.text(max_size=8), st.floats(0, 1)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(_KEY, inner, min_size=1, max_size=3)
    ),
    max_leaves=5,
)
_DATA = st.dictionaries(_KEY, st.one_of(_VALUE, st.dictionaries(_KEY, _VALUE, max_size=3)))


def _written(data: dict[str, Any], how: int) -> str:
    import tomli_w

    text = tomli_w.dumps(data)
    lines = text.removesuffix("\n").split("\n")
    marked = [
        f"{line} # c{number}" if line.endswith("]") and line.startswith("[") else line
        for number, line in enumerate(lines)
    ]
    return "\n".join(["# top", *(marked if how else lines), "# end"]) + "\n" * (how % 3)


@given(_DATA, st.lists(_KEY, min_size=1, max_size=4), _VALUE, st.integers(0, 3))
def test_any_change_of_any_file_is_exact_or_refused(
    data: dict[str, Any], path: list[str], value: Any, how: int
) -> None:
    text = _written(data, how)
    edit = TomlText(FILE, text)
    comments = [line for line in text.split("\n") if line.startswith("#")]
    try:
        if how == 3:
            edit.remove(tuple(path))
        else:
            edit.set(tuple(path), value)
    except KageError:
        assert edit.text == text
        return
    if how == 3:
        assert edit.get(tuple(path)) is None
    else:
        assert edit.get(tuple(path)) == value or value == {}
    assert [line for line in edit.text.split("\n") if line.startswith("#")] == comments


def test_a_file_that_is_no_toml_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"[mcp\n")
    with pytest.raises(ConfigError, match=r"config\.toml:1: is no valid TOML"):
        rewrite(file, lambda edit: edit.set(("model",), "a:b"))
    assert file.read_bytes() == b"[mcp\n"
    file.write_bytes(b"\xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        rewrite(file, lambda edit: edit.set(("model",), "a:b"))
    assert file.read_bytes() == b"\xff\n"


def test_writing_keeps_mode_and_link_and_leaves_nothing_beside(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "kage.toml"
    real.parent.mkdir()
    real.write_text("# mine\n")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    rewrite(link, lambda edit: edit.set(("model",), "a:b"))
    assert link.is_symlink()
    assert real.read_text() == '# mine\nmodel = "a:b"\n'
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    new = tmp_path / "new" / "config.toml"
    rewrite(new, lambda edit: edit.set(("model",), "a:b"))
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert sorted(os.listdir(real.parent)) == ["kage.toml"]
    assert sorted(os.listdir(new.parent)) == ["config.toml"]


def test_a_change_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('model = "a:b"\n')
    before = file.stat()
    assert not rewrite(file, lambda edit: edit.set(("model",), "a:b")).changed
    assert file.stat().st_ino == before.st_ino
    preview(file, lambda edit: edit.set(("model",), "c:d"))
    assert file.read_text() == 'model = "a:b"\n'


def test_two_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"

    def server(name: str) -> None:
        rewrite(file, lambda edit: edit.put(("mcp", "servers", name), {"command": "x"}))

    def write(name: str) -> None:
        for number in range(5):
            server(f"{name}{number}")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tomllib.loads(file.read_text())["mcp"]["servers"]) == 15


def test_a_failed_write_leaves_the_file_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.mkdir()
    with pytest.raises(KageError):
        rewrite(file, lambda edit: edit.set(("model",), "a:b"))
    assert os.listdir(tmp_path) == ["config.toml"]

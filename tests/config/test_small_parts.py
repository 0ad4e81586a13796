"""Durations, places in files, folders, and the generated example."""

from __future__ import annotations

import json
import os
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs.unix
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from kage.config import example, keys, server_keys
from kage.config.durations import BadDuration, parse_duration, spell_duration
from kage.config.paths import Paths, workspace_of
from kage.config.positions import json_positions, toml_positions
from kage.config.schema import Limits, Settings
from tests.config.files import Files


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("30s", 30), ("5m", 300), ("1h", 3600), ("250ms", 0.25), ("1m30s", 90), ("1h 30m", 5400)),
        *(("1.5s", 1.5), ("30", 30), (30, 30), (0, 0), (0.5, 0.5), (3600, 3600), (" 2s ", 2)),
    ],
)
def test_durations_are_text_with_units_or_seconds(value: object, seconds: float) -> None:
    assert parse_duration(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", "s", "5x", "5 parsecs", "-5s", "1s2", "s5", "5ss", "1e3s", "٣s", "nan", "1" * 100),
        *(
            3601,
            60000,
            "60000",
            -1,
            -0.5,
            float("nan"),
            float("inf"),
            True,
            None,
            [],
            {},
            "999999h",
        ),
    ],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(BadDuration):
        parse_duration(value)


def test_a_large_bare_number_is_taken_for_milliseconds() -> None:
    with pytest.raises(BadDuration, match="looks like milliseconds"):
        parse_duration(30_000)
    assert parse_duration("30000s") == 30_000


@given(st.integers(0, 10**9))
def test_a_duration_survives_being_written(milliseconds: int) -> None:
    assert parse_duration(spell_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@given(st.one_of(st.text(max_size=12), st.from_regex(r"[0-9.]{1,5}(ms|s|m|h)?", fullmatch=True)))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with suppress(BadDuration):
        assert parse_duration(text) >= 0


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
TREES = st.dictionaries(st.text(max_size=5), VALUES, max_size=5)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [
            found
            for key, item in value.items()
            for found in [(*path, key), *paths_of(item, (*path, key))]
        ]
    if isinstance(value, list):
        return [
            found for index, item in enumerate(value) for found in paths_of(item, (*path, index))
        ]
    return []


@given(TREES)
def test_every_key_of_a_toml_file_is_found(tree: dict[str, Any]) -> None:
    text = tomli_w.dumps(tree, multiline_strings=False)
    tree = tomllib.loads(text)
    found = toml_positions(text).lines
    lines = text.split("\n")
    for path in paths_of(tree):
        if len(path) <= 8:
            assert 1 <= found[path] <= len(lines), path


@given(TREES, st.sampled_from([None, 1]))
def test_every_key_of_a_json_file_is_found(tree: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(tree, indent=indent)
    found = json_positions(text).lines
    lines = text.split("\n")
    for path in paths_of(tree):
        if len(path) <= 8:
            assert json.dumps(path[-1]) in lines[found[path] - 1]


def test_positions_of_all_toml_forms() -> None:
    text = '''# first
a = """
x = 1
""" # two
b . "c d".e = \'\'\'
[no]\'\'\'
[t]
k = [ # comment ]
  1, { z = 1 },
]
[[arr]]
n = 1
[[arr]]
n = { p = "}", q.r = 2 }
[arr.sub]
m = "\\"[x]"
"es\\u0063" = 1
'''
    tomllib.loads(text)
    found = toml_positions(text)
    expected = {
        ("a",): 2,
        ("b", "c d", "e"): 5,
        ("t",): 7,
        ("t", "k"): 8,
        ("t", "k", 1, "z"): 9,
        ("arr", 0, "n"): 12,
        ("arr", 1, "n", "p"): 14,
        ("arr", 1, "n", "q", "r"): 14,
        ("arr", 1, "sub"): 15,
        ("arr", 1, "sub", "m"): 16,
        ("arr", 1, "sub", "esc"): 17,
    }
    assert {path: found.line(path) for path in expected} == expected
    assert found.line(("t", "missing")) == 7 and found.line(("none",)) == 0


@given(st.text(max_size=200))
def test_scanning_survives_any_text(text: str) -> None:
    toml_positions(text)
    json_positions(text)


def test_folders_are_those_of_platformdirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variables in (True, False):
        if not variables:
            for kind in ("CONFIG_HOME", "DATA_HOME", "CACHE_HOME"):
                monkeypatch.delenv(f"XDG_{kind}")
        theirs = platformdirs.unix.Unix("kage", appauthor=False)
        ours = Paths.from_environ(os.environ)
        assert str(ours.config) == theirs.user_config_dir
        assert str(ours.data) == theirs.user_data_dir
        assert str(ours.cache) == theirs.user_cache_dir
        assert str(ours.runtime) == theirs.user_runtime_dir
        assert ours.config_file == ours.config / "config.toml"
    odd = Paths.from_environ({"HOME": "/h", "XDG_CONFIG_HOME": "relative", "XDG_DATA_HOME": " "})
    assert (odd.config, odd.data) == (Path("/h/.config/kage"), Path("/h/.local/share/kage"))


def test_a_runtime_folder_others_can_open_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "run"
    shared.mkdir(mode=0o755)
    environ = {"HOME": "/h", "XDG_RUNTIME_DIR": str(shared), "TMPDIR": str(tmp_path)}
    assert shared not in Paths.from_environ(environ).runtime.parents


def test_the_workspace_is_the_git_root_or_the_folder(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "a" / "b"
    deep.mkdir(parents=True)
    assert workspace_of(deep) == deep
    (tmp_path / "repo" / ".git").mkdir()
    assert workspace_of(deep) == tmp_path / "repo"
    (tmp_path / "repo" / "a" / ".git").write_text("gitdir: elsewhere")
    assert workspace_of(deep) == tmp_path / "repo" / "a"
    link = tmp_path / "link"
    link.symlink_to(deep)
    assert workspace_of(link) == tmp_path / "repo" / "a"


ROOT = Path(__file__).parents[2]


def test_the_committed_example_is_the_generated_one() -> None:
    assert (ROOT / "config.toml.example").read_text() == example.text(), (
        "run: python -m kage.config.example > config.toml.example"
    )


def test_the_example_is_sound_as_it_stands_and_with_every_key_taken_in(files: Files) -> None:
    as_is = files.load(example.text())
    assert as_is.faults == () and as_is.settings == Settings()
    loaded = files.load(re.sub(r"(?m)^#(?! )", "", example.text()))
    assert loaded.faults == ()
    assert set(loaded.settings.servers) == {"filesystem", "remote"}
    assert loaded.settings.limits == Limits()


def test_the_example_names_every_key() -> None:
    text = example.text()
    for table in (
        keys.TOP,
        keys.PROVIDER,
        server_keys.MCP,
        server_keys.SERVER,
        server_keys.RESTART,
        keys.LIMITS,
    ):
        for key in table:
            assert re.search(rf"(?m)^#(\[[\w.]*\b{key.name}\b|{key.name} = )", text), key.name

"""What a server offered last time survives on disk, and nothing a file can hold does harm."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.mcp.client.calling.definitions import Listing, judge
from kage.mcp.client.servers.manifest import Manifest, Manifests

NOTHING = Listing()
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
_TEXT = st.text(alphabet=st.characters(), max_size=5)  # lone surrogates too
_ENTRY = st.fixed_dictionaries(
    {
        "name": _TEXT,
        "inputSchema": st.dictionaries(_TEXT, _JSON, max_size=3).map(
            lambda schema: {**schema, "type": "object"}
        ),
    },
    optional={
        "title": _TEXT | st.none(),
        "description": _TEXT | st.integers(),
        "outputSchema": st.dictionaries(_TEXT, _JSON, max_size=3),
        "annotations": st.dictionaries(
            st.sampled_from(["readOnlyHint", "title", "x"]), st.booleans() | _TEXT
        ),
    },
)
_LISTING = st.builds(
    lambda entries, dropped: Listing(tools=judge(entries).tools, dropped=tuple(dropped)),
    st.lists(_ENTRY, max_size=3),
    st.lists(_TEXT, max_size=2),
)


def manifest(listing: Listing = NOTHING, **more: Any) -> Manifest:
    return Manifest(**{"server": "s", "origin": "user", "entry": "e", "listing": listing, **more})


@settings(max_examples=40)
@given(listing=_LISTING, instructions=_TEXT)
def test_what_is_kept_comes_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, listing: Listing, instructions: str
) -> None:
    kept = Manifests(tmp_path_factory.mktemp("m") / "deep" / "er")
    offers = {"capabilities": {"tools": {}}, "prompts": [{"name": "p"}], "resources": []}
    before = manifest(listing, instructions=instructions, offers=offers)
    assert kept.save(before) == ""
    assert kept.load("s", "user", "e") == before


def test_it_counts_only_for_its_server_and_entry(tmp_path: Path) -> None:
    for kept in (Manifests(tmp_path), Manifests(None)):
        kept.save(manifest())
        kept.save(manifest(origin="/some/project", entry="other"))
        assert kept.load("s", "user", "e") == manifest()
        for wrong in (("s", "user", "x"), ("t", "user", "e"), ("s", "/some/project", "e")):
            assert kept.load(*wrong) is None
        kept.forget("s", "user")
        assert kept.load("s", "user", "e") is None
        kept.forget("s", "user")
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())


def _break(path: Path, how: str) -> None:
    match how:
        case "half":
            path.write_bytes(path.read_bytes()[:-9])
        case "bytes":
            path.write_bytes(b"\xff\xfe\x00")
        case "deep":
            path.write_text("[" * 100_000)
        case "list":
            path.write_text("[1]")
        case "link":
            other = path.with_name("other")
            path.rename(other)
            path.symlink_to(other)
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case "folder":
            path.unlink()
            path.mkdir()
        case "tool":
            data = json.loads(path.read_text())
            data["tools"][0] = ["a", {"type": "object"}]
            path.write_text(json.dumps(data))
        case "schema":
            data = json.loads(path.read_text())
            data["tools"][0]["inputSchema"] = "object"
            path.write_text(json.dumps(data))
        case "prompts":
            data = json.loads(path.read_text())
            data["offers"] = {"prompts": ["p"]}
            path.write_text(json.dumps(data))


_HOWS = ["half", "bytes", "deep", "list", "link", "pipe", "tool", "schema", "prompts"]


@pytest.mark.parametrize("how", [*_HOWS, "folder"])
def test_a_broken_file_counts_as_none_and_is_replaced(tmp_path: Path, how: str) -> None:
    kept = Manifests(tmp_path)
    tool = {"name": "a", "inputSchema": {"type": "object"}}
    whole = manifest(judge([tool]))
    kept.save(whole)
    [path] = tmp_path.iterdir()
    _break(path, how)
    assert kept.load("s", "user", "e") is None
    if how == "folder":
        assert "irectory" in kept.save(whole)  # said, and nothing else happens
    else:
        assert kept.save(whole) == ""
        assert kept.load("s", "user", "e") == whole


@settings(max_examples=40)
@given(data=_JSON)
def test_no_json_does_harm(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    kept = Manifests(tmp_path_factory.mktemp("m"))
    kept.save(manifest())
    [path] = next(os.walk(kept._folder or ""))[2]
    Path(kept._folder or "", path).write_text(json.dumps(data))
    assert kept.load("s", "user", "e") is None


def test_a_folder_that_cannot_be_written_costs_only_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in Manifests(tmp_path / "file" / "below").save(manifest())


def test_a_forged_file_cannot_give_a_definition_the_pin_of_another(tmp_path: Path) -> None:
    kept = Manifests(tmp_path)
    listing = judge([{"name": "a", "description": "before", "inputSchema": {"type": "object"}}])
    kept.save(manifest(listing))
    [path] = tmp_path.iterdir()
    path.write_text(path.read_text().replace("before", "after!"))
    forged = kept.load("s", "user", "e")
    assert forged is not None
    assert forged.listing.tools[0].description == "after!"
    assert forged.listing.tools[0].pin != listing.tools[0].pin

"""Which of several declarations of one server counts, for every pair of layers."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kage.config.layers import Entry, Layer, in_force, merge, of_name, plugin_entries
from kage.config.schema import Place, ServerSpec
from tests.config.files import Files

LAYERS = [layer for layer in Layer if layer is not Layer.DEFAULT]
PAIRS = list(itertools.combinations(LAYERS, 2))
OWN = (Layer.USER, Layer.EXTRA)


def entry(layer: Layer, *, locked: bool = False) -> Entry:
    origin = {Layer.PROJECT: "/repo"}.get(layer, "user" if layer in OWN else "plugin:p")
    place = Place(file=Path(layer.name), line=1)
    spec = ServerSpec(name="s", command=layer.name, origin=origin, place=place, locked=locked)
    return Entry(spec=spec, layer=layer)


@pytest.mark.parametrize(("weak", "strong"), PAIRS)
@pytest.mark.parametrize("backwards", [False, True])
def test_the_stronger_layer_counts_and_says_what_it_replaced(
    weak: Layer, strong: Layer, backwards: bool
) -> None:
    pair = [entry(weak), entry(strong)]
    merged = merge(reversed(pair) if backwards else pair, lambda spec: True)
    assert merged.servers["s"].command == strong.name
    assert merged.notes == (f"{strong.name}:1: s replaces {weak.name}:1",)
    assert merged.waiting == () == merged.advice


@pytest.mark.parametrize(("weak", "strong"), PAIRS)
def test_what_is_not_trusted_replaces_nothing(weak: Layer, strong: Layer) -> None:
    merged = merge([entry(weak), entry(strong)])
    won = merged.servers["s"].command
    match weak in OWN, strong in OWN:
        case _, True:
            assert (won, merged.waiting) == (strong.name, ())
        case True, False:
            assert won == weak.name
            assert [spec.command for spec in merged.waiting] == [strong.name]
            assert f"{strong.name}:1: s replaces {weak.name}:1 only once" in merged.advice[0]
        case _:  # neither: it is named, and the manager does not start it
            assert won == strong.name


@pytest.mark.parametrize("strong", [Layer.PROJECT, Layer.EXTRA, Layer.PLUGIN])
@pytest.mark.parametrize("theirs", [False, True])
def test_a_locked_entry_stays_whatever_comes_after_it(strong: Layer, theirs: bool) -> None:
    merged = merge(
        [entry(Layer.PLUGIN_DEFAULT), entry(Layer.USER, locked=True), entry(strong, locked=theirs)],
        lambda spec: True,
    )
    assert merged.servers["s"].command == "USER"
    assert merged.waiting == ()
    assert any("is locked in USER:1, which stays in force" in note for note in merged.notes)


def test_an_untrusted_entry_cannot_lock_out_the_persons_own() -> None:
    entries = [entry(Layer.PLUGIN_DEFAULT, locked=True), entry(Layer.USER)]
    assert in_force(entries, lambda spec: spec.origin == "user").layer is Layer.USER


def test_entries_of_plugins_take_both_of_their_layers() -> None:
    spec = ServerSpec(name="s", command="x", origin="plugin:p")
    found = plugin_entries([spec], defaults=[spec])
    assert [item.layer for item in of_name(found, "s")] == [Layer.PLUGIN_DEFAULT, Layer.PLUGIN]


def test_the_two_files_of_a_project_and_the_command_line_in_their_order(files: Files) -> None:
    files.project_json('{"mcpServers": {"s": {"command": "json"}, "j": {"command": "json"}}}')
    files.project_toml('[mcp.servers.s]\ncommand = "toml"\n')
    loaded = files.load('[mcp.servers.s]\ncommand = "user"\n[mcp.servers.u]\ncommand = "u"\n')
    everything = loaded.settled(lambda spec: True)
    found = {name: spec.command for name, spec in everything.settings.servers.items()}
    assert found == {"s": "toml", "u": "u", "j": "json"}
    given = files.load(mcp_config=['{"mcpServers": {"s": {"command": "given"}}}'])
    assert given.settled(lambda spec: True).settings.servers["s"].command == "given"
    strict = files.load(mcp_config=['{"mcpServers": {"s": {"command": "x"}}}'], strict=True)
    assert [e.spec.command for e in strict.entries] == ["x"]


def test_the_same_server_under_two_names_is_pointed_out(files: Files) -> None:
    loaded = files.load(
        '[mcp.servers.a]\ncommand = "x"\nargs = ["1"]\n'
        '[mcp.servers.b]\ncommand = "x"\nargs = ["1"]\n'
        '[mcp.servers.c]\nurl = "https://h/mcp"\n[mcp.servers.d]\nurl = "https://h/mcp"\n'
        '[mcp.servers.e]\ncommand = "x"\n[mcp.servers.off]\ncommand = "x"\ndisabled = true\n'
    )
    twins = [text for text in loaded.advice if "the same as" in text]
    assert len(twins) == 2
    assert "b starts the same as a" in twins[0] and "d connects to the same as c" in twins[1]

"""Where results go and how many tools a server may offer: the server's word beats the default."""

from __future__ import annotations

import pytest

from kage.config.schema import OUTPUT
from tests.config.files import Files

TWO = '[mcp.servers.a]\ncommand = "a"\n{a}\n[mcp.servers.b]\ncommand = "b"\n'


@pytest.mark.parametrize(
    ("top", "own", "a", "b"),
    [
        ("", "", OUTPUT, OUTPUT),
        ("", 'output = { image = "artifact" }', {**OUTPUT, "image": "artifact"}, OUTPUT),
        (
            'output = { resource = "model", text = "artifact" }',
            'output = { text = "model" }',
            {"resource": "model", "text": "model"},
            {"resource": "model", "text": "artifact"},
        ),
        (
            'output = "artifact"',
            'output = "model"',
            dict.fromkeys(("text", "image", "audio", "resource"), "model"),
            dict.fromkeys(("text", "image", "audio", "resource"), "artifact"),
        ),
    ],
)
def test_each_kind_goes_where_the_nearest_word_sends_it(
    files: Files, top: str, own: str, a: dict[str, str], b: dict[str, str]
) -> None:
    loaded = files.load(f"[mcp]\n{top}\n" + TWO.format(a=own))
    assert loaded.faults == ()
    assert loaded.settings.notes == ()  # it has an effect
    servers = loaded.settings.servers
    assert (servers["a"].output, servers["b"].output) == (a, b)


def test_the_other_keys_of_results_and_tools_are_read(files: Files) -> None:
    loaded = files.load(
        '[mcp]\nmax_tools = 9\ndefer_tools = "always"\n'
        + TWO.format(a="max_tools = 3\nfetch_resource_links = true\nmax_output_tokens = 5")
    )
    assert loaded.faults == () and loaded.settings.notes == ()
    a, b = loaded.settings.servers.values()
    assert (a.max_tools, a.fetch_resource_links, a.max_output_tokens) == (3, True, 5)
    assert (b.max_tools, b.fetch_resource_links, b.max_output_tokens) == (9, False, 25_000)
    assert loaded.settings.defer_tools == "always"


@pytest.mark.parametrize(
    "line",
    [
        'output = "screen"',
        'output = { image = "screen" }',
        "output = 1",
        'output = { film = "model" }',
    ],
)
def test_a_wrong_word_leaves_the_server_out_and_is_told(files: Files, line: str) -> None:
    loaded = files.load(TWO.format(a=line))
    assert len(loaded.faults) == 1 and "output" in str(loaded.faults[0])
    assert set(loaded.settings.servers) == {"b"}

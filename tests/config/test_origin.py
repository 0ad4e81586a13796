"""Every value of an entry knows its file and line, and what it replaced."""

from __future__ import annotations

from typing import Any

from kage.config.layers import in_force, of_name
from kage.config.load import Loaded
from kage.config.origin import Origin, origins
from tests.config.files import Files


def explained(loaded: Loaded, name: str, *, trusted: bool = False) -> dict[str, Origin]:
    declared = of_name(loaded.entries, name)
    chosen = in_force(declared, lambda spec: trusted or spec.origin == "user")
    return {item.key: item for item in origins(declared, chosen)}


def chain(item: Origin) -> list[tuple[Any, str, int]]:
    every = (item.now, *item.replaced)
    return [(v.value, v.layer, v.place.line if v.place else 0) for v in every]


def test_a_servers_own_value_beats_the_shared_one_beats_the_default(files: Files) -> None:
    loaded = files.load(
        "[mcp]\n"
        'tool_timeout = "90s"\n'
        'default_timeout = "10s"\n'
        "auto_reconnect = false\n"
        "[mcp.servers.a]\n"
        'command = "x"\n'
        'tool_timeout = "5m"\n'
        "[mcp.servers.b]\n"
        'command = "y"\n'
    )
    a, b = explained(loaded, "a"), explained(loaded, "b")
    assert chain(a["tool_timeout"]) == [
        (300.0, "user", 7),
        ("90s", "user [mcp]", 2),
        (60.0, "default", 0),
    ]
    assert chain(b["tool_timeout"]) == [(90.0, "user [mcp]", 2), (60.0, "default", 0)]
    assert chain(b["timeout"]) == [(10.0, "user [mcp]", 3), (30.0, "default", 0)]
    assert chain(b["required"]) == [(False, "default", 0)]
    assert b["restart"].now.value["enabled"] is False
    assert b["restart"].now.place is not None and b["restart"].now.place.line == 4


def test_what_a_whole_entry_replaced_is_named_with_its_file(files: Files) -> None:
    project = files.project_toml('[mcp.servers.a]\ncommand = "theirs"\nrequired = true\n')
    loaded = files.load('[mcp.servers.a]\ncommand = "mine"\nenabled = false\n')
    found = explained(loaded, "a", trusted=True)
    assert chain(found["command"])[:2] == [("theirs", "project", 2), ("mine", "user", 2)]
    assert found["command"].now.place is not None and found["command"].now.place.file == project
    assert chain(found["disabled"]) == [(False, "default", 0), (True, "user", 3)]
    own = explained(loaded, "a")
    assert chain(own["command"])[:2] == [("mine", "user", 2), ("theirs", "project", 2)]


def test_defaults_given_on_the_command_line_say_so(files: Files) -> None:
    extra = files.base / "more.toml"
    extra.write_text('[mcp]\npin = "warn"\n[mcp.servers.a]\ncommand = "x"\n')
    loaded = files.load('[mcp]\npin = "off"\n', mcp_config=[extra])
    assert chain(explained(loaded, "a")["pin"]) == [
        ("warn", "--mcp-config [mcp]", 2),
        ("off", "user [mcp]", 2),
        ("ask", "default", 0),
    ]


def test_literal_values_of_variables_and_headers_are_hidden(files: Files) -> None:
    loaded = files.load(
        '[mcp.servers.a]\nurl = "https://h"\nheaders = { A = "s3cret", B = "Bearer ${T}" }\n'
    )
    shown = explained(loaded, "a")["headers"].now.value
    assert shown == {"A": "(hidden)", "B": "Bearer ${T}"}

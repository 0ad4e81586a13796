"""The verbs that list, read and fill in what a server offers beside tools."""

from __future__ import annotations

import json

from tests.proof.house import House, server


def test_the_verbs_list_read_and_fill_in(house: House) -> None:
    house.write(server("memo", "offers", "--bad"))
    listed = house.kage("mcp", "resources", "memo", "--json").json
    assert listed["resources"][0]["uri"] == "memo://note/0" and listed["dropped"]
    assert listed["templates"][0]["template"] == "weather://{city}"
    table = house.kage("mcp", "resources", "memo")
    assert "weather://{city}" in table.out and table.lines("left out", "no name")
    assert "\x1b" not in table.out + table.err

    read = house.kage("mcp", "read", "memo", "memo://note/0")
    assert (read.code, read.out) == (0, "text of memo://note/0, read 1\n")
    target = house.workspace / "pixel.png"
    assert house.kage("mcp", "read", "memo", "memo://pixel", "-o", str(target)).code == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    missing = house.kage("mcp", "read", "memo", "memo://none")
    assert missing.code == 1 and missing.lines("Resource not found")

    prompts = house.kage("mcp", "prompts", "memo", "--json").json["prompts"]
    assert [item["name"] for item in prompts] == ["hello", "review", "talk"]
    assert "path [depth]" in house.kage("mcp", "prompts", "memo").out
    filled = house.kage("mcp", "prompt", "memo", "review", "path=a.py", "--json").json
    assert filled["messages"][0]["role"] == "user"
    assert house.kage("mcp", "prompt", "memo", "review").code == 2
    told = house.kage("mcp", "get", "memo").out
    assert "prompts: 3\n" in told and "resources: 6\n" in told and "templates: 2\n" in told
    assert house.kage("mcp", "resources", "mem").lines("Did you mean memo?")
    assert json.dumps(filled).count("Review a.py") == 1

"""How a call by hand ends: its limits, and one exit code for each way."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Kage
from tests.proof.house import House, server


@pytest.mark.parametrize(
    "words",
    [
        ("sleep", "seconds=60", "--timeout", "300ms"),
        ("progress", "steps=600", "pause=0.1", "--timeout", "0.5"),  # progress does not help
    ],
    ids=lambda words: words[0],
)
def test_a_limit_on_the_command_line_ends_the_call(
    house: House, kage: Kage, words: tuple[str, ...]
) -> None:
    house.write(server("srv", "echo"))
    ended = kage("mcp", "call", f"srv__{words[0]}", *words[1:])
    assert (ended.code, ended.out) == (5, "")
    assert "given up after" in ended.err


@pytest.mark.parametrize("limit", ["soon", "0", "90000", "-1"])
def test_a_limit_that_is_none_is_refused(house: House, kage: Kage, limit: str) -> None:
    house.write(server("srv", "echo"))
    ended = kage("mcp", "call", "srv__echo", "text=x", "--timeout", limit)
    assert (ended.code, ended.out) == (2, "")
    assert "timeout" in ended.err


def test_a_protocol_error_is_not_the_failure_of_a_tool(house: House, kage: Kage) -> None:
    house.write(server("srv", "odd_results"))
    ended = kage("mcp", "call", "srv__odd", "how=error")
    assert (ended.code, ended.out) == (6, "")
    assert "refused the call of its tool" in ended.err


def test_bytes_of_a_result_go_where_they_are_wanted(house: House, kage: Kage) -> None:
    house.write(server("srv", "media"))
    told = kage("mcp", "call", "srv__give", "kind=image")
    assert told.code == 0 and "image/png, 70 bytes]" in told.out and "-o FILE" in told.err
    page = house.workspace / "page.png"
    kept = kage("mcp", "call", "srv__give", "kind=image", "-o", "page.png")
    assert (kept.code, kept.err) == (0, "") and "in the file page.png" in kept.out
    assert page.read_bytes().startswith(b"\x89PNG")
    every = kage("mcp", "call", "srv__give", "-o", "out.bin")
    assert every.code == 0 and "in the file out-2.bin" in every.out
    assert (house.workspace / "out-3.bin").read_bytes() == bytes(range(256))
    folder = house.workspace / "kept"
    folder.mkdir()
    (folder / "audio-1.wav").symlink_to(page)
    kage("mcp", "call", "srv__give", "--output", "kept")
    assert sorted(path.name for path in folder.iterdir()) == [
        "audio-1.wav", "audio-2.wav", "image-1.png", "resource-1.bin",
    ]  # fmt: skip
    assert page.read_bytes().startswith(b"\x89PNG")  # nothing is written over
    words = kage("mcp", "call", "srv__give", "kind=text", "-o", "said.txt", "--json")
    assert words.json["content"][0]["path"] == "said.txt"
    assert "plain" in (house.workspace / "said.txt").read_text()
    nowhere = kage("mcp", "call", "srv__give", "-o", "no/where.png")
    assert nowhere.code == 2 and "There is no folder" in nowhere.err
    refused = kage("mcp", "call", "srv__give", "kind=image", "-o", "/proc/page.png")
    assert refused.code == 1 and "image/png" in refused.out and "/proc/page.png" in refused.err

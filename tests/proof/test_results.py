"""What a result becomes on its way to model, session file and disk; tools found by search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llm import ScriptedModel, call, say
from tests.llm.script import Request, Turn
from tests.proof.house import House, server
from tests.stubs.media import BLOB, PIXEL

BOTH = pytest.mark.parametrize("wire", ["anthropic", "openai"])
DONE = say("done")


def _artifacts(house: House) -> list[Path]:
    return sorted((house.data / "sessions").glob("*/artifacts/*"))


def _tool_lines(house: House) -> list[dict[str, Any]]:
    (file,) = (house.data / "sessions").glob("*/session.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line for line in lines if line["type"] == "tool"]


def _run(house: House, model: ScriptedModel, wire: str = "anthropic", *more: str) -> None:
    house.use(model, wire)
    ended = house.kage("-p", "go", "--allow", "srv__*", *more)
    assert (ended.code, ended.err) == (0, ""), ended.err
    assert model.unused == 0


@BOTH
def test_every_kind_of_content_reaches_the_model_the_session_and_the_disk(
    house: House, wire: str
) -> None:
    house.write(server("srv", "media"))
    with ScriptedModel([call("srv__give", kind="all"), DONE]) as model:
        _run(house, model, wire)
    image, audio, text, blob = _artifacts(house)
    assert [path.suffix for path in (image, audio, text, blob)] == [".png", ".wav", ".txt", ".bin"]
    assert text.read_text() == "inside" and blob.read_bytes() == bytes(range(256))
    body = json.dumps(model.requests[1].body)
    assert PIXEL in body and BLOB not in body and "inside" not in body
    told = model.requests[1].last_result
    for path in (audio, text, blob):  # left out or kept, with the place
        assert str(path) in told
    assert "https://example.invalid/c" in told and "[bold]x[/bold]" in told
    (line,) = _tool_lines(house)
    kinds = [part["kind"] for part in line["content"]]
    assert kinds == ["text", "image", "audio", "artifact", "artifact", "link", "link"]
    assert line["content"][1]["data"] == PIXEL


def test_structured_content_and_pictures_stand_side_by_side(house: House) -> None:
    house.write(server("srv", "media"))
    script: list[Turn] = [call("srv__give", kind="structured"), call("srv__checked"), DONE]
    with ScriptedModel(script) as model:
        _run(house, model)
    first, second = _tool_lines(house)
    assert first["structured"] == {"answer": 42, "list": [1, 2]}
    assert second["structured"] == {"answer": "no number"} and second["outcome"] == "ok"
    assert '"answer": 42' in model.requests[1].last_result
    assert "breaks what 'checked' promised" in model.requests[2].last_result


def test_output_of_the_server_beats_the_default_of_all(house: House) -> None:
    house.write(
        '[mcp]\noutput = { image = "artifact", resource = "model" }',
        server("srv", "media", output='{ text = "artifact" }'),
    )
    with ScriptedModel([call("srv__give", kind="all"), DONE]) as model:
        _run(house, model)
    body = json.dumps(model.requests[1].body)
    assert PIXEL not in body and "inside" in body and "[bold]" not in body
    (line,) = _tool_lines(house)
    routed = [part["of"] for part in line["content"] if part["kind"] == "artifact"]
    assert routed == ["text", "image"]


def test_a_flood_is_cut_and_the_rest_read_from_the_file_without_a_question(house: House) -> None:
    house.write(server("srv", "echo"))
    (house.home / "secret").write_text("of the home")

    def read(request: Request) -> Turn:
        (path,) = _artifacts(house)
        assert len(request.last_result) <= 100_000
        assert str(path) in request.last_result and "of 1,000,000 char" in request.last_result
        beside = path.parent.parent / "session.jsonl"
        return [
            call("read", path=str(path), limit=1),
            call("read", path=str(beside)),
            call("read", path=str(house.home / "secret")),
        ]

    with ScriptedModel([call("srv__long", size=1_000_000), read, DONE]) as model:
        house.use(model)
        ended = house.kage("-p", "go", "--allow", "srv__*")
    assert ended.code == 4  # the two outside were refused
    (path,) = _artifacts(house)
    assert path.read_text() == "x" * 1_000_000
    texts = {line["content"][0]["text"]: line["outcome"] for line in _tool_lines(house)[1:]}
    inside = [text for text, outcome in texts.items() if outcome == "ok"]
    assert len(texts) == 3 and len(inside) == 1 and "xxxx" in inside[0]
    assert all("outside the workspace" in text for text in texts if text not in inside)
    listed = house.kage("session", "show", path.parent.parent.name, "--artifacts")
    assert str(path) in listed.out and "1,000,000" in listed.out


def test_the_limit_of_a_server_counts_for_failures_too(house: House) -> None:
    house.write(server("srv", "echo", max_output_tokens=200))
    with ScriptedModel([call("srv__fail", text="no! " * 2_000), DONE]) as model:
        _run(house, model)
    assert "no! no!" in model.requests[1].last_result
    assert len(model.requests[1].last_result) <= 800


def test_links_are_read_only_where_the_person_wants_it(house: House) -> None:
    seen = house.home / "seen"
    with ScriptedModel([call("srv__give", kind="all"), DONE] * 2) as model:
        house.write(server("srv", "media", "--resources", "--record", seen))
        house.use(model)
        assert house.kage("-p", "go", "--allow", "srv__*").code == 0
        assert "resources/read" not in seen.read_text()
        house.write(
            '[mcp]\noutput = "model"',
            server("srv", "media", "--resources", "--record", seen, fetch_resource_links="true"),
        )
        assert house.kage("-p", "go", "--allow", "srv__*").code == 0
    asked = [json.loads(line) for line in seen.read_text().splitlines()]
    uris = [m["params"]["uri"] for m in asked if m.get("method") == "resources/read"]
    assert uris == ["note://own/1"]
    told = model.requests[3].last_result
    assert "what the link means" in told
    assert "https://example.invalid/c was not read: it is an address outside" in told


def test_the_most_tools_of_a_server_is_kept_and_told(house: House) -> None:
    house.write(server("srv", "pages", "--tools", 30, max_tools=12, disabled_tools='["tool_0"]'))
    with ScriptedModel([DONE]) as model:
        house.use(model)
        ended = house.kage("-p", "go")
    offered = [name for name in model.requests[0].tools if name.startswith("srv__")]
    assert offered == [f"srv__tool_{number}" for number in range(1, 13)]
    assert len(ended.lines("17 tools", "max_tools")) == 1, ended.err


# ---- deferred tools


@BOTH
def test_three_hundred_tools_cost_under_3000_tokens_and_are_found(house: House, wire: str) -> None:
    house.write(server("srv", "pages", "--tools", 300, "--page", 100))
    script: list[Turn] = [
        call("mcp_tools", query="tool_250"),
        call("srv__tool_250"),
        call("srv__tool_7"),  # never looked for: its name is right
        DONE,
    ]
    with ScriptedModel(script) as model:
        _run(house, model, wire)
    first, second, third, last = model.requests
    assert first.size / 4 < 3_000, f"about {first.size // 4} tokens"
    names = list(first.tools)
    assert not [name for name in names if name.startswith("srv__")]
    assert {"mcp_tools", "mcp_status"} <= set(names)
    assert "srv (300): tool_0, tool_1" in first.system
    assert list(second.tools) == [*names, "srv__tool_250"]
    assert list(third.tools) == list(second.tools)
    assert third.last_result == "tool_250" and last.last_result == "tool_7"
    assert list(last.tools) == [*names, "srv__tool_250", "srv__tool_7"]
    assert first.system == last.system


def test_a_deferred_call_is_checked_against_the_servers_own_schema(house: House) -> None:
    house.write('[mcp]\ndefer_tools = "always"', server("srv", "echo"))
    script: list[Turn] = [call("srv__add", a="one", b=2), call("srv__add", a=1, b=2), DONE]
    with ScriptedModel(script) as model:
        _run(house, model)
    assert "do not fit srv__add" in model.requests[1].last_result
    assert model.requests[2].last_result == "3"


def test_without_servers_the_tools_about_them_are_not_there(house: House) -> None:
    house.write(server("srv", "echo", disabled="true"))
    with ScriptedModel([DONE]) as model:
        _run(house, model)
    assert not {"mcp_tools", "mcp_status"} & set(model.requests[0].tools)


def test_the_model_can_ask_why_a_server_is_down(house: House) -> None:
    house.write(
        server("good", "echo"), server("bad", "exits", "--code", 3, env='{ K = "hush-hush" }')
    )
    with ScriptedModel([call("mcp_status"), DONE]) as model:
        house.use(model)
        ended = house.kage("-p", "go")
    assert ended.code == 0
    told = model.requests[1].last_result
    assert "good: connected" in told and "bad: " in told and "3" in told
    assert "hush-hush" not in told and "exits.py" not in told

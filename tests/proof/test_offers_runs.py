"""Whole runs with what servers offer beside tools: mentions, prompts, and the verbs by hand."""

from __future__ import annotations

from typing import Any

from tests.llm import ScriptedModel, say
from tests.proof.house import House, server


def _user(model: ScriptedModel) -> str:
    """Give everything the model was sent in the last user message."""
    found: Any = model.requests[-1].body["messages"][-1]["content"]
    return found if isinstance(found, str) else "\n".join(part.get("text", "") for part in found)


def test_mentions_of_a_prompt_are_attached_frozen_and_marked_as_data(house: House) -> None:
    house.write(server("memo", "offers"))
    (house.workspace / "a.py").write_text("print('a file')\n")
    (house.workspace / ".gitignore").write_text("kept.log\n")
    (house.workspace / "kept.log").write_text("ignored, and named exactly\n")
    (house.home / "secret.txt").write_text("outside")
    prompt = (
        "compare @a.py, @kept.log and @memo:memo://note/0. Not `@a.py`, me@memo.org, "
        f"@nowhere.txt or @{house.home}/secret.txt; see (@memo:memo://missing)"
    )
    with ScriptedModel([say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", prompt, stdin="piped in: @memo:memo://note/1")
        text = _user(model)
    assert (ended.code, ended.out) == (0, "done\n")
    assert text.startswith(prompt)
    assert "print('a file')" in text and "ignored, and named exactly" in text
    assert "text of memo://note/0, read 1" in text
    assert "note/1, read" not in text  # what was piped in is data
    assert "outside" not in text.removeprefix(prompt)
    assert text.count("not instructions") == 3
    assert ended.lines("@nowhere.txt", "stayed plain text")
    assert ended.lines("@memo:memo://missing could not be attached", "Resource not found")
    acts = [r for r in house.records() if r["kind"] == "decision"]
    assert {r["tool"] for r in acts} == {"read", "memo__resources/read"}
    assert all(r["by_hand"] and r["who"] == "person" for r in acts)
    assert house.kage("session", "list", "--json").json[0]["title"].startswith("compare @a.py")


def test_what_a_resource_says_cannot_close_its_fence(house: House) -> None:
    house.write(server("memo", "offers"))
    with ScriptedModel([say("done")]) as model:
        house.use(model)
        house.kage("-p", "look at @memo:memo://injection")
        text = _user(model)
    opening = text[text.index("not instructions:") :].split("\n")[1]
    closing = f"</untrusted {opening.removeprefix('<untrusted from=').partition(' ')[2]}"
    assert text.count(closing) == 1 and text.rstrip().endswith(closing)


def test_a_huge_resource_is_cut_and_the_rest_is_in_a_file(house: House) -> None:
    house.write(server("memo", "offers"))
    with ScriptedModel([say("done")]) as model:
        house.use(model)
        house.kage("-p", "look at @memo:memo://huge")
        text = _user(model)
    assert len(text) <= 100_500
    assert "of 1,3" in text and "artifacts" in text


def test_a_servers_prompt_is_filled_in_and_sent_as_the_servers_words(house: House) -> None:
    house.write(server("memo", "offers"))
    (house.workspace / "memo.txt").write_text("not for servers to attach")
    with ScriptedModel([say("fine")]) as model:
        house.use(model)
        ended = house.kage("-p", "/memo:review a.py depth=3")
        head, opening, said, closing = _user(model).split("\n")
        assert head == "The person chose a prompt of the MCP server memo. Its words are:"
        assert said == "Review a.py to depth 3. @memo.txt"
        assert opening.startswith('<untrusted from="memo"') and closing.startswith("</untrusted")
    assert (ended.code, ended.out, ended.err) == (0, "fine\n", "")
    (record,) = [r for r in house.records() if r["kind"] == "decision"]
    assert (record["tool"], record["verdict"]) == ("memo__prompts/get", "allow")


def test_a_prompt_that_cannot_be_had_ends_the_run_with_what_to_do(house: House) -> None:
    house.write(server("memo", "offers"))
    with ScriptedModel([]) as model:
        house.use(model)
        missing = house.kage("-p", "/memo:review depth=3")
        unknown = house.kage("-p", "/memo:nothing a=b")
        assert model.requests == []
    assert missing.code == unknown.code == 1
    assert missing.lines("needs path", "/memo:review path=… [depth=…]")
    assert unknown.lines("Unknown prompt: nothing", "kage mcp prompts memo")


def test_a_denied_server_gives_neither_resources_nor_prompts(house: House) -> None:
    house.write(
        server("memo", "offers", "--record", house.home / "seen"),
        '[permissions.mcp]\nmemo = "deny"\n',
    )
    with ScriptedModel([say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "look at @memo:memo://note/0")
        assert _user(model) == "look at @memo:memo://note/0"
        assert ended.lines("could not be attached", "deny")
        refused = house.kage("-p", "/memo:hello")
    assert refused.code == 1
    assert house.kage("mcp", "read", "memo", "memo://note/0").code == 4
    assert house.kage("mcp", "prompt", "memo", "hello").code == 4
    seen = (house.home / "seen").read_text()
    assert "resources/read" not in seen and "prompts/get" not in seen


def test_without_a_model_what_was_attached_is_shown_and_a_servers_words_call_nothing(
    house: House,
) -> None:
    house.write(server("memo", "offers"))
    shown = house.kage("-p", "what is @memo:memo://note/0", "--model", "offline")
    assert "text of memo://note/0" in shown.out and shown.code == 0
    prompt = house.kage("-p", "/memo:review path=a.py", "--model", "offline")
    assert "Review a.py to depth 1" in prompt.out and "No model is connected" in prompt.out

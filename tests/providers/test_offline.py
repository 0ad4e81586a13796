"""Without a model kage still calls tools, finds them by words, and pretends nothing."""

from __future__ import annotations

import asyncio

import pytest

from kage.core.content import Image, Text
from kage.core.messages import Outcome, Stop
from kage.providers.base import TextDelta
from kage.providers.offline import Offline
from tests.providers.asking import answered, called, collect, gave, reply, said, tool, wants

TOOLS = [
    tool("read", description="Read a file. It gives lines."),
    tool(
        "find",
        {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
        description="Find files by name.",
    ),
    tool(
        "github__create_issue", {"type": "object"}, description="Open a new issue.", server="github"
    ),
]


def answer(*messages, tools=TOOLS, markdown=False):
    async def main():
        return await collect(Offline(markdown=markdown), wants(*messages, tools=tools))

    events = asyncio.run(main())
    return events, reply(events)


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("read path=README.md", "read", {"path": "README.md"}),
        ("read README.md limit=3", "read", {"path": "README.md", "limit": 3}),
        ('read {"path": "a b"}', "read", {"path": "a b"}),
        ("mcp__github__create_issue title=x", "github__create_issue", {"title": "x"}),
    ],
)
def test_a_typed_call_becomes_a_call(prompt, name, arguments):
    events, message = answer(said(prompt))
    assert message.stop is Stop.TOOLS
    assert [(c.name, c.arguments) for c in message.calls] == [(name, arguments)]
    assert events[0].call_id == message.calls[0].id
    assert message.model == "offline"
    assert message.id == "m-reply"


def test_the_result_is_the_answer():
    events, message = answer(said("read a"), answered(called("c1")), gave("c1", "line one"))
    assert message.text == "line one"
    assert message.stop is Stop.END
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["line one"]


def test_a_result_stands_in_a_code_block_where_markdown_is_drawn():
    result = gave("c1", "1  first\n```\n2  second")
    _, message = answer(said("read a"), answered(called("c1")), result, markdown=True)
    assert message.text == "````\n1  first\n```\n2  second\n````"


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.OK])
def test_a_call_that_did_not_work_is_told_as_that(outcome):
    _, message = answer(said("x"), answered(called("c1")), gave("c1", "why", outcome=outcome))
    assert message.text != "why"
    assert message.text.endswith("\nwhy")


def test_a_picture_or_nothing_is_named_in_words():
    picture = Image(data="AAAA", mime="image/png")
    _, message = answer(said("x"), answered(called("c1")), gave("c1", picture))
    assert "image/png" in message.text
    _, message = answer(said("x"), answered(called("c1")), gave("c1"))
    assert message.text == "(no output)"


def test_a_new_prompt_after_a_result_is_answered_itself():
    history = (said("read a"), answered(called("c1")), gave("c1", "r"), answered(Text("r")))
    _, message = answer(*history, said("read b"))
    assert message.calls[0].arguments == {"path": "b"}
    assert message.calls[0].id != "c1"


@pytest.mark.parametrize("prompt", ["open an issue about this", "find me all the files", "hello?"])
def test_other_words_find_tools_and_say_that_no_model_is_connected(prompt):
    _, message = answer(said(prompt))
    assert message.calls == ()
    assert "No model is connected" in message.text
    assert "ANTHROPIC_API_KEY" in message.text
    assert "`" in message.text


def test_tools_are_found_by_the_words_of_their_descriptions():
    _, message = answer(said("please open issues"))
    assert message.text.index("github__create_issue") > 0
    assert "`read " not in message.text


def test_a_slip_in_a_call_is_explained_and_not_run():
    _, message = answer(said("read limit=many"))
    assert "limit must be a whole number" in message.text
    assert message.calls == ()
    _, message = answer(said("github__creat_issue title=x"))
    assert "github__create_issue" in message.text


def test_without_tools_it_says_so():
    _, message = answer(said("anything"), tools=[])
    assert "no tools" in message.text


@pytest.mark.parametrize("prompt", ["", "   ", "\n"])
def test_an_empty_prompt_is_answered_in_words(prompt):
    _, message = answer(said(prompt))
    assert "No model" in message.text

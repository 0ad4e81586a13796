"""A server's prompt as a line: its arguments, and the message it becomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.agent.prompts import arguments, content, split, written
from kage.core.content import Image, Text
from kage.core.errors import UsageError
from kage.core.offers import FilledPrompt, PromptArgument, PromptMessage, PromptOffer

REVIEW = PromptOffer(
    name="review",
    arguments=(
        PromptArgument(name="depth"),
        PromptArgument(name="path", required=True),
    ),
)
ASK = PromptOffer(name="ask", arguments=(PromptArgument(name="question", required=True),))


def _read(rest: str, offer: PromptOffer | None = REVIEW) -> dict[str, str]:
    return arguments(split(rest, offer), offer, name="/s:review")


def test_only_a_line_that_names_a_server_is_a_prompt() -> None:
    found = written("/docs:review a.py", ("docs",))
    assert found is not None and (found.server, found.name, found.rest) == (
        *("docs", "review", "a.py"),
    )
    assert written("/other:review", ("docs",)) is None
    assert written("see /docs:review", ("docs",)) is None
    assert written("/docs", ("docs",)) is None
    deep = written("/docs:a/b:c", ("docs",))
    assert deep is not None and deep.name == "a/b:c"


@pytest.mark.parametrize(
    ("rest", "given"),
    [
        ("path=a.py depth=2", {"path": "a.py", "depth": "2"}),
        ("a.py 2", {"path": "a.py", "depth": "2"}),  # what is needed comes first
        ("2 path=a.py", {"path": "a.py", "depth": "2"}),
        ("'a b.py'", {"path": "a b.py"}),
        ("path=x=y", {"path": "x=y"}),
        ("other=1", {"path": "other=1"}),  # no argument is called so: it is a value
    ],
)
def test_arguments_are_read_by_name_or_in_order(rest: str, given: dict[str, str]) -> None:
    assert _read(rest) == given


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("depth=2", "needs path"),
        ("a b c", "no argument for 'c'"),
        ("path=a path=b", "given twice"),
        ("'open", "open quote"),
    ],
)
def test_what_does_not_fit_is_said(rest: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        _read(rest)
    assert why in str(error.value)


def test_a_lone_argument_takes_the_rest_of_the_line_as_it_is() -> None:
    assert _read('what\'s "this" about?', ASK) == {"question": 'what\'s "this" about?'}
    assert _read("question='why not'", ASK) == {"question": "why not"}


def test_a_prompt_nobody_listed_takes_pairs_only() -> None:
    assert _read("a=b c=d", None) == {"a": "b", "c": "d"}
    with pytest.raises(UsageError):
        _read("bare", None)


@given(st.text(max_size=40))
def test_no_line_breaks_the_reading(rest: str) -> None:
    for offer in (REVIEW, ASK, None):
        try:
            values = _read(rest, offer)
        except UsageError:
            continue
        assert all(isinstance(value, str) for value in values.values())


def test_what_a_prompt_has_the_assistant_say_is_marked_in_the_persons_message() -> None:
    picture = Image(data="aa", mime="image/png")
    filled = FilledPrompt(
        server="s",
        name="p",
        messages=(
            PromptMessage(role="user", content=(Text("q"), picture)),
            PromptMessage(role="assistant", content=(Text("a"),)),
        ),
    )
    parts = content(filled)
    assert parts[:2] == (Text("q"), picture) and parts[3] == Text("a")
    assert isinstance(parts[2], Text) and "assistant" in parts[2].text
    empty = content(FilledPrompt(server="s", name="p", messages=()))
    assert isinstance(empty[0], Text) and "empty" in empty[0].text

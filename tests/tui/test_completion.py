"""The palette: commands and arguments by their letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.providers.base import ModelInfo
from kage.tui.controllers.commands import COMMANDS, is_command, parse, suggestion
from kage.tui.controllers.completion import Known, complete, score
from tests.tui.fake_host import server

KNOWN = Known(
    models=(
        ModelInfo(id="anthropic:sonnet", name="sonnet"), ModelInfo(id="local:qwen", name="qwen"),
    ),
    servers=(server("filesystem"), server("weather")),
)  # fmt: skip


def _labels(draft: str, known: Known = KNOWN) -> list[str]:
    return [choice.label for choice in complete(draft, known)]


def test_a_slash_offers_every_command() -> None:
    assert _labels("/") == [f"/{command.name}" for command in COMMANDS]


def test_letters_in_order_find_a_command() -> None:
    assert _labels("/prm")[0] == "/permission"
    assert _labels("/mo")[0] == "/model"


def test_another_spelling_of_a_command_is_offered_once() -> None:
    assert _labels("/exi") == ["/exit"]
    assert len([label for label in _labels("/q") if label in ("/q", "/quit")]) == 1


def test_arguments_are_completed_by_their_kind() -> None:
    assert _labels("/model son") == ["anthropic:sonnet"]
    assert _labels("/permission ") == ["default", "ask", "deny"]
    assert _labels("/mcp re") == ["reload", "restart"]
    assert _labels("/mcp restart w") == ["weather"]
    assert complete("/mcp restart w", KNOWN)[0].insert == "/mcp restart weather"


def test_a_whole_command_offers_nothing_more() -> None:
    assert _labels("/mcp restart weather") == []
    assert _labels("/mcp restart weather ") == []
    assert _labels("/help me") == []


def test_a_path_is_no_command() -> None:
    assert _labels("/usr/bin") == []
    assert not is_command("/usr/bin/env")
    assert not is_command("/help\nand more")
    assert not is_command("/")


def test_a_model_whose_name_could_act_on_a_terminal_is_not_put_into_the_draft() -> None:
    known = Known(models=(ModelInfo(id="evil:\x1b[2J", name="x"), ModelInfo(id="a b", name="x")))
    assert _labels("/model ", known) == []


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    assert "Did you mean /model?" in suggestion(parse("/modle x"))
    assert "/help" in suggestion(parse("/zzzzzz"))


@pytest.mark.parametrize(
    ("better", "worse", "pattern"),
    [("restart", "xrestart", "re"), ("a_b", "axb", "ab"), ("mod", "model", "mod")],
)
def test_better_matches_score_higher(better: str, worse: str, pattern: str) -> None:
    high, low = score(pattern, better), score(pattern, worse)
    assert high is not None and low is not None and high > low


@given(st.text(max_size=12), st.text(max_size=30))
def test_a_score_exists_exactly_when_the_letters_are_there(pattern: str, text: str) -> None:
    low, place, found = text.lower(), 0, True
    for letter in pattern.lower():
        at = low.find(letter, place)
        found = found and at >= 0
        place = at + 1
    assert (score(pattern, text) is not None) == found


@given(st.text(max_size=40))
def test_no_draft_breaks_the_palette(draft: str) -> None:
    for choice in complete(draft, KNOWN):
        assert choice.insert.startswith("/")
    if is_command(draft):
        parse(draft)

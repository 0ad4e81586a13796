"""The list behind an @ and behind a server's prompt: names, templates, values; and the preview."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from kage.core.commands import SubmitPrompt
from kage.core.content import Image, Text
from kage.core.errors import ServerError
from kage.core.offers import (
    FilledPrompt,
    Offers,
    PromptArgument,
    PromptMessage,
    PromptOffer,
    ResourceOffer,
    TemplateOffer,
)
from kage.tui.controllers.naming import Item, Names
from kage.tui.controllers.templates import place
from tests.tui.driving import Driven, driven, run
from tests.tui.fake_host import FakeHost, server

MEMO = Offers(
    server="memo",
    prompts=(
        PromptOffer(
            name="review",
            description="Looks at a file",
            arguments=(
                PromptArgument(name="path", required=True),
                PromptArgument(name="depth"),
            ),
        ),
        PromptOffer(name="hello"),
    ),
    resources=(
        ResourceOffer(uri="memo://note/1", name="first note"),
        ResourceOffer(uri="memo://note/2", name="second note"),
    ),
    templates=(TemplateOffer(template="weather://{city}/{day}", name="weather"),),
    completes=True,
)


def _host() -> FakeHost:
    host = FakeHost(servers=(server("memo"),))
    host.offers.held = (MEMO,)
    host.offers.paths = ("README.md", "src/", "src/app.py", "with space.txt")
    host.offers.values = {"city": ("bern", "new york"), "day": ("monday",), "path": ("a.py",)}
    return host


def _labels(it: Driven) -> list[str]:
    return [choice.label for choice in it.app.chat.palette.choices]


def test_an_at_offers_files_and_resources_and_what_is_taken_stands_in_the_draft() -> None:
    async def test() -> None:
        async with driven(_host()) as it:
            await it.type("compare @")
            await it.until(lambda: "README.md" in _labels(it), "files are offered")
            assert "memo:memo://note/1" in _labels(it)
            assert "memo:weather://{city}/{day}" in _labels(it)
            await it.type("secnote")
            assert _labels(it)[0] == "memo:memo://note/2"  # by its name, fuzzily
            await it.press("tab")
            assert it.draft == "compare @memo:memo://note/2 "
            await it.type("with @app")
            assert _labels(it)[0] == "src/app.py"
            await it.press("enter")  # takes it, and sends nothing yet
            assert it.draft == "compare @memo:memo://note/2 with @src/app.py "
            assert it.host.prompts == []
            await it.press("enter")
            assert it.host.prompts == ["compare @memo:memo://note/2 with @src/app.py "]

    run(test)


def test_a_mention_in_the_middle_of_a_draft_leaves_the_rest_alone() -> None:
    async def test() -> None:
        async with driven(_host()) as it:
            await it.type("see  now")
            await it.press("left", "left", "left", "left")
            await it.type("@space")
            await it.until(lambda: _labels(it) == ["with space.txt"], "the file is offered")
            await it.press("tab")
            assert it.draft == 'see @"with space.txt"  now'

    run(test)


def test_a_mention_typed_in_full_is_sent_with_enter() -> None:
    async def test() -> None:
        async with driven(_host()) as it:
            await it.type("@README.md")
            await it.until(lambda: _labels(it), "it is offered")
            await it.press("enter")
            assert it.host.prompts == ["@README.md"]

    run(test)


def test_values_of_a_template_come_from_its_server() -> None:
    async def test() -> None:
        async with driven(_host()) as it:
            await it.type("@weath")
            await it.until(lambda: _labels(it), "the template is offered")
            await it.press("tab")
            assert it.draft == "@memo:weather://"
            await it.until(lambda: "new york" in _labels(it), "cities are offered")
            await it.press("down", "tab")
            assert it.draft == "@memo:weather://new%20york/"
            await it.until(lambda: "monday" in _labels(it), "days are offered")
            assert it.host.offers.wishes[-1].known == {"city": "new york"}
            await it.press("tab")
            assert it.draft == "@memo:weather://new%20york/monday "
            assert len(it.host.offers.wishes) == 2  # no question for each key

    run(test)


def test_a_prompt_is_completed_filled_in_shown_and_sent() -> None:
    async def test() -> None:
        host = _host()
        picture = Image(data="aaaa", mime="image/png")
        host.offers.filled = FilledPrompt(
            server="memo",
            name="review",
            messages=(
                PromptMessage(role="user", content=(Text("Review \x1b[2J a.py"), picture)),
                PromptMessage(role="assistant", content=(Text("Sure."),)),
            ),
        )
        async with driven(host) as it:
            await it.type("/memo:re")
            await it.until(lambda: "/memo:review" in _labels(it), "the prompt is offered")
            await it.press("tab")
            assert it.draft == "/memo:review "
            await it.until(lambda: _labels(it) == ["path=", "depth="], "its arguments")
            await it.press("tab")
            await it.until(lambda: _labels(it) == ["a.py"], "values of the argument")
            await it.press("tab")
            assert it.draft == "/memo:review path=a.py "
            await it.press("escape")
            await it.press("enter")
            await it.until(lambda: type(it.app.screen).__name__ == "PreviewScreen", "the preview")
            screen = it.screen_text()
            assert "Review" in screen and "image image/png" in screen and "as the model" in screen
            assert host.offers.asked == [("memo", "review", {"path": "a.py"})]
            assert host.prompts == []
            await it.press("escape")
            assert host.prompts == [] and it.draft == "/memo:review path=a.py"
            await it.press("escape")
            await it.press("enter")
            await it.until(lambda: type(it.app.screen).__name__ == "PreviewScreen", "again")
            await it.press("enter")
            (command,) = host.commands(SubmitPrompt)
            assert command.typed == "/memo:review path=a.py"
            assert command.content[1] == picture

    run(test)


def test_a_form_asks_for_what_a_prompt_needs() -> None:
    async def test() -> None:
        async with driven(_host()) as it:
            await it.type("/memo:review depth=2")
            await it.press("escape")
            await it.press("enter")
            await it.until(lambda: type(it.app.screen).__name__ == "FormScreen", "the form")
            await it.until(lambda: it.app.screen.focused is not None, "the cursor is in it")
            await it.type("b.py")
            await it.press("ctrl+s")
            await it.until(lambda: it.host.offers.asked, "it is filled in")
            assert it.host.offers.asked == [("memo", "review", {"path": "b.py", "depth": "2"})]

    run(test)


def test_a_prompt_that_fails_gives_the_line_back_and_says_why() -> None:
    async def test() -> None:
        host = _host()
        host.offers.filled = ServerError("It broke", server="memo", stage="call", why="it is bad")
        async with driven(host) as it:
            await it.type("/memo:hello")
            await it.press("escape")
            await it.press("enter")
            await it.until(lambda: "It broke" in it.transcript, "the card")
            assert it.draft == "/memo:hello"
            await it.press("ctrl+c")
            await it.type("/memo:review a b c")
            await it.press("escape")
            await it.press("enter")
            assert "no argument for 'c'" in it.remark and it.draft == "/memo:review a b c"

    run(test)


def test_ten_thousand_resources_are_searched_in_a_moment() -> None:
    many = tuple(
        ResourceOffer(uri=f"file:///srv/data/{number % 97}/report-{number}.csv", name=f"r{number}")
        for number in range(10_000)
    )
    names = Names.of([Offers(server="big", resources=many)], [])
    began = time.process_time()
    for typed in ("b", "bi", "big:report-99", "zzz", "rpt99", "report-9999.csv"):
        names.search(typed)
    assert time.process_time() - began < 2.0  # a hang guard: about 5 ms each
    assert names.search("report-9999.csv")[0].text.endswith("report-9999.csv")
    assert names.search("zzz") == ()
    late = Names(
        [*(Item(f"x/at{number}", f"x/at{number}") for number in range(900)), Item("at", "at")]
    )
    assert late.search("at")[0].text == "at"  # what begins so is found behind any number


@given(
    st.lists(st.text("abc/:", min_size=1, max_size=8), max_size=12), st.text("abc/:", max_size=4)
)
def test_typing_on_finds_what_typing_at_once_finds(texts: list[str], typed: str) -> None:
    step = Names(Item(text, text) for text in texts)
    for end in range(len(typed) + 1):
        found = step.search(typed[:end])
    fresh = Names(Item(text, text) for text in texts).search(typed)
    assert set(found) == set(fresh)


@given(st.text("a{}+/#?,:b", max_size=20), st.text("ab/:#", max_size=20))
def test_no_template_breaks_the_search_for_its_place(template: str, typed: str) -> None:
    found = place(template, typed)
    if found is not None:
        assert typed.startswith(found.before)

"""The approval panel: what answers, what never does, and where the keys go meanwhile."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from textual import events

from kage.core import events as ev
from kage.core.commands import AnswerApproval, Interrupt, SubmitPrompt
from kage.core.content import Text
from kage.core.gate import Answer, Decision, Reply, Verdict, Who
from kage.core.messages import Outcome, ToolCall, ToolMessage
from tests.tui.driving import HELD, driven, run
from tests.tui.fake_host import asked, question, tool


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("1", Answer.YES), ("y", Answer.YES), ("2", Answer.SESSION), ("s", Answer.SESSION),
        ("3", Answer.ALWAYS), ("a", Answer.ALWAYS), ("4", Answer.NO), ("n", Answer.NO),
        ("escape", Answer.NO),
    ],
)  # fmt: skip
def test_each_answer_key_answers_once_the_quiet_period_is_over(key: str, answer: Answer) -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press(key)
            assert it.host.answers == [("q1", answer)]
            assert not it.panel_open
            assert it.draft == ""

    run(main)


def test_type_ahead_into_an_opening_panel_goes_to_the_draft_and_never_answers() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.publish(asked(question()))
            await it.type("yes 1 n\ns a4")
            await it.press("tab", "escape")
            assert it.draft == "yes 1 n\ns a4"
            assert it.host.sent == []
            assert it.panel_open

    run(main)


def test_enter_in_the_quiet_period_sends_nothing() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.type("half a sen")
            await it.publish(asked(question()))
            await it.type("tence\n")
            assert it.draft == "half a sentence\n"
            assert it.host.sent == []

    run(main)


def test_a_paste_goes_into_the_draft_and_never_answers() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            it.app.post_message(events.Paste("y1\nyes"))
            await it.settle()
            await it.guard_over()
            it.app.post_message(events.Paste("y"))
            await it.settle()
            assert it.draft == "y1\nyesy"
            assert it.host.answers == []

    run(main)


def test_a_question_mark_in_the_quiet_period_is_text() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.publish(asked(question()))
            await it.type("?")
            assert it.draft == "?"
            assert it.app.screen is it.app.chat

    run(main)


def test_with_a_draft_keys_write_and_only_tab_moves_into_the_panel() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("please ")
            await it.publish(asked(question()))
            await it.guard_over()
            await it.type("y1")
            assert it.draft == "please y1"
            assert it.host.answers == []
            await it.press("tab")
            assert it.app.chat.panel.has_focus
            await it.press("1")
            assert it.host.answers == [("q1", Answer.YES)]
            assert it.draft == "please y1"
            assert it.app.chat.prompt.has_focus

    run(main)


def test_enter_with_a_draft_steers_while_a_question_is_open() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("wait")
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("enter")
            assert it.host.prompts == ["wait"]
            assert it.host.answers == []
            assert it.panel_open

    run(main)


def test_esc_refuses_and_never_interrupts_while_a_question_is_open() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("escape")
            assert it.host.answers == [("q1", Answer.NO)]
            assert it.host.commands(Interrupt) == []
            await it.press("escape")
            assert len(it.host.commands(Interrupt)) == 1

    run(main)


def test_ctrl_c_interrupts_even_in_the_quiet_period() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            it.host.start_run()
            await it.publish(asked(question()))
            await it.press("ctrl+c")
            assert len(it.host.commands(Interrupt)) == 1
            assert it.host.answers == []

    run(main)


def test_the_next_question_has_a_quiet_period_of_its_own() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.publish(asked(question("q1")), asked(question("q2")))
            await it.skip_guard()
            await it.press("y", "y")
            assert it.host.answers == [("q1", Answer.YES)]
            assert it.draft == "y"
            assert "2 of 2" in it.screen_text()

    run(main)


def test_the_counter_says_how_many_calls_wait() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question("q1")), asked(question("q2")), asked(question("q3")))
            assert "1 of 3" in it.screen_text()
            assert "3 calls wait" in it.screen_text()

    run(main)


def test_capital_a_allows_every_call_of_the_same_rule_but_those_that_need_a_look() -> None:
    async def main() -> None:
        other = tool("write_file")
        async with driven() as it:
            await it.publish(
                asked(question("q1")),
                asked(question("q2")),
                asked(question("q3", spec=other)),
                asked(question("q4", warnings=("a secret leaves",))),
                asked(question("q5", red=True)),
            )
            await it.guard_over()
            await it.press("A")
            assert it.host.answers == [("q1", Answer.YES), ("q2", Answer.YES)]
            assert it.panel_open

    run(main)


def test_capital_n_refuses_every_call() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question("q1")), asked(question("q2", spec=tool("other"))))
            await it.guard_over()
            await it.press("N")
            assert it.host.answers == [("q1", Answer.NO), ("q2", Answer.NO)]
            assert not it.panel_open

    run(main)


def test_where_a_rule_must_ask_each_time_session_and_always_are_not_offered() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question(scopes=())))
            await it.guard_over()
            assert "this session" not in it.screen_text()
            await it.press("2", "s", "3", "a")
            assert it.host.answers == []
            assert it.panel_open

    run(main)


def test_x_changes_the_rule_that_is_saved_and_the_rule_is_spelled_out() -> None:
    async def main() -> None:
        scopes = ("filesystem__read_file(path=tests/*)", "filesystem__read_file")
        async with driven() as it:
            await it.publish(asked(question(scopes=scopes)))
            await it.guard_over()
            assert f"2 and 3 allow: {scopes[0]}" in it.screen_text()
            await it.press("x")
            assert f"2 and 3 allow: {scopes[1]} " in it.screen_text()
            await it.press("3")
            [sent] = it.host.commands(AnswerApproval)
            assert (sent.reply.answer, sent.reply.scope) == (Answer.ALWAYS, 1)

    run(main)


def test_answer_five_sends_what_was_said_and_keeps_the_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("my draft")
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("tab", "5")
            await it.type("use the other file")
            await it.press("enter")
            [sent] = it.host.commands(AnswerApproval)
            assert (sent.reply.answer, sent.reply.say) == (Answer.NO_SAY, "use the other file")
            assert it.draft == "my draft"

    run(main)


def test_esc_in_the_line_of_answer_five_goes_back_to_the_question() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("t")
            await it.type("1y")
            await it.press("escape")
            assert it.host.sent == []
            assert it.panel_open
            await it.guard_over()
            await it.press("1")
            assert it.host.answers == [("q1", Answer.YES)]

    run(main)


def test_a_withdrawn_question_closes_the_panel_and_what_was_being_said_is_kept() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("5")
            await it.type("rather not")
            await it.publish(ev.ApprovalSettled(question_id="q1"))
            assert not it.panel_open
            assert it.draft == "rather not"
            assert it.app.chat.prompt.has_focus

    run(main)


def test_a_question_settled_elsewhere_makes_room_for_the_next() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question("q1")), asked(question("q2")))
            await it.publish(ev.ApprovalSettled(question_id="q1", reply=Reply(answer=Answer.YES)))
            await it.guard_over()
            await it.press("1")
            assert it.host.answers == [("q2", Answer.YES)]

    run(main)


def test_no_answer_is_sent_twice() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("1", "1")
            assert it.host.answers == [("q1", Answer.YES)]

    run(main)


def test_a_click_answers_after_the_quiet_period_only() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.publish(asked(question()))
            await it.pilot.click("#panel-options", offset=(3, 0))
            await it.settle()
            assert it.host.answers == []
            await it.skip_guard()
            await it.pilot.click("#panel-options", offset=(3, 0))
            await it.settle()
            assert it.host.answers == [("q1", Answer.YES)]

    run(main)


def test_the_click_that_brings_the_focus_never_answers() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.publish(asked(question()))
            await it.skip_guard()
            it.app.post_message(events.AppFocus())
            await it.pilot.click("#panel-options", offset=(3, 0))
            await it.settle()
            assert it.host.answers == []

    run(main)


def test_a_question_under_another_screen_waits_for_the_chat_and_a_new_quiet_period() -> None:
    async def main() -> None:
        async with driven(quiet=HELD) as it:
            await it.press("f1")
            await it.publish(asked(question()))
            await it.press("1", "y")  # closes the help, and answers nothing
            assert it.host.answers == []
            await it.until(lambda: it.app.screen is it.app.chat)
            assert not it.app.approvals.ready
            await it.skip_guard()
            await it.press("tab", "1")  # over the draft that holds the y
            assert it.host.answers == [("q1", Answer.YES)]

    run(main)


def test_the_whole_call_is_on_the_full_screen_and_no_key_there_answers() -> None:
    async def main() -> None:
        value = "\n".join(f"line {number}" for number in range(2_000)) + "END"
        async with driven() as it:
            await it.publish(asked(question(arguments={"text": value})))
            await it.guard_over()
            assert "folded" in it.screen_text()
            await it.press("d")
            view = it.app.screen.query_one("#details-text")
            assert "line 1999END" in view.text.replace("│ ", "")  # type: ignore[attr-defined]
            await it.press("1", "y", "A")
            assert it.host.answers == []
            await it.press("escape")
            assert it.app.screen is it.app.chat
            assert it.panel_open

    run(main)


def test_a_fifty_kilobyte_argument_is_reachable_to_its_last_character() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question(arguments={"data": "x" * 50_000 + "LAST"})))
            await it.guard_over()
            assert "50,004 characters" in it.screen_text()
            await it.press("o")
            body = it.app.chat.query_one("#panel-body")
            body.scroll_end(animate=False)
            await it.settle()
            assert "LAST" in it.screen_text()

    run(main)


def test_claims_first_sight_warnings_and_red_are_on_the_panel() -> None:
    async def main() -> None:
        made = question(pinned_since="", warnings=("text that came from another server",), red=True)
        async with driven() as it:
            await it.publish(asked(made))
            text = it.screen_text()
            assert "server claims: read-only (not trusted)" in text
            assert "first seen now" in text
            assert "text that came from another server" in text
            assert it.app.chat.panel.has_class("-red")

    run(main)


def test_a_diff_is_shown_before_the_arguments() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question(preview="@@ -1 +1 @@\n-old\n+new")))
            text = it.screen_text()
            assert text.index("+new") < text.index("tests/test_cart.py")

    run(main)


def test_the_end_of_a_run_closes_the_panel() -> None:
    async def main() -> None:
        async with driven() as it:
            it.host.start_run()
            await it.publish(asked(question()))
            it.host.finish_run()
            await it.settle()
            assert not it.panel_open
            await it.type("next\n")
            assert it.host.prompts == ["next"]
            assert it.host.commands(SubmitPrompt)

    run(main)


def test_tab_in_the_panel_goes_back_to_the_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("a")
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("tab", "tab")
            await it.type("1")
            assert it.draft == "a1"
            assert it.host.answers == []

    run(main)


def test_typing_words_in_the_panel_goes_on_in_the_draft() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.type("a")
            await it.publish(asked(question()))
            await it.guard_over()
            await it.press("tab")
            await it.type("hyn")
            assert it.draft == "ahyn"
            assert it.host.answers == []

    run(main)


def test_what_was_being_said_is_kept_when_the_next_question_takes_the_panel() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question("q1")), asked(question("q2")))
            await it.guard_over()
            await it.press("5")
            await it.type("rather")
            await it.publish(ev.ApprovalSettled(question_id="q1"))
            assert it.draft == "rather"
            assert it.panel_open
            assert it.host.answers == []

    run(main)


def test_while_a_draft_stands_the_panel_says_that_tab_comes_first() -> None:
    async def main() -> None:
        async with driven() as it:
            await it.publish(asked(question()))
            await it.guard_over()
            assert "tab, then" not in it.screen_text()
            await it.type("wait")
            assert "tab, then 1 to 5" in it.screen_text()
            await it.press("tab")
            assert "tab, then" not in it.screen_text()
            await it.press("tab")
            assert "tab, then 1 to 5" in it.screen_text()
            await it.press("ctrl+c")
            assert "tab, then" not in it.screen_text()
            assert it.host.answers == []

    run(main)


def test_a_panel_that_opens_over_a_draft_says_it_from_the_start_on_the_smallest_screen() -> None:
    async def main() -> None:
        async with driven(size=(40, 14)) as it:
            await it.type("half a sentence")
            await it.publish(asked(question(scopes=())))
            await it.settle()
            assert "tab, then 1, 4 or 5" in it.screen_text()

    run(main)


@pytest.mark.parametrize(("safety", "whole"), [("dangerous", True), ("moderate", False)])
def test_a_server_the_person_calls_dangerous_is_asked_about_with_everything_shown(
    safety: Any, whole: bool
) -> None:
    async def main() -> None:
        async with driven() as it:
            spec = dataclasses.replace(tool(), safety=safety)
            long = "\n".join(f"line {number} of it" for number in range(40))
            await it.publish(asked(question(spec=spec, arguments={"text": long})))
            assert ("folded: " not in it.screen_text()) is whole
            assert f"safety level: {safety}" in it.screen_text()
            await it.guard_over()
            await it.press("o")
            assert ("folded: " in it.screen_text()) is whole
            assert it.panel_open and it.host.answers == []  # it asks in any case

    run(main)


def test_however_much_scanners_saw_every_answer_stays_on_a_small_screen() -> None:
    async def main() -> None:
        seen = tuple(f"body.part[{n}]: words that read like orders ({'x' * 60})" for n in range(9))
        made = question(warnings=seen, red=True)
        async with driven(size=(80, 24)) as it:
            await it.publish(asked(made))
            text = it.screen_text()
            for words in ("body.part[0]", "body.part[1]", "7 more of these", "1 yes", "5 no"):
                assert words in text, text
            assert "> " in text  # the prompt is still there
            await it.guard_over()
            await it.press("d")
            assert "body.part[3]" in it.screen_text()

    run(main)


def test_the_row_of_a_call_says_what_scanners_saw_in_it_and_in_its_result() -> None:
    async def main() -> None:
        call = ToolCall(id="c1", name="mail__send", arguments={})
        decision = Decision(id="d", verdict=Verdict.ALLOW, who=Who.PERSON, rule="", reason="",
                            digest="", warnings=("to: a \x1b[2J secret",))  # fmt: skip
        result = ToolMessage(call_id="c1", name="mail__send", outcome=Outcome.OK,
                             content=(Text("done"),), warnings=("words like orders",))  # fmt: skip
        async with driven() as it:
            await it.publish(ev.ToolQueued(call=call, spec=None))
            await it.publish(ev.ToolStarted(call_id="c1", decision=decision))
            await it.publish(ev.MessageAppended(message=result))
            text = it.screen_text()
            assert "⚠ sent with it: to: a ␛[2J secret" in text, text
            assert "⚠ in the result: words like orders" in text

    run(main)

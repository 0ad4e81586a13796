"""The model: blocks, folding, runs of reads, text for copying and for the end."""

from __future__ import annotations

import time

import pytest

from kage.tui.transcript.model import Card, ToolRow, TranscriptModel
from kage.tui.transcript.rows import duration
from tests.tui.transcript.drawing import lines, texts


def _read(number: int, **changes: object) -> ToolRow:
    row = {"label": "read", "detail": f"f{number}.py", "state": "ok", "seconds": 0.01}
    return ToolRow(**{**row, **changes})  # type: ignore[arg-type]


def test_a_conversation_reads_top_to_bottom() -> None:
    model = TranscriptModel()
    model.add_user("u", "which tests?")
    model.begin_reply("r", "anthropic:x")
    model.stream_text("r", "I'll look.")
    model.end_reply("r", stop="tools")
    model.add_tool("c", ToolRow(label="grep", detail='"cart" in tests/', state="ok",
                                seconds=0.031, summary="18 matches"))  # fmt: skip
    assert texts(model) == [
        "", " ▌you", "   which tests?", "", " ▌kage · anthropic:x", "   I'll look.",
        '   ✓ grep  "cart" in tests/ | 18 matches    31 ms',
    ]  # fmt: skip


def test_a_header_stands_only_where_another_one_begins_to_speak() -> None:
    model = TranscriptModel()
    for number in range(3):
        model.add_reply(f"r{number}", "text", "m")
        model.add_tool(f"c{number}", ToolRow(label="bash", state="ok"))
    assert "\n".join(texts(model)).count("▌kage") == 1
    model.add_user("u", "and?")
    model.add_reply("r", "text", "m")
    assert "\n".join(texts(model)).count("▌kage") == 2


@pytest.mark.parametrize(
    ("state", "word"),
    [("tool_error", "failed"), ("refused", "refused"), ("never_sent", "never sent"),
     ("unknown", "outcome unknown"), ("interrupted", "interrupted")],
)  # fmt: skip
def test_every_outcome_is_a_word_and_a_failure_says_why_and_what_to_do(
    state: str, word: str
) -> None:
    model = TranscriptModel()
    model.add_tool(
        "c",
        ToolRow(label="x", state=state, seconds=1, message="Because.", fix="Do so."),  # type: ignore[arg-type]  # a value of its Literal
    )
    first, why, fix = texts(model)
    assert word in first
    assert "Because." in why
    assert "→ Do so." in fix


def test_progress_is_a_bar_with_its_message() -> None:
    model = TranscriptModel()
    model.add_tool("c", ToolRow(label="x", state="running", started=time.monotonic()))
    model.update_tool("c", progress=5.0, total=10.0, message="half")
    (row,) = texts(model)
    assert "half" in row
    assert "▰▰▰▰▰▱▱▱▱▱" in row
    assert "50 %" in row
    model.update_tool("c", progress=float("inf"), total=-1.0)
    model.update_tool("c", progress=float("nan"), total=10.0)
    assert texts(model)


def test_unfolding_shows_diff_and_result_behind_a_label() -> None:
    model = TranscriptModel()
    model.add_tool(
        "c", ToolRow(label="srv · edit", state="ok", body="done", diff="@@ -1 +1 @@\n-a\n+b")
    )
    assert len(texts(model)) == 1
    model.toggle_fold("c")
    assert texts(model)[1:] == [
        "   │ @@ -1 +1 @@",
        "   │ -a",
        "   │ +b",
        "   ╭ result of srv · edit",
        "   │ done",
    ]
    roles = {span.text: span.role for line in lines(model) for span in line.spans}
    assert roles["-a"] == "removed"
    assert roles["+b"] == "added"
    model.toggle_fold("c")
    assert len(texts(model)) == 1


def test_live_output_shows_its_end() -> None:
    model = TranscriptModel()
    model.add_tool("c", ToolRow(label="bash", state="running"))
    for number in range(50):
        model.append_output("c", f"line {number}\n")
    rows = texts(model)
    assert rows[-1] == "   │ line 49"
    assert len(rows) < 10


def test_successive_reads_fold_into_one_row_and_unfold_one_by_one() -> None:
    model = TranscriptModel()
    model.begin_reply("r", "m")
    for number in range(5):
        model.add_tool(f"c{number}", _read(number, state="running"))
    for number in (1, 0, 4, 2, 3):
        model.update_tool(f"c{number}", state="ok", body=f"body {number}")
    assert [row for row in texts(model) if "read" in row] == ["   ✓ read 5 files ▸ | 50 ms"]
    model.toggle_fold("c0")
    rows = texts(model)
    assert sum("✓ read  f" in row for row in rows) == 5
    model.toggle_fold("c3")
    assert any("body 3" in row for row in texts(model))
    assert not any("body 2" in row for row in texts(model))


def test_a_failed_read_stays_visible_and_ends_the_run() -> None:
    model = TranscriptModel()
    model.add_tool("a", _read(1))
    model.add_tool("b", _read(2))
    model.add_tool("x", _read(3, state="tool_error", message="no such file"))
    model.add_tool("c", _read(4))
    model.add_tool("d", _read(5))
    rows = [row.strip() for row in texts(model)]
    assert rows[0].startswith("✓ read 2 files")
    assert rows[1].startswith("✗ read  f3.py")
    assert rows[2] == "no such file"
    assert rows[3].startswith("✓ read 2 files")


def test_a_run_survives_empty_replies_but_not_words() -> None:
    model = TranscriptModel()
    model.add_reply("r0", "", "m")
    model.add_tool("a", _read(1))
    model.add_reply("r1", "", "m")
    model.add_tool("b", _read(2))
    model.add_reply("r2", "now this", "m")
    model.add_tool("c", _read(3))
    rows = "\n".join(texts(model))
    assert "read 2 files" in rows
    assert "read  f3.py" in rows


def test_a_run_dissolves_when_a_member_turns_out_otherwise() -> None:
    model = TranscriptModel()
    model.add_tool("a", _read(1))
    model.add_tool("b", _read(2))
    model.update_tool("b", state="tool_error")
    assert len([row for row in texts(model) if "read  f" in row]) == 2


def test_removing_the_first_of_a_run_leaves_the_others_visible() -> None:
    model = TranscriptModel()
    for number in range(3):
        model.add_tool(f"c{number}", _read(number))
    model.remove("c0")
    assert any("read 2 files" in row for row in texts(model))
    model.remove("c1")
    assert any("read  f2.py" in row for row in texts(model))


def test_thoughts_are_one_row_until_unfolded() -> None:
    model = TranscriptModel()
    model.begin_reply("r", "m")
    model.stream_thinking("r", "let me see")
    assert any("▸ thinking · 3 words" in row for row in texts(model))
    model.stream_text("r", "answer")
    model.end_reply("r", stop="end")
    assert any("▸ thought · 3 words" in row for row in texts(model))
    model.toggle_fold("r")
    assert "   │ let me see" in texts(model)
    assert model.source("r") == "answer"


def test_an_interrupted_reply_is_kept_and_marked() -> None:
    model = TranscriptModel()
    model.begin_reply("r", "m")
    model.stream_text("r", "half an ans")
    model.end_reply("r", stop="interrupted", note="interrupted")
    assert texts(model)[-3:] == ["   half an ans", "", "   (interrupted)"]
    assert "(interrupted)" in model.plain_text()


def test_a_long_prompt_is_folded_and_whole_when_copied() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    model = TranscriptModel()
    model.add_user("u", text)
    assert len(texts(model)) < 20
    assert "88 more lines" in texts(model)[-1]
    assert model.source("u") == text
    model.toggle_fold("u")
    assert "   line 99" in texts(model)


def test_a_card_says_what_why_and_what_to_do() -> None:
    model = TranscriptModel()
    lines = ("Traceback", "\x1b[2Jboom")
    model.add_card(
        "k", Card(level="error", title="github failed", why="exit 1", lines=lines, fix="set KEY")
    )
    shown = [row.strip() for row in texts(model)]
    assert shown == ["", "✗ github failed", "exit 1", "│ Traceback", "│ ␛[2Jboom", "→ set KEY"]
    model.update_card("k", Card(level="info", title="github is back"))
    assert texts(model)[1:] == ["   · github is back"]
    model.remove("k")
    assert texts(model) == []


def test_text_of_servers_cannot_act_wherever_it_is_shown() -> None:
    evil = "\x1b]52;c;QQ==\x07\u202e[@click=app.quit]x\x9b"
    model = TranscriptModel()
    model.add_user("u", evil)
    model.add_reply("r", evil, evil, thinking=evil, note=evil)
    model.add_tool("c", ToolRow(label=evil, detail=evil, state="tool_error", message=evil, fix=evil,
                                summary=evil, body=evil, diff=evil, tail=evil))  # fmt: skip
    model.add_tool("d", ToolRow(label=evil, state="running", message=evil, tail=evil, progress=1))
    model.add_card("k", Card(level="error", title=evil, why=evil, lines=(evil,), fix=evil))
    model.fold_all(True)
    shown = "\n".join(texts(model, 200)) + model.plain_text()
    shown += "".join(model.source(block.id) for block in model.blocks)
    for character in "\x1b\x07\u202e\x9b":
        assert character not in shown


def test_what_is_unknown_is_ignored() -> None:
    model = TranscriptModel()
    model.stream_text("x", "text")
    model.stream_thinking("x", "text")
    model.end_reply("x", stop="end")
    model.update_tool("x", state="ok")
    model.append_output("x", "text")
    model.toggle_fold("x")
    model.remove("x")
    model.update_card("x", Card(title="t"))
    assert model.blocks == []
    assert model.source("x") == model.plain_text() == model.source() == ""


def test_a_reply_from_disk_takes_the_place_of_the_streamed_one() -> None:
    model = TranscriptModel()
    model.begin_reply("r", "m")
    model.stream_text("r", "drft")
    model.add_reply("r", "draft", "m")
    assert texts(model)[1:] == [" ▌kage · m", "   draft"]


def test_replies_from_disk_are_not_parsed_before_they_are_looked_at() -> None:
    model = TranscriptModel()
    model.add_reply("r", "# text\n\n" * 1_000, "m")
    reply = model.blocks[0]
    assert reply._pieces is None
    assert reply.estimate(80) > 10
    assert reply._pieces is None


def test_the_listener_hears_of_every_change() -> None:
    model = TranscriptModel()
    heard: list[int] = []
    model.feed.listen(lambda: heard.append(1))
    model.add_user("u", "x")
    model.begin_reply("r", "m")
    model.stream_text("r", "x")
    model.end_reply("r", stop="end")
    model.add_tool("c", ToolRow(label="x"))
    model.update_tool("c", state="running")
    model.toggle_fold("c")
    model.remove("c")
    model.clear()
    assert len(heard) >= 9


def test_plain_text_holds_the_whole_conversation() -> None:
    model = TranscriptModel()
    model.add_user("u", "hello")
    model.add_reply("r", "**hi**", "m")
    model.add_tool("c", _read(1))
    text = model.plain_text()
    assert text.index("hello") < text.index("**hi**") < text.index("f1.py")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.031, "31 ms"), (0.9996, "1000 ms"), (4.23, "4.2 s"), (9.96, "10 s"), (59.6, "1 min 00 s"),
     (185, "3 min 05 s"), (7_260, "2 h 01 min")],
)  # fmt: skip
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_calls_an_interrupt_left_unsent_take_one_row_each() -> None:
    model = TranscriptModel()
    for number in range(3):
        row = ToolRow(
            label="bash", state="never_sent", summary="interrupted", seconds=0.0,
            body="The person interrupted; this was not called.",
        )  # fmt: skip
        model.add_tool(f"c{number}", row)
    drawn = texts(model)
    assert len(drawn) == 3
    assert all("never sent" in line and "ms" not in line for line in drawn)
    model.update_tool("c0", summary="", body="no such tool")
    assert any("no such tool" in line for line in texts(model))

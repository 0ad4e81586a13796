"""The view, driven through Textual's pilot."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from kage.tui.transcript.excerpt import order, place
from kage.tui.transcript.model import Card, ToolRow, TranscriptModel
from kage.tui.transcript.view import TranscriptView
from tests.tui.transcript.drawing import lines
from tests.waiting import until


class Stage(App[None]):
    """Nothing but the view."""

    def __init__(self, model: TranscriptModel, *, still: bool = False, theme: str = "") -> None:
        super().__init__()
        self.model = model
        self.still = still
        self.said: list[object] = []
        self.wanted = theme

    def compose(self) -> ComposeResult:
        yield TranscriptView(self.model, reduced_motion=self.still)

    def on_mount(self) -> None:
        if self.wanted:
            self.theme = self.wanted

    def on_transcript_view_block_clicked(self, message: TranscriptView.BlockClicked) -> None:
        self.said.append(message)

    def on_transcript_view_link_clicked(self, message: TranscriptView.LinkClicked) -> None:
        self.said.append(message)

    @property
    def view(self) -> TranscriptView:
        return self.query_one(TranscriptView)


def drive(
    test: Callable[[Stage, Pilot[None]], Awaitable[None]],
    model: TranscriptModel,
    *,
    size: tuple[int, int] = (80, 24),
    still: bool = False,
    theme: str = "",
) -> None:
    async def main() -> None:
        stage = Stage(model, still=still, theme=theme)
        async with stage.run_test(size=size) as pilot:
            await settle(stage, pilot)
            await test(stage, pilot)

    asyncio.run(main())


async def settle(stage: Stage, pilot: Pilot[None]) -> None:
    await pilot.pause()
    stage.view.update()
    await pilot.pause()


def screen(stage: Stage) -> list[str]:
    view = stage.view
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def talk(count: int, words: int = 40) -> TranscriptModel:
    model = TranscriptModel()
    for number in range(count):
        model.add_user(f"u{number}", f"question {number}")
        model.add_reply(f"r{number}", f"answer {number} " + "word " * words + "\n\n- a\n- b", "m")
    return model


def test_the_end_is_shown_first_and_followed() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        assert stage.view.is_following
        assert screen(stage)[-1] == "   • b"
        stage.model.begin_reply("new", "m")
        for number in range(50):
            stage.model.stream_text("new", f"line {number}\n\n")
        await until(lambda: screen(stage)[-1] == "   line 49")
        assert stage.view.is_following

    drive(test, talk(20))


def test_rows_agree_with_the_model() -> None:
    model = talk(12)
    expected = [line.text.rstrip() for line in lines(model, 79)]

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        await until(lambda: stage.view.rows.total == len(expected), what="all is laid out")
        stage.view.scroll_to(y=0, animate=False)
        seen: list[str] = []
        for top in range(0, len(expected), 24):
            stage.view.scroll_to(y=top, animate=False, force=True)
            offset = stage.view.scroll_offset.y
            seen[offset:] = screen(stage)
        assert seen[: len(expected)] == expected

    drive(test, model)


def test_what_is_read_does_not_move_while_text_streams_in_below() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.scroll_to(y=60, animate=False)
        await settle(stage, pilot)
        before = screen(stage)
        assert not stage.view.is_following
        stage.model.begin_reply("new", "m")
        for number in range(200):
            stage.model.stream_text("new", f"line {number}\n\n")
        await settle(stage, pilot)
        assert screen(stage) == before
        stage.view.follow()
        await settle(stage, pilot)
        assert screen(stage)[-1] == "   line 199"

    drive(test, talk(40))


def test_what_is_read_does_not_move_while_rows_above_become_exact_or_unfold() -> None:
    model = talk(300)
    for number in range(5):
        model.add_tool(f"c{number}", ToolRow(label="bash", state="ok", body="out\n" * 50))
    model.add_reply("last", "final\n\n" * 60, "m")

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        view.scroll_to(y=view.max_scroll_y - 30, animate=False)
        await settle(stage, pilot)
        before = screen(stage)
        view.rows.resize(60)  # every height is a guess again
        view.rows.resize(79)
        view.update()
        guessed = view.rows.total
        while view._lay_out_more():
            pass
        assert view.rows.total != guessed
        assert screen(stage) == before
        stage.model.toggle_fold("c2")
        await settle(stage, pilot)
        assert screen(stage) == before

    drive(test, model)


def test_the_piece_at_the_top_stays_there_through_resizes() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        stage.model.add_reply("mark", "THE MARK", "m")
        for number in range(30):
            stage.model.add_reply(f"after{number}", "word " * 60, "m")
        await settle(stage, pilot)
        at = stage.model.index("mark")
        assert at is not None
        view._read_from(view.rows.anchor(view.rows._blocks.before(at)))
        await settle(stage, pilot)
        for width in (40, 120, 23, 80):
            await pilot.resize_terminal(width, 24)
            await settle(stage, pilot)
            assert any("THE MARK" in row for row in screen(stage)[:3]), width

    drive(test, talk(30))


@pytest.mark.parametrize("sizes", [[(1, 1), (2, 2), (500, 200), (3, 60), (200, 1), (80, 24)]])
def test_a_storm_of_resizes_does_no_harm(sizes: list[tuple[int, int]]) -> None:
    model = talk(30)
    model.add_reply(
        "t", "| a | b |\n|---|---|\n| 語 | x |\n\n```py\n" + "x = 1\n" * 300 + "```", "m"
    )
    model.add_tool("c", ToolRow(label="bash", state="running", started=time.monotonic(), tail="x"))
    model.add_card("k", Card(level="error", title="t", why="w", lines=("l",), fix="f"))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        chance = random.Random(7)
        storm = sizes + [(chance.randint(1, 200), chance.randint(1, 60)) for _ in range(20)]
        for number, (width, height) in enumerate(storm):
            await pilot.resize_terminal(width, height)
            stage.model.append_output("c", "more\n")
            if number % 5 == 2:
                stage.view.scroll_to(y=chance.randint(0, 200), animate=False)
            await pilot.pause()
            assert all(len(row) <= max(1, width) for row in screen(stage))
        await pilot.resize_terminal(80, 24)
        stage.view.follow()
        await settle(stage, pilot)
        assert screen(stage)[-1].strip() == "→ f"

    drive(test, model)


def test_scrolling_up_stops_following_and_the_end_starts_it_again() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        view.scroll_page_up(animate=False)
        await settle(stage, pilot)
        assert not view.is_following
        view.scroll_end(animate=False)
        await until(lambda: view.is_following)

    drive(test, talk(20))


def test_a_click_on_a_row_with_a_marker_unfolds_it() -> None:
    model = TranscriptModel()
    model.add_tool("c", ToolRow(label="bash", state="ok", body="the result"))
    model.add_reply("r", "plain [site](https://a.b/)", "m")

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        await pilot.click(TranscriptView, offset=(5, 0))
        await settle(stage, pilot)
        assert "   │ the result" in screen(stage)
        rows = screen(stage)
        y = next(at for at, row in enumerate(rows) if "plain" in row)
        await pilot.click(TranscriptView, offset=(10, y))
        await pilot.click(TranscriptView, offset=(4, y))
        await until(lambda: len(stage.said) == 2)
        link, block = stage.said
        assert isinstance(link, TranscriptView.LinkClicked)
        assert link.address == "https://a.b/"
        assert isinstance(block, TranscriptView.BlockClicked)
        assert block.block_id == "r"

    drive(test, model)


def test_keys_fold_the_lowest_block_in_view_and_all() -> None:
    model = TranscriptModel()
    for number in range(3):
        model.add_tool(f"c{number}", ToolRow(label="bash", state="ok", body=f"body {number}"))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.action_fold()
        await settle(stage, pilot)
        assert [row for row in screen(stage) if "body" in row] == ["   │ body 2"]
        stage.view.action_fold_all()
        await settle(stage, pilot)
        assert sum("body" in row for row in screen(stage)) == 3
        stage.view.action_fold_all()
        await settle(stage, pilot)
        assert sum("body" in row for row in screen(stage)) == 0

    drive(test, model)


def test_only_the_running_row_is_redrawn_by_the_ticker_and_none_ticks_at_rest() -> None:
    model = talk(3)
    model.add_tool("c", ToolRow(label="bash", state="running", started=time.monotonic()))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        assert view._pace.ticking
        first = view._frame
        before = screen(stage)
        layouts = stage.screen._layout_required
        await until(lambda: view._frame > first + 2)
        after = screen(stage)
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= 1
        assert stage.screen._layout_required == layouts
        stage.model.update_tool("c", state="ok", seconds=1.0)
        await until(lambda: not view._pace.ticking)
        frame = view._frame
        await until(lambda: view._pace._quiet is None and view._pace._pending is None)
        assert view._frame == frame

    drive(test, model)


def test_a_running_row_out_of_view_does_not_tick() -> None:
    model = talk(1)
    model.add_tool("c", ToolRow(label="bash", state="running", started=time.monotonic()))
    for number in range(40):
        model.add_reply(f"r{number}x", "text", "m")

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        await until(lambda: not stage.view._pace.ticking)

    drive(test, model)


def test_reduced_motion_shows_no_spinner() -> None:
    model = TranscriptModel()
    model.add_tool("c", ToolRow(label="bash", state="running", started=time.monotonic()))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        assert screen(stage)[0].strip().startswith("• bash")

    drive(test, model, still=True)


def test_deltas_are_gathered() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        drawn: list[int] = []
        update = stage.view._place

        def counted() -> None:
            drawn.append(1)
            update()

        stage.view._place = counted  # type: ignore[method-assign]
        stage.model.begin_reply("new", "m")
        for number in range(2_000):
            stage.model.stream_text("new", f"w{number} ")
        await until(lambda: "w1999" in "\n".join(screen(stage)))
        assert len(drawn) < 10

    drive(test, talk(2))


def test_a_selection_gives_source_text() -> None:
    model = TranscriptModel()
    model.add_reply(
        "r", "a **bold** " + "word " * 40 + "\n\n```py\nx = 1\n\ty = 2\n```\n\nend", "m"
    )

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        text = view.get_selection(Selection(Offset(0, order(0, 0, 0)), None))
        assert text is not None
        assert "a **bold** " + "word " * 39 + "word" in text[0]
        code = view.get_selection(Selection(Offset(3, order(0, 2, 0)), Offset(99, order(0, 2, 1))))
        assert code == ("x = 1\n\ty = 2", "\n")
        part = view.get_selection(Selection(Offset(5, order(0, 1, 0)), Offset(8, order(0, 1, 1))))
        assert part is not None
        assert "\n" not in part[0]
        assert part[0].startswith("bold word")

    drive(test, model)


def test_selecting_with_the_mouse_copies_the_words_under_it() -> None:
    model = TranscriptModel()
    model.add_reply("r", "alpha beta gamma", "m")

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        y = next(at for at, row in enumerate(screen(stage)) if "alpha" in row)
        await pilot.mouse_down(TranscriptView, offset=(9, y))
        await pilot.hover(TranscriptView, offset=(11, y))
        await pilot.hover(TranscriptView, offset=(12, y))
        await pilot.mouse_up(TranscriptView, offset=(12, y))
        await until(lambda: stage.screen.get_selected_text() is not None)
        assert stage.screen.get_selected_text() == "beta"
        stage.view.action_copy()
        assert stage.clipboard == "beta"

    drive(test, model)


def test_copy_without_a_selection_gives_the_last_reply() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.action_copy()
        assert stage.clipboard.startswith("answer 1 word")
        assert stage.clipboard.endswith("- a\n- b")

    drive(test, talk(2))


def test_the_number_of_a_row_grows_downwards_and_gives_the_place_back() -> None:
    places = [(0, 0, -1), (0, 0, 0), (0, 0, 700), (0, 3, 0), (1, 0, -2), (9_999, 20_000, 65_000)]
    numbers = [order(*where) for where in places]
    assert numbers == sorted(numbers)
    assert [place(number) for number in numbers] == places


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light"])
def test_words_differ_from_what_is_behind_them_in_every_theme(theme: str) -> None:
    model = TranscriptModel()
    model.add_user("u", "hello")
    model.add_reply(
        "r", "# h\n**b** `c` [l](http://x.y)\n> q\n\n```py\ndef f(): # c\n    return 1\n```", "m"
    )
    model.add_tool(
        "c", ToolRow(label="x", state="tool_error", message="why", fix="fix", summary="s")
    )

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        for y in range(stage.view.size.height):
            for segment in stage.view.render_line(y):
                style = segment.style
                if segment.text.strip() and style is not None and style.color is not None:
                    if style.color.is_default:
                        continue  # the terminal's own colours
                    assert style.color != style.bgcolor, segment

    drive(test, model, theme=theme)


def test_clearing_shows_an_empty_screen_that_can_be_filled_again() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.scroll_to(y=10, animate=False)
        stage.model.clear()
        await settle(stage, pilot)
        assert not any(screen(stage))
        stage.model.add_user("u", "again")
        stage.view.follow()
        await settle(stage, pilot)
        assert "   again" in screen(stage)

    drive(test, talk(20))


def test_removing_the_block_that_is_read_keeps_the_view_near() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view
        view.scroll_to(y=40, animate=False)
        await settle(stage, pilot)
        assert view._anchor is not None
        stage.model.remove(view._anchor.block)
        await settle(stage, pilot)
        assert 20 <= view.scroll_offset.y <= 60
        assert any(screen(stage))

    drive(test, talk(30))


def test_a_view_that_is_hidden_catches_up_when_it_is_shown() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.display = False
        await pilot.pause()
        stage.model.add_user("u", "while away")
        stage.view.update()
        stage.view.display = True
        await until(lambda: "   while away" in screen(stage))

    drive(test, talk(1))


def test_the_model_may_change_at_any_moment_between_two_drawings() -> None:
    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        before = screen(stage)
        for number in range(20):
            stage.model.remove(f"u{number}")
        stage.view._painter = None
        assert screen(stage) == before
        stage.model.clear()
        assert screen(stage) == before
        stage.view.update()
        assert not any(screen(stage))

    drive(test, talk(20))


def test_unfolding_at_the_end_shows_what_was_unfolded() -> None:
    model = talk(20)
    model.add_tool("c", ToolRow(label="bash", state="ok", body="\n".join(map(str, range(200)))))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.action_fold()
        await settle(stage, pilot)
        rows = screen(stage)
        assert rows[0].strip().startswith("✓ bash")
        assert rows[2] == "   │ 0"
        assert not stage.view.is_following
        stage.view.action_fold()
        await settle(stage, pilot)
        assert screen(stage)[-1].strip().startswith("✓ bash")

    drive(test, model)


def test_unfolding_what_fits_moves_no_further_than_needed() -> None:
    model = talk(20)
    model.add_tool("c", ToolRow(label="bash", state="ok", body="a\nb"))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        stage.view.action_fold()
        await settle(stage, pilot)
        assert screen(stage)[-2:] == ["   │ a", "   │ b"]
        assert stage.view.is_following

    drive(test, model)


def test_a_frame_drawn_before_the_new_width_is_known_leaves_no_old_rows() -> None:
    model = TranscriptModel()
    model.add_card("c", Card(title="word " * 40))

    async def test(stage: Stage, pilot: Pilot[None]) -> None:
        view = stage.view

        def drawn() -> list[str]:
            return [view.render_line(y).text for y in range(view.size.height)]

        await pilot.pause()
        wide = drawn()
        view.rows.resize(40)
        view._painter = None
        assert drawn() != wide  # rows for 40 cells, painted at 80
        view.on_resize()
        assert drawn() == wide

    drive(test, model)

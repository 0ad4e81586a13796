"""The one widget of the conversation: draws rows of the model, scrolls, folds, selects, copies.

Nothing is mounted per message. Rows are laid out when they come into view; the model's changes are
gathered and drawn at most 30 times a second, 10 times while the person reads further up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from kage.tui.transcript import palette
from kage.tui.transcript.calls import block_of
from kage.tui.transcript.excerpt import excerpt
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.pace import Pace
from kage.tui.transcript.painter import Painter
from kage.tui.transcript.rowmap import Anchor, Inexact, Row, RowMap

FRAME = 1 / 30  # seconds between two drawings of what streams in
FRAME_AWAY = 1 / 10  # while the end is not in view
TICK = 0.1  # seconds between two pictures of a spinner
TICK_STILL = 1.0  # under reduced motion: only clocks move
REST = 0.25  # seconds of quiet before rows out of view are laid out
SLICE = 0.004  # seconds of that at once
_REACH = 2_000  # rows around the view that are laid out in quiet moments


class TranscriptView(ScrollView, can_focus=False):
    """Draws a TranscriptModel.

    Args:
        model: The conversation.
        reduced_motion: Draw spinners as still pictures.
        id: The widget's id.
        classes: The widget's classes.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = set(palette.CLASSES)
    DEFAULT_CSS = f"""
    TranscriptView {{
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        {palette.CSS}
    }}
    """

    class BlockClicked(Message):
        """A block was clicked where nothing folds."""

        def __init__(self, block_id: str) -> None:
            super().__init__()
            self.block_id = block_id

    class LinkClicked(Message):
        """A link was clicked; the view itself opens nothing."""

        def __init__(self, address: str) -> None:
            super().__init__()
            self.address = address

    class FollowChanged(Message):
        """The view began or stopped to follow the end."""

        def __init__(self, *, following: bool) -> None:
            super().__init__()
            self.following = following

    def __init__(
        self,
        model: TranscriptModel,
        *,
        reduced_motion: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.model = model
        self.rows = RowMap(model)
        self._reduced = reduced_motion
        self._anchor: Anchor | None = None  # the row at the top; None: the end is followed
        self._placing = False  # a scroll now is ours, not the person's
        self._shown: list[tuple[int, int]] = []  # (serial, row) of each row on screen
        self._painter: Painter | None = None
        self._nearby: Iterator[Inexact] | None = None
        self._frame = 0
        self._pace = Pace(self, draw=self.update, tick=self._tick, spare=self._lay_out_more)
        model.feed.listen(self._noted)

    # -- following the model

    @property
    def is_following(self) -> bool:
        """Whether the view stays at the end."""
        return self._anchor is None

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._read_from(None)
        self.update()

    def update(self) -> None:
        """Draw the model as it is now."""
        self._pace.drawn()
        if not self.is_attached or not self.size:
            return
        if self.rows.sync():
            self._nearby = None
        self._place()
        self._pace.rest(REST, SLICE * 4)

    def _noted(self) -> None:
        """Draw soon; deltas that come before that are drawn with it."""
        if self.is_running:
            self._pace.soon(FRAME if self._anchor is None else FRAME_AWAY)

    def on_mount(self) -> None:
        """Draw what is there already."""
        self.call_after_refresh(self.update)

    def on_resize(self) -> None:
        """Lay out for the new size; what was at the top stays there."""
        self._shown = []
        self._nearby = None
        self.update()

    # -- scrolling

    def _place(self) -> None:
        """Make what is in view exact, scroll to where the person reads, redraw what differs."""
        size = self.scrollable_content_region.size
        if not size:
            return
        rows = self.rows
        if rows.width != size.width:
            rows.resize(size.width)
            self._painter = None  # it may have drawn the old rows at the new width already
        anchor = self._anchor
        if anchor is not None and not rows.holds(anchor):
            anchor = rows.anchor(self.scroll_offset.y)
            self._read_from(anchor)
        if anchor is None:
            rows.settle_up(None, size.height)
            top = rows.total - size.height
        else:
            rows.settle_down(anchor, size.height * 2)
            rows.settle_up(anchor, size.height)
            top = rows.row(anchor)
        before = self.scroll_offset.y
        self._placing = True
        try:
            self.virtual_size = Size(size.width, rows.total)
            self.scroll_to(y=max(0, top), animate=False, force=True)
        finally:
            self._placing = False
        self._redraw(scrolled=self.scroll_offset.y != before)

    def _redraw(self, *, scrolled: bool) -> None:
        """Redraw the rows that are not yet on screen as they are."""
        seen = self._seen()
        keys = [(row.piece.serial, row.at) if row else (0, 0) for row in seen]
        before, self._shown = self._shown, keys
        if scrolled or len(before) != len(keys):
            self.refresh()
        else:
            pairs = enumerate(zip(before, keys, strict=True))
            changed = [y for y, (old, new) in pairs if old != new]
            if changed:
                height = changed[-1] - changed[0] + 1
                self.refresh(Region(0, changed[0], self.size.width, height))
        moving = any(row is not None and row.at == 0 and row.piece.moving for row in seen)
        self._pace.animate((TICK_STILL if self._still else TICK) if moving else None)

    def _seen(self) -> list[Row | None]:
        top = self.scroll_offset.y
        return [self.rows.at(top + y) for y in range(self.size.height)]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Remember what the person reads from now on."""
        super().watch_scroll_y(old_value, new_value)
        if self._placing or not self.is_attached:
            return
        at_end = round(new_value) >= self.max_scroll_y
        self._read_from(None if at_end else self.rows.anchor(round(new_value)))
        self._shown = []
        self._nearby = None
        self._noted()

    def _read_from(self, anchor: Anchor | None) -> None:
        turned = (anchor is None) is not (self._anchor is None)
        self._anchor = anchor
        if turned and self.is_running:
            self.post_message(self.FollowChanged(following=anchor is None))

    def _lay_out_more(self) -> bool:
        """Lay out a little of what is just out of view; say if there is more."""
        if self._nearby is None:
            self._nearby = self.rows.nearby(self._anchor, _REACH)
        end = time.monotonic() + SLICE
        total = self.rows.total
        more = False
        for found in self._nearby:
            self.rows.make_exact(found)
            if time.monotonic() > end:
                more = True
                break
        if self.rows.total != total:
            self._place()
        return more

    # -- drawing

    def render_line(self, y: int) -> Strip:
        """Draw one row of the screen."""
        width = self.scrollable_content_region.width
        if self._painter is None or self._painter.width != width:
            selected = self.screen.get_component_rich_style("screen--selection")
            colours = palette.Palette(self._component, self.rich_style, selected)
            self._painter = Painter(colours, width)
        row = self.rows.at(self.scroll_offset.y + y)
        return self._painter.paint(row, self.text_selection, None if self._still else self._frame)

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    def notify_style_update(self) -> None:
        """Draw in other colours from now on."""
        super().notify_style_update()
        self._painter = None

    def _tick(self) -> None:
        """Redraw the rows that move, and nothing else."""
        self._frame += 1
        moving = False
        for y, row in enumerate(self._seen()):
            if row is not None and row.at == 0 and row.piece.moving:
                moving = True
                self.refresh(Region(0, y, self.size.width, 1))
        if not moving:
            self._pace.animate(None)

    @property
    def _still(self) -> bool:
        return self._reduced or self.app.animation_level == "none"

    # -- pointer and keys

    def on_click(self, event: events.Click) -> None:
        """Fold or unfold, open a link, or say which block was meant."""
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        row = self.rows.at(self.scroll_offset.y + offset.y)
        if row is None:
            return
        event.stop()
        if address := row.line.link_at(offset.x):
            self.post_message(self.LinkClicked(address))
        elif row.line.target:
            self._toggle(row.line.target)
        else:
            self.post_message(self.BlockClicked(self.rows.block(row.block).id))

    def action_fold(self) -> None:
        """Fold or unfold the lowest block in view that can be."""
        for row in reversed(self._seen()):
            block = self.rows.block(row.block) if row is not None else None
            if block is not None and (block.foldable or (row and row.line.target)):
                self._toggle(block.id)
                return

    def _toggle(self, target: str) -> None:
        """Fold or unfold, and scroll no further than it takes to see what came."""
        y, height = self.scroll_offset.y, self.size.height
        here = self.rows.anchor(y)
        self.model.toggle_fold(target)
        self.rows.sync()
        self._nearby = None
        if here is not None:
            y = self.rows.row(here)
        top, bottom = self.rows.extent(block_of(target), height)
        if bottom > y + height:
            y = max(y, min(top, bottom - height))
        at_end = y + height >= self.rows.total
        self._read_from(None if at_end else self.rows.anchor(y))
        self.update()

    def action_fold_all(self) -> None:
        """Unfold everything, or fold everything when all of it is unfolded."""
        self.model.fold_all(not self.model.all_unfolded)
        self.update()

    def action_copy(self) -> None:
        """Copy what is selected, else the source of the last reply."""
        text = self.screen.get_selected_text() or self.model.source()
        if text:
            self.app.copy_to_clipboard(text)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Give the source text under a selection."""
        start, end = selection
        first = (start.y, start.x) if start is not None else None
        last = (end.y, end.x) if end is not None else None
        text = excerpt(self.rows, first, last)
        return (text, "\n") if text else None

    def selection_updated(self, selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()

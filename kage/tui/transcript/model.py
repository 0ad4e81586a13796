"""The conversation as the screen knows it: blocks in order, finished ones never changing.

Knows no Textual. Whoever draws it listens to ``feed`` and, when told, takes the changes. All text
is sanitised on the way in. An unknown id is ignored: events of a conversation that was just cleared
may still be on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from kage.tui.transcript.blocks import Block, CardBlock, UserBlock
from kage.tui.transcript.calls import GROUP, ToolBlock, dissolve, regroup
from kage.tui.transcript.reply import ReplyBlock
from kage.tui.transcript.rows import Card, ToolRow

__all__ = ["Card", "Changes", "ToolRow", "TranscriptModel"]

_TAIL = 64_000  # characters of live output kept for a row


@dataclass(slots=True)
class Changes:
    """What is different since it was last asked."""

    rebuilt: bool = False  # blocks were removed: everything has another place
    touched: dict[str, None] = field(default_factory=dict)  # ids, in order


class Feed:
    """Tells those who draw the model that it changed, and what."""

    def __init__(self) -> None:
        self._changes = Changes()
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change; it should only take a note."""
        self._listeners.append(listener)

    def take(self) -> Changes:
        """Take what changed since the last time; for the one that draws."""
        changes, self._changes = self._changes, Changes()
        return changes

    def touch(self, block: Block) -> None:
        """Note that a block is new or looks different."""
        self._changes.touched[block.id] = None
        self._tell()

    def rebuild(self) -> None:
        """Note that blocks have other places."""
        self._changes.rebuilt = True
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


class TranscriptModel:
    """The blocks of one conversation."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._where: dict[str, int] = {}
        self.feed = Feed()
        self._speaker = ""  # who the last header names

    # -- what is said

    def add_user(self, block_id: str, text: str) -> None:
        """Show what the person said."""
        self._speaker = ""
        self._put(UserBlock(block_id, text))

    def begin_reply(self, block_id: str, model: str) -> None:
        """Open a reply that will stream; a header is shown when another one speaks."""
        if block_id not in self._where:
            self._put(ReplyBlock(block_id, model, headed=self._heads(model)))

    def stream_text(self, block_id: str, text: str) -> None:
        """Add text to an open reply."""
        self._stream(block_id, text, thinking=False)

    def stream_thinking(self, block_id: str, text: str) -> None:
        """Add reasoning to an open reply."""
        self._stream(block_id, text, thinking=True)

    def end_reply(self, block_id: str, *, stop: str, note: str = "") -> None:
        """Close a reply.

        Args:
            block_id: The reply.
            stop: Why it ended, a value of ``core.messages.Stop``.
            note: What stands below it, "" for the words that belong to ``stop``.
        """
        if isinstance(block := self.block(block_id), ReplyBlock):
            block.finish(note or _STOPS.get(stop, ""))
            self.feed.touch(block)

    def add_reply(
        self, block_id: str, text: str, model: str, thinking: str = "", note: str = ""
    ) -> None:
        """Show a finished reply; it is parsed when it comes into view.

        A reply of this id that stands there already is replaced.
        """
        old = self.block(block_id)
        headed = old.headed if isinstance(old, ReplyBlock) else self._heads(model)
        block = ReplyBlock(block_id, model, headed=headed)
        block.stream(thinking, thinking=True)
        block.stream(text, thinking=False)
        block.finish(note)
        self._put(block)

    # -- what is done

    def add_tool(self, call_id: str, row: ToolRow) -> None:
        """Show a call, or another row of a call that stands there."""
        if isinstance(block := self.block(call_id), ToolBlock):
            block.update(row)
            self.feed.touch(block)
        else:
            self._put(ToolBlock(call_id, row))
        self._group(call_id)

    def update_tool(self, call_id: str, **changes: Any) -> None:  # fields of ToolRow
        """Change fields of a call's row."""
        block = self.block(call_id)
        if not isinstance(block, ToolBlock):
            return
        row = replace(block.row, **changes)
        if row == block.row:
            return
        block.update(row)
        self.feed.touch(block)
        self._group(call_id)

    def append_output(self, call_id: str, text: str) -> None:
        """Add live output to a call's row; only its end is kept."""
        if isinstance(block := self.block(call_id), ToolBlock) and text:
            block.update(replace(block.row, tail=(block.row.tail + text)[-_TAIL:]))
            self.feed.touch(block)

    def add_card(self, block_id: str, card: Card) -> None:
        """Show a failure or a notice; a card of this id is replaced."""
        self._put(CardBlock(block_id, card))

    def update_card(self, block_id: str, card: Card) -> None:
        """Show something else on a card."""
        if isinstance(block := self.block(block_id), CardBlock):
            block.update(card)
            self.feed.touch(block)

    def remove(self, block_id: str) -> None:
        """Take a block away."""
        if (index := self._where.get(block_id)) is None:
            return
        block = self.blocks.pop(index)
        if isinstance(block, ToolBlock):
            dissolve(block)
        if isinstance(block, ReplyBlock) and block.headed:
            self._speaker = ""  # its header is gone: the next reply needs one
        self._where = {block.id: place for place, block in enumerate(self.blocks)}
        self.feed.rebuild()
        for neighbour in self.blocks[max(0, index - 1) : index + 1]:
            self._group(neighbour.id)

    def clear(self) -> None:
        """Take everything away."""
        self.blocks = []
        self._where = {}
        self._speaker = ""
        self.feed.rebuild()

    # -- folding

    def toggle_fold(self, block_id: str) -> None:
        """Fold or unfold a block, or a run of reads by its fold target."""
        block = self.block(block_id.removesuffix(GROUP))
        if block is None:
            return
        if isinstance(block, ToolBlock) and (
            block_id.endswith(GROUP) or (block.members and not block.group_open)
        ):
            for member in block.toggle_group():
                self.feed.touch(member)
        else:
            block.fold(unfolded=not block.open)
            self.feed.touch(block)

    def fold_all(self, unfolded: bool) -> None:
        """Unfold everything, or fold everything."""
        for block in self.blocks:
            if isinstance(block, ToolBlock) and block.members and block.group_open != unfolded:
                for member in block.toggle_group():
                    self.feed.touch(member)
            if block.foldable and block.open != unfolded:
                block.fold(unfolded=unfolded)
                self.feed.touch(block)

    @property
    def all_unfolded(self) -> bool:
        """Whether nothing is left to unfold."""
        return not any(
            (block.foldable and not block.open)
            or (isinstance(block, ToolBlock) and block.members and not block.group_open)
            for block in self.blocks
        )

    # -- reading

    def block(self, block_id: str) -> Block | None:
        """Give the block of this id."""
        index = self._where.get(block_id)
        return None if index is None else self.blocks[index]

    def index(self, block_id: str) -> int | None:
        """Give the place of a block."""
        return self._where.get(block_id)

    def plain_text(self) -> str:
        """Give the whole conversation as plain text, sanitised."""
        texts: list[str] = []
        after_tool = False
        for block in self.blocks:
            if text := block.plain():
                tool = isinstance(block, ToolBlock)
                texts.append(text if (tool and after_tool) or not texts else f"\n{text}")
                after_tool = tool
        return "\n".join(texts)

    def source(self, block_id: str | None = None) -> str:
        """Give the source of a block, or of the last reply that says something; "" for none."""
        if block_id is not None:
            block = self.block(block_id)
            return "" if block is None else block.source()
        replies = (block for block in reversed(self.blocks) if isinstance(block, ReplyBlock))
        return next((text for block in replies if (text := block.source())), "")

    # -- inside

    def _heads(self, model: str) -> bool:
        heads = self._speaker != f"kage {model}"
        self._speaker = f"kage {model}"
        return heads

    def _stream(self, block_id: str, text: str, *, thinking: bool) -> None:
        if isinstance(block := self.block(block_id), ReplyBlock):
            block.stream(text, thinking=thinking)
            self.feed.touch(block)

    def _put(self, block: Block) -> None:
        """Add a block, or put it in the place of the one with its id."""
        index = self._where.get(block.id)
        if index is None:
            self._where[block.id] = len(self.blocks)
            self.blocks.append(block)
        else:
            block.epoch = self.blocks[index].epoch + 1
            self.blocks[index] = block
        self.feed.touch(block)

    def _group(self, call_id: str) -> None:
        for block in regroup(self.blocks, self._where[call_id]):
            self.feed.touch(block)


_STOPS = {
    "interrupted": "interrupted",
    "failed": "broke off",
    "length": "cut off at the model's output limit",
    "refused": "the model declined",
}

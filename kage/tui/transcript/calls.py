"""Tool calls as blocks: one row each, unfolded to the result, runs of reads in one row."""

from __future__ import annotations

from collections.abc import Sequence

from kage.core.sanitise import clip, visible
from kage.tui.transcript.blocks import Block
from kage.tui.transcript.line import Span
from kage.tui.transcript.pieces import Piece, RowsPiece, TextPiece, ToolPiece, guess, text_pieces
from kage.tui.transcript.rows import ToolRow, group_line, tool_line
from kage.tui.transcript.wrap import fold

GROUP = "\x00group"  # suffix of the fold target of a run of reads
_TAIL_LINES = 6  # of live output
_REASON_LINES = 4  # of a failure, without unfolding
_WARNINGS = 3  # of each kind
_WARNING = 200  # characters of one


def block_of(target: str) -> str:
    """Give the id of the block a fold target belongs to."""
    return target.removesuffix(GROUP)


class ToolBlock(Block):
    """A tool call; may stand for a run of reads, or be hidden in one."""

    def __init__(self, block_id: str, row: ToolRow) -> None:
        super().__init__(block_id)
        self.row = row
        self.leader: ToolBlock | None = None  # the block it is folded into, itself for the first
        self.members: list[ToolBlock] = []  # of the run, if it is the first
        self.group_open = False

    def update(self, row: ToolRow) -> None:
        """Show another state of the call."""
        self.row = row
        self.changed()

    def toggle_group(self) -> list[ToolBlock]:
        """Show or hide the calls of the run this one leads; gives those that look different."""
        self.group_open = not self.group_open
        for member in self.members:
            member.changed()
        return self.members

    @property
    def foldable(self) -> bool:
        """See Block."""
        row = self.row
        return bool(row.body or row.diff or (row.tail and not row.body))

    def estimate(self, width: int) -> int:
        """See Block."""
        if self._hidden:
            return 0
        if not self.open:
            return 1
        return 2 + guess(self.row.diff or self.row.body or self.row.tail, width)

    def source(self) -> str:
        """See Block."""
        row = self.row
        parts = (row.diff, row.body or row.tail or row.message)
        return visible("\n".join(part for part in parts if part)) or self.plain()

    def plain(self) -> str:
        """See Block."""
        line = tool_line(self.row, 100)
        right = "".join(span.text for span in line.right).strip()
        return f"  {line.text}{'  ' + right if right else ''}"

    @property
    def _hidden(self) -> bool:
        leader = self.leader
        return leader is not None and leader is not self and not leader.group_open

    def _make(self) -> list[Piece]:
        if self._hidden:
            return []
        out: list[Piece] = []
        if self.members:
            marker = "▾" if self.group_open else "▸"
            rows = [block.row for block in self.members]
            out.append(
                RowsPiece(
                    lambda space: [group_line(rows, space, marker=marker)], target=self.id + GROUP
                )
            )
            if not self.group_open:
                return out
        marker = ("▾" if self.open else "▸") if self.foldable else ""
        depth = 2 if self.leader is not None else 0
        out.append(ToolPiece(self.row, marker=marker, target=self.id, depth=depth))
        out += self._below(" " * depth)
        return out

    def _below(self, pad: str) -> list[Piece]:
        row, bar = self.row, f"{pad}│ "
        out: list[Piece] = []
        if row.failed and not row.says_why:
            out += _reasons(row)
        out += _warnings(row)
        out += _effects(row)
        if self.open:
            label = visible(row.label, single_line=True)
            if row.diff:
                out += text_pieces(visible(row.diff), style="diff", bar=bar)
            if row.body:
                out.append(_caption(f"result of {label}", pad))
                out += text_pieces(visible(row.body), style="cells", role="output", bar=bar)
            elif row.tail:
                out.append(_caption(f"output of {label}", pad))
                out += text_pieces(visible(row.tail), style="cells", role="output", bar=bar)
        elif row.state == "running" and row.tail:
            last = "\n".join(visible(row.tail[-4_000:]).rstrip("\n").split("\n")[-_TAIL_LINES:])
            out.append(TextPiece(last, style="cells", role="output", bar=bar))
        return out


def _caption(text: str, pad: str) -> RowsPiece:
    return RowsPiece(lambda space: fold((Span(f"{pad}╭ ", "~bar"), Span(text, "detail")), space))


def _reasons(row: ToolRow) -> list[Piece]:
    """Say under a failed call why it failed and what to do."""
    out: list[Piece] = []
    reason = row.message or row.body
    if reason:
        lines = visible(reason[:2_000]).strip("\n").split("\n")
        shown = "\n".join(lines[:_REASON_LINES])
        if len(lines) > _REASON_LINES:
            shown += " …"
        role = "reason" if row.state != "refused" else "detail"
        out.append(TextPiece(shown, style="words", role=role, bar="  "))
    if row.fix:
        fix = visible(row.fix, single_line=True)
        out.append(TextPiece(f"→ {fix}", style="words", role="fix", bar="  "))
    return out


def _warnings(row: ToolRow) -> list[Piece]:
    """Say under a call what scanners saw in it and in its result."""
    words = [f"⚠ sent with it: {text}" for text in row.sent[:_WARNINGS]]
    words += [f"⚠ in the result: {text}" for text in row.came[:_WARNINGS]]
    lines = (clip(visible(text, single_line=True), _WARNING) for text in words)
    return [TextPiece(line, style="words", role="warning", bar="  ") for line in lines]


def _effects(row: ToolRow) -> list[Piece]:
    """Say under a call what it did to files, and that this was undone."""
    words = [f"~ {visible(row.effect, single_line=True)}"] if row.effect else []
    if row.undone:
        words.append("↶ undone")
    role = "reason" if row.alarm and not row.undone else "detail"
    text = " · ".join(words)
    return [TextPiece(text, style="words", role=role, bar="  ")] if text else []


def regroup(blocks: Sequence[Block], index: int) -> list[ToolBlock]:
    """Fold the run of finished reads around ``blocks[index]`` into one row.

    Empty replies between the calls do not end a run. Gives the blocks that look different now.
    """
    block = blocks[index]
    if not isinstance(block, ToolBlock):
        return []
    if not block.row.folds:
        return dissolve(block)
    run = [block]
    for place in range(index - 1, -1, -1):
        other = blocks[place]
        if isinstance(other, ToolBlock) and other.row.folds:
            if other.leader is not None:
                run = [
                    *other.leader.members,
                    *(one for one in run if one not in other.leader.members),
                ]
                break
            run.insert(0, other)
        elif not other.empty:
            break
    for other in blocks[index + 1 :]:
        if isinstance(other, ToolBlock) and other.row.folds:
            if other not in run:
                run.append(other)
        elif not other.empty:
            break
    return _join(run)


def _join(run: list[ToolBlock]) -> list[ToolBlock]:
    leader = run[0]
    if len(run) < 2 or leader.members == run:
        return []
    group_open = any(block.group_open for block in run)
    changed = [block for block in run if block.leader is not leader or block is leader]
    for block in run:
        block.leader, block.members, block.group_open = leader, [], False
    leader.members, leader.group_open = run, group_open
    for block in changed:
        block.changed()
    return changed


def dissolve(block: ToolBlock) -> list[ToolBlock]:
    """Unfold the run a call is in, since it is no finished read after all, or gone."""
    if block.leader is None:
        return []
    members = block.leader.members
    for member in members:
        member.leader, member.members, member.group_open = None, [], False
        member.changed()
    return members

"""Questions about entries that are not trusted: one sheet at a time, and never over a draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kage.core.commands import AnswerTrust
from kage.core.trust import TrustAnswer, TrustQuestion
from kage.tui.controllers.stage import Stage
from kage.tui.keymap import Keymap
from kage.tui.text import shown

if TYPE_CHECKING:
    from kage.tui.screens.trust import TrustScreen

_SAID = {
    TrustAnswer.TRUST: "is trusted from now on",
    TrustAnswer.LATER: "is not started; /mcp trust shows it again",
    TrustAnswer.NEVER: "is never started here, nor asked about",
}


class TrustSheets:
    """Holds the open questions about entries, in the order they came.

    Args:
        quiet: Seconds without a key before a sheet nobody asked for takes keys.
        busy: Says whether the person is in the middle of something: a draft, an open question.
        spill: Takes what was typed before a sheet took keys into the draft.
        remark: Shows a passing line.
    """

    def __init__(
        self,
        *,
        stage: Stage,
        keymap: Keymap,
        quiet: float,
        busy: Callable[[], bool],
        spill: Callable[[str], None],
        remark: Callable[[str], None],
    ) -> None:
        self._stage = stage
        self._keymap = keymap
        self._quiet = quiet
        self._busy = busy
        self._spill = spill
        self._remark = remark
        self._open: dict[str, tuple[TrustQuestion, bool]] = {}  # by name; and whether asked for
        self._sheet: TrustScreen | None = None

    @property
    def sheet(self) -> TrustScreen | None:
        """The sheet on the screen."""
        return self._sheet

    @property
    def waiting(self) -> int:
        """How many questions are open."""
        return len(self._open)

    def ask(self, question: TrustQuestion, *, asked: bool) -> None:
        """An entry waits for an answer."""
        if asked:  # what a person wants to see comes first
            self._open = {question.name: (question, True), **self._open}
            self._open[question.name] = (question, True)
        else:
            self._open.setdefault(question.name, (question, False))
        self.surface()

    def settle(self, name: str, answer: TrustAnswer) -> None:
        """An answer counts."""
        self._open.pop(name, None)
        self._remark(f"{shown(name, 40)} {_SAID[answer]}")

    def surface(self) -> None:
        """Show the next question, when nothing lies over the chat and nobody is disturbed."""
        if self._sheet is not None or not self._open:
            return
        question, asked = next(iter(self._open.values()))
        if not asked and (self._busy() or not self._stage.free):
            return
        from kage.tui.screens.asking import Unasked
        from kage.tui.screens.trust import TrustScreen

        self._sheet = TrustScreen(
            question,
            self._keymap,
            decided=lambda answer: self._decide(question, answer),
            unasked=Unasked(quiet=self._quiet, spill=self._spill),
        )
        self._stage.push_screen(self._sheet, lambda _: self._closed(question))

    def _decide(self, question: TrustQuestion, answer: TrustAnswer) -> None:
        self._open.pop(question.name, None)
        command = AnswerTrust(
            name=question.name, entry_hash=question.identity.entry_hash, answer=answer
        )
        self._stage.send(command)

    def _closed(self, question: TrustQuestion) -> None:
        self._sheet = None
        self._open.pop(question.name, None)  # closed without an answer: not now
        self.surface()

"""Questions about entries that are not trusted: one sheet at a time, and never over a draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kage.core.commands import AnswerTrust
from kage.core.trust import TrustAnswer, TrustQuestion
from kage.tui.controllers.stage import Backstage
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
        backstage: What its sheets are put up with.
        busy: Says whether the person is in the middle of something: a draft, an open question.
    """

    def __init__(self, backstage: Backstage, *, busy: Callable[[], bool]) -> None:
        self._backstage = backstage
        self._stage = backstage.stage
        self._remark = backstage.remark
        self._busy = busy
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
        else:  # an entry that changed again is asked about as it is now
            wanted = self._open.get(question.name, (question, False))[1]
            self._open[question.name] = (question, wanted)
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
        from kage.tui.screens.trust import TrustScreen

        self._sheet = TrustScreen(
            question,
            self._backstage.keymap,
            decided=lambda answer: self._decide(question, answer),
            unasked=self._backstage.unasked(),
        )
        self._stage.push_screen(self._sheet, lambda _: self._closed(question))

    def _decide(self, question: TrustQuestion, answer: TrustAnswer) -> None:
        self._drop(question)
        command = AnswerTrust(
            name=question.name, entry_hash=question.identity.entry_hash, answer=answer
        )
        self._stage.send(command)

    def _closed(self, question: TrustQuestion) -> None:
        self._sheet = None
        self._drop(question)  # closed without an answer: not now
        self.surface()

    def _drop(self, question: TrustQuestion) -> None:
        """Forget a question, but not one that came for the same name while it was shown."""
        if self._open.get(question.name, (None, False))[0] is question:
            del self._open[question.name]

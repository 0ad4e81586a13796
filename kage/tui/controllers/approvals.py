"""Which question is on the screen, and which keys may answer it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from textual import events

from kage.core.commands import AnswerApproval
from kage.core.gate import Answer, Question, Reply
from kage.tui.keymap import Context, Keymap
from kage.tui.widgets.guard import Guard
from kage.tui.widgets.question import Asked

_ANSWERS = {
    "yes": Answer.YES,
    "session": Answer.SESSION,
    "always": Answer.ALWAYS,
    "no": Answer.NO,
    "no_say": Answer.NO_SAY,
}


class Desk(Protocol):
    """What the approvals need of the chat screen."""

    @property
    def draft_empty(self) -> bool:
        """Whether nothing is written in the prompt."""
        ...

    @property
    def palette_open(self) -> bool:
        """Whether the list over the prompt takes keys."""
        ...

    def show_question(self, asked: Asked | None, gauge: str) -> None:
        """Show a question in the panel, or hide the panel; then tell ``Approvals.painted``."""
        ...

    def show_gauge(self, gauge: str) -> None:
        """Redraw how far the quiet period is."""
        ...

    def open_say(self) -> None:
        """Open the line for "no, and say what instead"."""
        ...

    def close_say(self) -> None:
        """Close that line; what it held is on its way."""
        ...

    def focus_panel(self) -> None:
        """Move the focus into the panel."""
        ...

    def focus_draft(self) -> None:
        """Move the focus into the prompt."""
        ...

    def type_into_draft(self, text: str) -> None:
        """Put text into the draft and the focus behind it."""
        ...

    def scroll_question(self, lines: int) -> None:
        """Scroll the arguments."""
        ...

    def show_details(self, question: Question) -> None:
        """Show the whole call on the full screen."""
        ...

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back once after ``seconds``."""
        ...


class Approvals:
    """Puts the questions to the person one by one; every answer goes through ``_answer``."""

    def __init__(
        self, *, keymap: Keymap, desk: Desk, send: Callable[[AnswerApproval], None], quiet: float
    ) -> None:
        self._keymap = keymap
        self._desk = desk
        self._send = send
        self._guard = Guard(quiet)
        self._questions: dict[str, Question] = {}
        self._answered = 0  # of the questions that came since the panel opened
        self._scope = 0
        self._unfolded = False
        self._ticking = False

    @property
    def waiting(self) -> int:
        """How many questions are open."""
        return len(self._questions)

    @property
    def current(self) -> Asked | None:
        """The question on the screen."""
        question = next(iter(self._questions.values()), None)
        if question is None:
            return None
        return Asked(
            question=question,
            number=self._answered + 1,
            of=self._answered + len(self._questions),
            scope=self._scope,
            unfolded=self._unfolded,
        )

    @property
    def ready(self) -> bool:
        """Whether an answer given now would count."""
        return bool(self._questions) and self._guard.accepts(time.monotonic())

    def ask(self, question: Question) -> None:
        """A call waits for the person."""
        first = not self._questions
        self._questions[question.id] = question
        if first:
            self._next()
        else:
            self._redraw()  # the counter

    def settle(self, question_id: str) -> None:
        """A question was answered, or withdrawn."""
        current = self.current
        if self._questions.pop(question_id, None) is None:
            return
        if current is not None and current.question.id == question_id:
            self._next()
        else:
            self._redraw()

    def clear(self) -> None:
        """No question is open any more."""
        if self._questions:
            self._questions.clear()
            self._next()

    def painted(self) -> None:
        """The question is on the screen: the quiet period begins."""
        if self._questions:
            self._guard.show(time.monotonic())
            self._tick()

    def reappear(self) -> None:
        """The panel came back into view (a screen over it closed, the terminal got the focus)."""
        self.painted()

    def pasted(self, at: float) -> None:
        """Something was pasted into the draft; that never answers."""
        if self._questions and not self._guard.accepts(at):
            self._guard.swallow(at)

    def key(self, event: events.Key, *, in_panel: bool) -> bool:
        """Take a key pressed in the prompt or in the panel; False leaves it to the prompt."""
        if not self._questions:
            return False
        action = self._keymap.find(Context.PANEL, event.key, event.character)
        if not self._guard.accepts(event.time):
            return self._swallow(event, in_panel=in_panel)
        if not in_panel and not self._desk.draft_empty:
            return self._beside_draft(action, event)
        if action is not None and action != "panel_focus":
            self._act(action)
            return True
        if action == "panel_focus" and in_panel:
            self._desk.focus_draft()
        if not in_panel or action is not None:
            return action is not None
        if event.is_printable and event.character:
            self._desk.type_into_draft(event.character)
        return True

    def click(self, action: str, pressed_at: float) -> None:
        """An answer was clicked; it counts like a key pressed when the button went down."""
        if self._questions and self._guard.accepts(pressed_at):
            self._act(action)

    def say(self, text: str | None) -> None:
        """Answer 5 was written, or given up (None, or nothing written)."""
        if text is None or not text.strip():
            self._redraw()
            self._desk.focus_panel()
            self.painted()
        else:
            self._desk.close_say()
            self._answer(Reply(answer=Answer.NO_SAY, scope=self._scope, say=text.strip()))

    def _swallow(self, event: events.Key, *, in_panel: bool) -> bool:
        """Keep a key that came too early from answering: what it types goes into the draft."""
        self._guard.swallow(event.time)
        self._tick()
        if event.is_printable and event.character:
            self._desk.type_into_draft(event.character)
            return True
        sends = self._keymap.find(Context.PROMPT, event.key) == "send"
        if sends or event.key == "enter":
            self._desk.type_into_draft("\n")
            return True
        return in_panel or event.key in ("tab", "escape")

    def _beside_draft(self, action: str | None, event: events.Key) -> bool:
        """A key with a draft on hand: only tab and esc, which type nothing, are for the panel."""
        if self._desk.palette_open or action is None or event.is_printable:
            return False
        if action == "panel_focus":
            self._desk.focus_panel()
        elif action == "no":
            self._act(action)
        else:
            return False
        return True

    def _act(self, action: str) -> None:
        asked = self.current
        assert asked is not None
        match action:
            case "session" | "always" if not asked.rule:
                return
            case "no_say":
                self._desk.open_say()
            case "yes" | "session" | "always" | "no":
                self._answer(Reply(answer=_ANSWERS[action], scope=self._scope))
            case "all_yes":
                self._answer_all(Answer.YES, self._alike(asked))
            case "all_no":
                self._answer_all(Answer.NO, tuple(self._questions))
            case "scope":
                self._scope = (self._scope + 1) % max(1, len(asked.question.scopes))
                self._redraw()
            case "unfold":
                self._unfolded = not self._unfolded
                self._redraw()
            case "details":
                self._desk.show_details(asked.question)
            case "panel_up" | "panel_down":
                self._desk.scroll_question(-3 if action == "panel_up" else 3)

    def _alike(self, asked: Asked) -> tuple[str, ...]:
        """Give the shown question and those its rule would allow; what needs a look is left."""
        return tuple(
            question.id
            for question in self._questions.values()
            if question.id == asked.question.id
            or (asked.rule in question.scopes and not question.red and not question.warnings)
        )

    def _answer(self, reply: Reply) -> None:
        asked = self.current
        assert asked is not None
        self._questions.pop(asked.question.id)
        self._answered += 1
        self._send(AnswerApproval(question_id=asked.question.id, reply=reply))
        self._next()

    def _answer_all(self, answer: Answer, ids: tuple[str, ...]) -> None:
        for question_id in ids:
            if self._questions.pop(question_id, None) is not None:
                self._answered += 1
                self._send(AnswerApproval(question_id=question_id, reply=Reply(answer=answer)))
        self._next()

    def _next(self) -> None:
        """Show the next question, or close the panel."""
        self._scope = 0
        question = next(iter(self._questions.values()), None)
        # a tool of a server the person calls dangerous is shown whole before it can be answered
        self._unfolded = question is not None and question.request.tool.safety == "dangerous"
        self._guard.hide()
        if not self._questions:
            self._answered = 0
        self._redraw()

    def _redraw(self) -> None:
        now = time.monotonic()
        self._desk.show_question(self.current, self._guard.gauge(now))

    def _tick(self) -> None:
        """Move the gauge until the guard has run; no timer stays behind."""
        if not self._ticking:
            self._ticking = True
            self._desk.later(0.1, self._ticked)

    def _ticked(self) -> None:
        self._ticking = False
        if not self._questions:
            return
        now = time.monotonic()
        self._desk.show_gauge(self._guard.gauge(now))
        if self._guard.remaining(now) > 0:
            self._tick()

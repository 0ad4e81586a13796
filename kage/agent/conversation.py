"""The open session: its messages, its gate, what it cost; switched as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kage.agent.parts import SessionGate
from kage.core.attachments import typed
from kage.core.content import as_text
from kage.core.events import (
    ContextMeasured,
    MessageAppended,
    ModeChanged,
    Publish,
    SessionOpened,
)
from kage.core.gate import Mode
from kage.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from kage.providers.base import Provider
from kage.sessions.reader import SessionFile
from kage.sessions.store import SessionStore, title_of
from kage.sessions.writer import Session

RECALLED = 400  # of the last messages of a resumed session, whose words are watched


class Conversation:
    """One session at a time.

    ``open`` may run on a worker thread; everything else belongs to the engine's loop.
    """

    session: Session
    gate: SessionGate

    def __init__(
        self,
        *,
        store: SessionStore,
        gate: Callable[[str], SessionGate],
        publish: Publish,
        workspace: Path,
        mode: Mode,
    ) -> None:
        self._store = store
        self._make_gate = gate
        self._publish = publish
        self._workspace = workspace
        self._first_mode = mode
        self._opened = False
        self.messages: list[Message] = []
        self._cost: float | None = 0.0

    @property
    def mode(self) -> Mode:
        """The permission mode; survives a switch of sessions."""
        return self.gate.mode if self._opened else self._first_mode

    def set_mode(self, mode: Mode) -> None:
        """Judge calls in another mode, and tell."""
        if self._opened:
            self.gate.mode = mode
        else:
            self._first_mode = mode
        self._publish(ModeChanged(mode=mode))

    def open(self, session_id: str) -> tuple[Session, SessionFile | None]:
        """Open the session with ``session_id``, or a new one for "".

        Raises:
            SessionError: there is none, it cannot be read, or another kage holds it.
        """
        if session_id:
            return self._store.open(session_id)
        return self._store.create(self._workspace), None

    def adopt(self, session: Session, held: SessionFile | None) -> None:
        """Make ``session`` the open one and tell everybody."""
        mode = self.mode
        self.close()
        self.session = session
        self.gate = self._make_gate(session.id)
        self.gate.mode = mode
        self._opened = True
        self.messages = list(held.messages) if held else []
        for message in self.messages[-RECALLED:]:
            self._note(message)
        self._cost = 0.0
        prompts = (item for item in self.messages if isinstance(item, UserMessage))
        self._publish(
            SessionOpened(
                session_id=session.id,
                title=next((title_of(prompt) for prompt in prompts), ""),
                messages=tuple(self.messages),
                dropped=held.dropped if held else (),
            )
        )

    def say(self, message: UserMessage) -> None:
        """Write down what the person said, then tell it."""
        self._note(message)
        self.session.append(message)
        self.messages.append(message)
        self._publish(MessageAppended(message=message))

    def _note(self, message: Message) -> None:
        """Let the gate know who said what; it tells when words go from one server to another."""
        match message:
            case UserMessage(written=""):
                self.gate.said(typed(message.content))
            case ToolMessage(server=str(server)) if server:
                self.gate.returned(server, as_text(message.content))
            case _:
                pass

    def measure(self, reply: AssistantMessage, provider: Provider) -> None:
        """Count what ``reply`` cost and how full the window is now."""
        if not reply.usage.context:
            return
        price = provider.info.price
        if price is None:
            self._cost = None
        elif self._cost is not None:
            self._cost += price.cost(reply.usage)
        window = provider.info.window
        self._publish(ContextMeasured(tokens=reply.usage.context, window=window, cost=self._cost))

    def close(self) -> None:
        """Let go of the session's file."""
        if self._opened:
            self.session.close()

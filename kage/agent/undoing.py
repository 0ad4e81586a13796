"""Undo as front ends see it: which calls, what would happen, and doing it, for the open session."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from typing import Any

from kage.agent.conversation import Conversation
from kage.agent.effects import Effects
from kage.agent.parts import Parts
from kage.agent.undo import Undone
from kage.core.content import Text
from kage.core.errors import KageError
from kage.core.events import CallUndone, Noticed, Publish
from kage.core.levels import Level
from kage.core.messages import UserMessage
from kage.core.tools import ToolSpec
from kage.core.undo import Change, UndoItem, UndoPlan
from kage.sessions.store import SessionStore
from kage.sessions.undo import FOLDER, SNAPSHOT

MAX_TOLD = 20  # files the model is told


class Undoing:
    """Owns what looks after the calls of the open session.

    Args:
        parts: What the engine is made of.
        conversation: Where the open session is.
        busy: Says whether a run is on.
    """

    def __init__(
        self, parts: Parts, conversation: Conversation, *, busy: Callable[[], bool]
    ) -> None:
        self._parts = parts
        self._conversation = conversation
        self._publish: Publish = parts.bus.publish
        self._busy = busy
        self._effects: Effects | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    def effects(self) -> Effects:
        """Give what looks after the calls of the open session."""
        session = self._conversation.session
        if self._effects is None or self._effects.session_id != session.id:
            self._let_go()
            parts = self._parts
            if parts.interactive:
                self._aside(asyncio.to_thread(_sweep, parts.store))
            self._effects = Effects(
                session,
                parts.workspace,
                environ=parts.environ,
                own=(*parts.own, parts.store.root),
                spec=parts.settings.undo,
                redact=parts.redact,
                claims=parts.claims,
            )
        return self._effects

    async def items(self) -> tuple[UndoItem, ...]:
        """Give what calls of this conversation changed, newest first."""
        return await asyncio.to_thread(self.effects().desk.items)

    async def plan(self, record: str) -> UndoPlan:
        """Say what undoing would do now.

        Raises:
            KageError: there is no such record.
        """
        return await asyncio.to_thread(self.effects().desk.plan, record)

    def broken_claim(self, spec: ToolSpec) -> str:
        """Say what is known against the word of a tool, "" for nothing."""
        return "" if self._parts.claims is None else self._parts.claims.about(spec)

    async def undo(self, record: str) -> None:
        """Undo a call and tell everybody, the model too.

        Raises:
            KageError: it cannot be undone now; nothing was done then, or the error says what.
        """
        if self._busy():
            raise KageError("A run is on", fix="Interrupt it first (esc), then undo.")
        async with self._lock:
            session_id = self._conversation.session.id
            done = await asyncio.to_thread(self.effects().desk.carry_out, record)
        if self._conversation.session.id != session_id:
            return
        text = self._parts.redact(told(done))
        self._conversation.say(UserMessage(content=(Text(text),)))
        count = len(done.restored)
        self._publish(CallUndone(call_id=done.call_id, files=count, back=done.back))
        for step in done.left[:1]:
            rest = f" and {len(done.left) - 1} more" if len(done.left) > 1 else ""
            what = f"{step.change.shown}{rest} stays as the call left it"
            self._publish(Noticed(level=Level.WARNING, what=what, why=step.left))

    async def close(self) -> None:
        """End what looks."""
        self._let_go()
        if self._closing:
            await asyncio.wait(self._closing)

    def _let_go(self) -> None:
        effects, self._effects = self._effects, None
        if effects is not None:
            self._aside(effects.close())

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _sweep(store: SessionStore) -> None:
    """Remove what kages that were killed needed for looking."""
    for folder in store.left_behind(f"{FOLDER}/{SNAPSHOT}"):
        shutil.rmtree(folder, ignore_errors=True)


def told(done: Undone) -> str:
    """Say what was undone, as the conversation holds it."""
    lines = [f"  {_now(change)}  {change.shown}" for change in done.restored[:MAX_TOLD]]
    if len(done.restored) > MAX_TOLD:
        lines.append(f"  … and {len(done.restored) - MAX_TOLD} more")
    return "\n".join([f"I undid the file changes of this call: {done.record.title}", "", *lines])


def _now(change: Change) -> str:
    return {
        "added": "removed again",
        "deleted": "there again",
        "mode": "mode as before",
    }.get(change.verb, "as before")

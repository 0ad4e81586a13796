"""Fold every event of the engine into the transcript and the status; the one place that does."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol, assert_never

from kage.core import events as ev
from kage.core.attachments import shown as whole
from kage.core.attachments import typed
from kage.core.commands import Command
from kage.core.events import Event, RunEnd
from kage.core.ids import new_id
from kage.core.levels import Level
from kage.core.messages import AssistantMessage, Message, Stop, Thinking, ToolMessage, UserMessage
from kage.tui.controllers import rows
from kage.tui.controllers.approvals import Approvals
from kage.tui.controllers.inquiries import Inquiries
from kage.tui.controllers.servers import ServerCards
from kage.tui.controllers.signing import LoginSheets
from kage.tui.controllers.trusting import TrustSheets
from kage.tui.controllers.wishes import ServerWishes
from kage.tui.status import Status
from kage.tui.text import duration, shown
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.rows import Card, ToolRow

_NOTES = {
    Stop.LENGTH: "cut off: the reply reached the model's limit",
    Stop.INTERRUPTED: "interrupted",
    Stop.FAILED: "broken off",
    Stop.REFUSED: "the model declined to answer",
}
_ENDED = {
    RunEnd.FAILED: "The run failed",
    RunEnd.LIMIT: "The run reached a limit",
}


class Surface(Protocol):
    """What the folder needs of the chat screen."""

    def status_changed(self) -> None:
        """Redraw what shows the status."""
        ...

    def conversation_changed(self, *, started: bool, cards: bool) -> None:
        """Show the conversation, or the empty screen (beside ``cards``) while nothing was said."""
        ...

    def show_waiting(self, steering: tuple[str, ...], queued: tuple[str, ...]) -> None:
        """Show prompts that wait."""
        ...

    def remark(self, text: str, *, level: Level = Level.INFO, topic: str = "remark") -> None:
        """Show a passing line."""
        ...

    def drop_remark(self, *topics: str) -> None:
        """Take the passing line away when it is about one of ``topics``."""
        ...

    def restore_draft(self, text: str) -> None:
        """Put a prompt that was not answered back, unless there is a draft."""
        ...


class Folder:
    """Turns events into what is on the screen; holds no truth of its own."""

    def __init__(
        self,
        *,
        model: TranscriptModel,
        status: Status,
        approvals: Approvals,
        inquiries: Inquiries,
        trusting: TrustSheets,
        signing: LoginSheets,
        surface: Surface,
        unknown: str = "",
    ) -> None:
        self._model = model
        self._status = status
        self._approvals = approvals
        self._inquiries = inquiries
        self._trusting = trusting
        self._signing = signing
        self._surface = surface
        self._unknown = unknown or "/unknown"  # opens what can be done about such a call
        self._cards = ServerCards(model)
        self._wishes = ServerWishes(self._tell_of_server)
        self._reply = ""  # the block a reply streams into
        self._streamed_text: list[str] = []
        self._seen = False  # something of it is on the screen
        self._open_rows: set[str] = set()
        self._prompt = ""  # the last prompt, until something of the answer is complete
        self._started = False  # something was said
        self._has_cards = False

    def done(self) -> None:
        """Redraw what a batch of events changed around the conversation."""
        self._surface.status_changed()

    def asked(self, command: Command) -> None:
        """A command goes to the engine: what it will bring about is told when it is done."""
        self._wishes.asked(command, self._status.servers)

    def _tell_of_server(self, words: str) -> None:
        if words:
            self._surface.remark(words, topic="server")
        else:
            self._surface.drop_remark("server")

    def fold(self, event: Event) -> None:  # noqa: PLR0912, PLR0915  # one line per event
        """Fold one event."""
        match event:
            case ev.TextStreamed() | ev.ThinkingStreamed() | ev.CallStreamed():
                self._streamed(event)
            case ev.MessageAppended(message=message):
                self._surface.drop_remark("retry")
                self._append(message)
            case ev.SessionOpened():
                self._open(event)
            case ev.RunStarted():
                self._status.running_since = time.monotonic()
                self._status.activity = "thinking"
            case ev.TurnStarted():
                self._turn(event)
            case ev.ToolQueued() | ev.ToolStarted() | ev.ToolProgressed() | ev.ToolPrinted():
                self._tool(event)
            case ev.CallUndone(call_id=call_id, back=back):
                self._model.update_tool(call_id, undone=not back)
            case ev.ApprovalRequested(question=question):
                self._approvals.ask(question)
            case ev.ApprovalSettled(question_id=question_id):
                self._approvals.settle(question_id)
            case ev.RequestReceived(request=request):
                self._inquiries.ask(request)
            case ev.RequestSettled(request_id=request_id, action=action):
                self._inquiries.settle(request_id, action)
            case ev.RequestCompleted(server=name):
                self._inquiries.completed(name)
            case ev.TrustRequested(question=asked):
                self._trusting.ask(asked, asked=event.asked)
            case ev.TrustSettled(name=name, answer=answer):
                self._trusting.settle(name, answer)
            case ev.DefinitionsHeld() | ev.DefinitionSettled():
                pass  # ``Hearing`` gives them to their sheets
            case ev.LoginRequested() | ev.LoginSettled():
                self._sign_in(event)
            case ev.ModelRetried():
                self._retried(event)
            case ev.RunFinished():
                self._finished(event)
            case ev.ContextMeasured(tokens=tokens, window=window, cost=cost):
                self._status.tokens, self._status.window = tokens, window
                self._status.cost = cost
            case ev.PromptsWaiting(steering=steering, queued=queued):
                self._surface.show_waiting(steering, queued)
            case ev.ModelChanged() | ev.ModeChanged():
                self._chosen(event)
            case ev.ServerChanged(status=server):
                self._status.servers[server.name] = server
                self._wishes.changed(server)
                if self._cards.changed(server):
                    self._show_cards()
            case ev.ToolsSwapped():
                self._swapped(event)
            case ev.Noticed(level=level, what=what, why=why, fix=fix):
                if level is Level.ERROR:
                    self._wishes.failed()
                if not self._cards.covers(what, why):
                    self.card(level, what, why, fix)
            case _:
                assert_never(event)

    def card(self, level: Level, what: str, why: str = "", fix: str = "") -> None:
        """Put a card into the conversation; texts need not be safe."""
        why, *lines = why.split("\n") if why else [""]
        card = Card(level=level.value, title=what, why=why, lines=tuple(lines), fix=fix)
        self._model.add_card(new_id("card"), card)
        self._show_cards()

    def _show_cards(self) -> None:
        self._has_cards = True
        self._surface.conversation_changed(started=self._started, cards=True)

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._surface.conversation_changed(started=True, cards=self._has_cards)

    def _open(self, event: ev.SessionOpened) -> None:
        status = self._status
        if status.session_id:  # what was told before the first one opened stays
            self._model.clear()
            self._cards.forget()
            self._has_cards = False
        self._open_rows.clear()
        self._reply = self._prompt = ""
        self._started = False
        status.session_id, status.title = event.session_id, event.title
        status.tokens, status.cost = 0, None
        for message in event.messages:
            self._append(message)
        self._close_rows()
        self._prompt = ""
        if event.dropped:
            count = len(event.dropped)
            what = f"Not all of this conversation could be read: {count} part{'s' * (count > 1)}"
            self.card(Level.WARNING, what, "\n".join(event.dropped))
        self._surface.show_waiting((), ())
        self._surface.conversation_changed(started=self._started, cards=self._has_cards)

    def _append(self, message: Message) -> None:
        self._start()
        match message:
            case UserMessage():
                text = message.written or typed(message.content)
                self._prompt = text
                head = f"{message.written}\n" if message.written else ""
                self._model.add_user(message.id, head + whole(message.content))
                if not self._status.title:
                    self._status.title = shown(text, 120)
            case AssistantMessage():
                self._append_reply(message)
            case ToolMessage():
                self._append_result(message)
            case _:
                assert_never(message)

    def _append_reply(self, message: AssistantMessage) -> None:
        if message.stop not in (Stop.FAILED, Stop.INTERRUPTED):
            self._prompt = ""
        note = _NOTES.get(message.stop, "")
        thinking = "\n".join(part.text for part in message.parts if isinstance(part, Thinking))
        whole = message.id == self._reply and "".join(self._streamed_text) == message.text
        if message.id == self._reply:
            self._reply = ""
        if whole:
            self._model.end_reply(message.id, stop=message.stop.value, note=note)
        else:  # not streamed, or what stands in the session differs from what was streamed
            self._model.add_reply(
                message.id, message.text, message.model, thinking=thinking, note=note
            )
        for call in message.calls:
            self._add_row(call.id, rows.label(call, None), rows.detail(call, None), started=None)

    def _append_result(self, message: ToolMessage) -> None:
        if message.call_id not in self._open_rows:
            self._add_row(message.call_id, shown(message.name, 60), "", started=None)
        self._open_rows.discard(message.call_id)
        self._model.update_tool(message.call_id, **rows.result(message, unknown=self._unknown))

    def _add_row(self, call_id: str, label: str, detail: str, *, started: float | None) -> None:
        if call_id in self._open_rows:
            self._model.update_tool(call_id, label=label, detail=detail, started=started)
            return
        self._open_rows.add(call_id)
        row = ToolRow(label=label, detail=detail, state="waiting", started=started)
        self._model.add_tool(call_id, row)

    def _sign_in(self, event: ev.LoginRequested | ev.LoginSettled) -> None:
        self._tell_of_server("")
        if isinstance(event, ev.LoginRequested):
            self._signing.request(event)
        else:
            self._signing.settle(event)

    def _streamed(self, event: ev.TextStreamed | ev.ThinkingStreamed | ev.CallStreamed) -> None:
        self._surface.drop_remark("retry")
        if not isinstance(event, ev.CallStreamed):
            self._seen = self._seen or event.message_id == self._reply
        match event:
            case ev.TextStreamed(message_id=message_id, text=text):
                self._status.activity = "answering"
                self._streamed_text.append(text)
                self._model.stream_text(message_id, text)
            case ev.ThinkingStreamed(message_id=message_id, text=text):
                self._status.activity = "thinking"
                self._model.stream_thinking(message_id, text)
            case ev.CallStreamed(name=name, characters=characters):
                self._status.activity = f"writing a call of {shown(name, 24)}, {characters:,}"

    def _turn(self, event: ev.TurnStarted) -> None:
        self._start()
        self._surface.drop_remark("retry")
        self._drop_reply()
        self._reply, self._streamed_text, self._seen = event.message_id, [], False
        self._status.activity = "thinking" if event.turn == 1 else f"thinking, turn {event.turn}"
        self._model.begin_reply(event.message_id, event.model)

    def _tool(
        self, event: ev.ToolQueued | ev.ToolStarted | ev.ToolProgressed | ev.ToolPrinted
    ) -> None:
        match event:
            case ev.ToolQueued(call=call, spec=spec):
                self._start()
                label, detail = rows.label(call, spec), rows.detail(call, spec)
                self._add_row(call.id, label, detail, started=time.monotonic())
            case ev.ToolStarted(call_id=call_id, decision=decision):
                self._status.activity = "running a tool"
                now, warnings = time.monotonic(), decision.warnings
                self._model.update_tool(call_id, state="running", started=now, sent=warnings)
            case ev.ToolProgressed():
                self._model.update_tool(
                    event.call_id,
                    progress=event.progress,
                    total=event.total,
                    message=event.message,
                )
            case ev.ToolPrinted(call_id=call_id, text=text):
                self._model.append_output(call_id, text)

    def _retried(self, event: ev.ModelRetried) -> None:
        wait = f" in {duration(event.seconds)}" if event.seconds >= 1 else ""
        text = f"{event.reason}; try {event.attempt} of {event.attempts}{wait}"
        self._surface.remark(text, level=Level.WARNING, topic="retry")
        self._status.activity = "waiting for the model"
        if self._seen:  # what the person may be reading stays, and says why it ends here
            note = f"the stream broke off; trying again{wait}"
            self._model.end_reply(self._reply, stop=Stop.FAILED.value, note=note)
            self._reply = ""
            self._seen = False

    def _finished(self, event: ev.RunFinished) -> None:
        self._drop_reply()
        self._close_rows()
        self._status.running_since = None
        self._status.activity = ""
        self._approvals.clear()
        self._surface.drop_remark("retry", "interrupt")
        if event.end in _ENDED:
            level = Level.ERROR if event.end is RunEnd.FAILED else Level.WARNING
            self.card(level, event.what or _ENDED[event.end], event.why, event.fix)
        if event.end is RunEnd.FAILED and self._prompt:
            self._surface.restore_draft(self._prompt)
        self._prompt = ""

    def _drop_reply(self) -> None:
        """Take away a reply that was announced and never came."""
        if self._reply:
            self._model.remove(self._reply)
            self._reply = ""

    def _close_rows(self) -> None:
        for call_id in self._open_rows:
            self._model.update_tool(call_id, state="interrupted")
        self._open_rows.clear()

    def _chosen(self, event: ev.ModelChanged | ev.ModeChanged) -> None:
        if isinstance(event, ev.ModelChanged):
            changed = self._status.model not in ("", event.model)
            self._status.model, self._status.model_reason = event.model, event.reason
            reason = f" ({event.reason})" if event.reason else ""
            text = f"{event.model} answers from now on{reason}"
        else:
            changed = self._status.mode is not event.mode
            self._status.mode = event.mode
            text = f"The permission mode is {event.mode.value}"
        if changed:
            self._surface.remark(text, topic="chosen")

    def _swapped(self, event: ev.ToolsSwapped) -> None:
        words = [
            f"{len(names)} {verb}"
            for names, verb in (
                (event.added, "new"), (event.removed, "gone"), (event.changed, "changed"),
            )
            if names
        ]  # fmt: skip
        if words and self._started:
            self._surface.remark(f"{event.server}: tools {', '.join(words)}", topic="tools")


def merged(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring pieces of the same reply into one event."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        match (last, event):
            case (ev.TextStreamed(), ev.TextStreamed()) if last.message_id == event.message_id:
                out[-1] = ev.TextStreamed(message_id=event.message_id, text=last.text + event.text)
            case (ev.ThinkingStreamed(), ev.ThinkingStreamed()) if (
                last.message_id == event.message_id
            ):
                out[-1] = ev.ThinkingStreamed(
                    message_id=event.message_id, text=last.text + event.text
                )
            case _:
                out.append(event)
    return out

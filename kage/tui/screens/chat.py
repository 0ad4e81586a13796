"""The chat screen: the widgets of a conversation and how they are laid out."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Rule, Static

from kage.core.levels import Level
from kage.tui.keymap import ACTIONS, Context, Keymap
from kage.tui.status import Status
from kage.tui.transcript.calls import ToolBlock
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.view import TranscriptView
from kage.tui.widgets.bars import Header, StatusBar
from kage.tui.widgets.lines import Queue, Remark
from kage.tui.widgets.palette import Palette
from kage.tui.widgets.panel import ApprovalPanel
from kage.tui.widgets.prompt import PromptArea
from kage.tui.widgets.welcome import Welcome

TICK = 0.25  # seconds between two steps of the spinner, while a run is on


class ChatScreen(Screen[None]):
    """Shows a conversation; everything it decides is where the cursor stands."""

    AUTO_FOCUS = "PromptArea"

    class Act(Message):
        """A key of the chat was pressed."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, keymap: Keymap, status: Status, model: TranscriptModel) -> None:
        super().__init__()
        self._keymap = keymap
        self._status = status
        self._model = model
        self._ticker: Timer | None = None
        self._steering: tuple[str, ...] = ()
        self._queued: tuple[str, ...] = ()
        self.painted: Callable[[], None] = _nothing  # told when a question is on the screen

    def compose(self) -> ComposeResult:
        """Make the widgets, top to bottom."""
        keys = self._keymap
        named = ((keys.key("keys"), "keys"), ("/", "commands"), (keys.key("servers"), "servers"))
        hints = tuple(f"{key} {word}" for key, word in named if key)
        yield Header(self._status, id="header")
        yield Rule(id="header-rule", line_style="solid")
        with Vertical(id="body"):
            yield Welcome(self._status, id="welcome")
            yield TranscriptView(self._model)
        yield ApprovalPanel(_panel_keys(keys), id="panel")
        with Vertical(id="foot"):
            yield Queue(id="queue")
            yield Remark(id="remark")
            yield Palette(id="palette")
            yield Rule(id="prompt-rule", line_style="solid")
            with Horizontal(id="prompt-row"):
                yield Static(">", id="prompt-mark", markup=False)
                yield PromptArea(keys, id="prompt")
            yield StatusBar(self._status, hints, id="status")

    # the parts

    @property
    def keymap(self) -> Keymap:
        """What each key does."""
        return self._keymap

    @property
    def prompt(self) -> PromptArea:
        """The prompt."""
        return self.query_one(PromptArea)

    @property
    def panel(self) -> ApprovalPanel:
        """The approval panel."""
        return self.query_one(ApprovalPanel)

    @property
    def palette(self) -> Palette:
        """The list over the prompt."""
        return self.query_one(Palette)

    @property
    def transcript(self) -> TranscriptView:
        """The conversation."""
        return self.query_one(TranscriptView)

    @property
    def remark_line(self) -> Remark:
        """The passing line."""
        return self.query_one(Remark)

    # what the folder asks for

    def status_changed(self) -> None:
        """Redraw what shows the status, and keep the spinner going only while a run is on."""
        for widget in (*self.query(Header), *self.query(StatusBar), *self.query(Welcome)):
            widget.refresh()
        if self._status.running and self._ticker is None:
            self._ticker = self.set_interval(TICK, self._tick)
        elif not self._status.running and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None

    @property
    def ticking(self) -> bool:
        """Whether the spinner's timer runs."""
        return self._ticker is not None

    def _tick(self) -> None:
        self.query_one(StatusBar).refresh()

    def conversation_changed(self, *, started: bool, cards: bool) -> None:
        """Give the empty screen the room the conversation does not need yet."""
        welcome = self.query_one(Welcome)
        welcome.display = not started
        welcome.set_class(cards and not started, "-beside-cards")
        self.transcript.display = started or cards

    def show_waiting(self, steering: tuple[str, ...], queued: tuple[str, ...]) -> None:
        """Show prompts that wait."""
        self._steering, self._queued = steering, queued
        self.query_one(Queue).show(steering, queued)

    @property
    def prompts_wait(self) -> bool:
        """Whether a prompt was sent and is not in the conversation yet."""
        return bool(self._steering or self._queued)

    def show_early(self, count: int) -> None:
        """Show that ``count`` prompts wait for the engine."""
        self.query_one(Queue).show(self._steering, self._queued, count)

    def remark(self, text: str, *, level: Level = Level.INFO, topic: str = "remark") -> None:
        """Show a passing line."""
        self.remark_line.say(text, level=level, topic=topic)

    def drop_remark(self, *topics: str) -> None:
        """Take the passing line away when it is about one of ``topics``."""
        self.remark_line.drop(*topics)

    def restore_draft(self, text: str) -> None:
        """Put a prompt that was not answered back, unless there is a draft."""
        if not self.prompt.text:
            self.prompt.set_draft(text)

    def fold_last_call(self) -> None:
        """Unfold or fold the last tool call."""
        for block in reversed(self._model.blocks):
            if isinstance(block, ToolBlock) and block.foldable:
                self._model.toggle_fold(block.id)
                return

    def fold_all(self, *, unfolded: bool) -> None:
        """Unfold or fold everything."""
        self._model.fold_all(unfolded)

    def settle_focus(self) -> None:
        """Put the cursor where typing goes, when what had the focus is gone."""
        if self.is_current and not self.panel.display and not self.prompt.has_focus:
            self.prompt.focus()

    # keys

    def on_key(self, event: events.Key) -> None:
        """Turn what no widget took into an action of the chat."""
        action = self._keymap.find(Context.CHAT, event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            self.post_message(self.Act(action))
        elif event.is_printable and event.character and not self.prompt.has_focus:
            event.stop()
            self.prompt.type_in(event.character)

    def on_screen_resume(self) -> None:
        """Start the quiet period again: the panel was hidden by another screen."""
        self.painted()


def _nothing() -> None:
    pass


def _panel_keys(keymap: Keymap) -> dict[str, str]:
    return {a.id: keymap.key(a.id) for a in ACTIONS if a.context is Context.PANEL}

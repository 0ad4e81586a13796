"""What the engine tells, on its way to the screen; loaded when there is something to hear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from kage.core.events import DefinitionSettled, DefinitionsHeld, Event
from kage.tui.controllers.approvals import Approvals
from kage.tui.controllers.events import Folder, Surface, merged
from kage.tui.controllers.inquiries import Inquiries
from kage.tui.controllers.pinning import PinSheets
from kage.tui.controllers.signing import LoginSheets
from kage.tui.controllers.stage import Backstage
from kage.tui.controllers.trusting import TrustSheets
from kage.tui.status import Status
from kage.tui.transcript.model import TranscriptModel


class Hearing:
    """The folder of events, and the sheets of what waits for the person.

    Args:
        backstage: What the sheets are put up with.
        model: The conversation.
        status: What is around it.
        approvals: The questions about calls.
        surface: The chat screen.
        busy: Says whether the person is in the middle of something.
        guard: Reports what goes wrong inside it.
    """

    def __init__(
        self,
        backstage: Backstage,
        *,
        model: TranscriptModel,
        status: Status,
        approvals: Approvals,
        surface: Surface,
        busy: Callable[[], bool],
        guard: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._guard = guard
        self.inquiries = Inquiries(backstage)
        self.trusting = TrustSheets(backstage, busy=busy)
        self.signing = LoginSheets(backstage)
        self.folder = Folder(
            model=model, status=status, approvals=approvals, inquiries=self.inquiries,
            trusting=self.trusting, signing=self.signing, surface=surface,
            unknown=backstage.keymap.key("unknown"),
        )  # fmt: skip

        self.pinning = PinSheets(backstage, card=self.folder.card)

    def hear(self, batch: Iterable[Event]) -> None:
        """Fold a batch of events; one that fails does not take the others with it."""
        for event in merged(batch):
            with self._guard("showing what happened"):
                if isinstance(event, DefinitionsHeld | DefinitionSettled):
                    self.pinning.hear(event)
                self.folder.fold(event)
        self.folder.done()

    def surface(self) -> None:
        """Show the next sheet that waits, now that the chat is in view."""
        self.inquiries.surface()
        self.trusting.surface()

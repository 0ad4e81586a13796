"""One request kage itself follows through the tap: what was written, what came back, progress."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

Progress = Callable[[float, float | None, str], None]

_GAP = 0.05  # seconds between two reports of progress; more often shows nothing new


class Written(Enum):
    """How much of a request can have reached the server; decides its outcome."""

    NO = "no"  # nothing
    BEGUN = "begun"  # the write was started and never confirmed
    YES = "yes"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """What a request carries when it is sent again with the answers to what it asked back."""

    of: Exchange
    state: str | None  # exactly as it came
    responses: Mapping[str, Any] | None

    def params(self) -> dict[str, Any]:
        """Give what is added to the parameters of the request."""
        said = {"inputResponses": self.responses, "requestState": self.state}
        return {key: value for key, value in said.items() if value is not None}

    def sealed(self, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """Give what the decision about the answers covers, bound to the one they follow."""
        return {"follows": self.of.decision, "arguments": arguments or {}, **self.params()}


class Exchange:
    """A request from kage: the tap fills it in on the way out and on the way back.

    The SDK's own reading of a result fails as a whole on one odd part, so the raw result stays
    here and the SDK gets a stand-in.
    """

    def __init__(
        self, *, progress: Progress | None = None, beat: Callable[[], None] | None = None
    ) -> None:
        self.token = secrets.token_hex(8)  # the progress token, not to be guessed
        self.written = Written.NO
        self.result: Mapping[str, Any] | None = None
        self.error: tuple[int, str] | None = None  # JSON-RPC code and message of the server
        self.error_data: Any = None  # what the server sent along, unwashed
        self.decision = ""  # the gate's decision bound to a tools/call
        self.call: tuple[str, str] | None = None  # name and digest of what a tools/call carried
        self.follow: FollowUp | None = None
        self.followed = False
        self.answered: asyncio.Future[None] | None = None  # set where the SDK does not wait for it
        self._progress = progress
        self._relay = _Relay(progress) if progress is not None else None
        self._beat = beat
        self._over = False  # nobody waits any more
        self._endings: list[Callable[[], None]] = []

    def again(self, follow: FollowUp) -> Exchange:
        """Make the exchange of a follow-up, whose progress counts like this one's."""
        made = Exchange(progress=self._progress, beat=self._beat)
        made.follow = follow
        return made

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the next request of this task the one that is followed."""
        mark = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(mark)
            if self._relay is not None:
                self._relay.close()
            self._over = True
            for ending in self._endings:
                ending()

    @property
    def over(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._over

    def begin(self) -> bool:
        """Take note that bytes of it go out now; False: nobody waits, nothing may be sent.

        For a transport that does so later than it took the message.
        """
        if not self._over:
            self.written = Written.BEGUN
        return not self._over

    def on_over(self, ending: Callable[[], None]) -> None:
        """Have ``ending`` called once nobody waits for the answer any more."""
        if self._over:
            ending()
        else:
            self._endings.append(ending)

    def beat(self) -> None:
        """Take a sign of life: the request is well though its server says nothing."""
        if self._beat is not None:
            self._beat()

    def progressed(self, progress: float, total: float | None, message: str) -> None:
        """Pass on how far the request is; a flood is thinned, its last report arrives."""
        self.beat()
        if self._relay is not None:
            self._relay.push(progress, total, message)


_CURRENT: ContextVar[Exchange | None] = ContextVar("kage_exchange", default=None)


def current_exchange() -> Exchange | None:
    """Give the exchange the running task sends for; None for what the SDK sends by itself."""
    return _CURRENT.get()


class _Relay:
    def __init__(self, target: Progress) -> None:
        self._target = target
        self._last = 0.0
        self._waiting: tuple[float, float | None, str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def push(self, progress: float, total: float | None, message: str) -> None:
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        due = self._last + _GAP - loop.time()
        if due <= 0 and self._timer is None:
            self._last = loop.time()
            self._target(progress, total, message)
            return
        self._waiting = (progress, total, message)
        if self._timer is None:
            self._timer = loop.call_later(max(due, 0.0), self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._waiting is not None and not self._closed:
            waiting, self._waiting = self._waiting, None
            self._last = asyncio.get_running_loop().time()
            self._target(*waiting)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._closed = True

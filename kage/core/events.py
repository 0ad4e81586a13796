"""What happened, as the engine tells every front end; past tense, plain data.

Durable events carry something that is on disk already; live events (deltas, progress) are gone
once shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kage.core.gate import Decision, Mode, Question, Reply
    from kage.core.levels import Level
    from kage.core.messages import Message, ToolCall
    from kage.core.pins import HeldChange, PinAnswer
    from kage.core.requests import Action, ServerRequest
    from kage.core.servers import ServerState, ServerStatus
    from kage.core.tools import ToolSpec
    from kage.core.trust import TrustAnswer, TrustQuestion
    from kage.core.usage import Usage


class RunEnd(StrEnum):
    """How a run ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A conversation is open: a new one, or one read from disk with its messages."""

    session_id: str
    title: str
    messages: tuple[Message, ...] = ()
    dropped: tuple[str, ...] = ()  # what could not be read, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A prompt is being worked on."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """A request goes to the model; ``message_id`` is the reply that will stream."""

    run_id: str
    turn: int  # 1-based
    message_id: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStreamed:
    """Live: more text of the reply."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingStreamed:
    """Live: more of the model's reasoning."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStreamed:
    """Live: the model is writing a call; ``characters`` of its arguments have arrived."""

    message_id: str
    call_id: str
    name: str
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAppended:
    """Durable: a message stands in the session file."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A call waits for the person."""

    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettled:
    """A question is answered, or withdrawn (``reply`` None); its panel goes."""

    question_id: str
    reply: Reply | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived:
    """A server asks the person something."""

    request: ServerRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettled:
    """A server's question is answered, or withdrawn (``action`` None); its form goes."""

    request_id: str
    action: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCompleted:
    """What the person did on a server's page has reached the server, as it says."""

    server: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQueued:
    """A call of the reply was taken up; it is being judged."""

    call: ToolCall
    spec: ToolSpec | None  # None: there is no such tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """A call was let through and runs."""

    call_id: str
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgressed:
    """Live: how far a call is."""

    call_id: str
    progress: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPrinted:
    """Live: output of a running call."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUndone:
    """What a call changed was taken back; ``files`` stand as they stood before.

    ``back``: that was undone in turn, and the changes of the call are there again.
    """

    call_id: str
    files: int
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """The model's side failed in a way worth another try."""

    attempt: int
    attempts: int
    seconds: float  # until the next try
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The run is over; ``what``, ``why`` and ``fix`` are set unless it is done."""

    run_id: str
    end: RunEnd
    usage: Usage
    cost: float | None  # US dollars, None when no price is known
    turns: int
    refused: int  # calls the gate refused
    seconds: float
    what: str = ""
    why: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMeasured:
    """How full the window is, and what the session cost so far."""

    tokens: int
    window: int | None
    cost: float | None  # US dollars, None when no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptsWaiting:
    """Prompts that join the next turn, and prompts that start the next run."""

    steering: tuple[str, ...]
    queued: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChanged:
    """Another model answers from now on; ``reason`` says who chose it."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChanged:
    """The permission mode is another."""

    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanged:
    """A server changed its state, or what it offers."""

    status: ServerStatus
    previous: ServerState | None  # None: first heard of


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequested:
    """A sign-in waits for the person to open a page; nothing was opened."""

    server: str
    url: str
    host: str  # of ``url``, in ASCII: look-alike letters show


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettled:
    """A sign-in is over; when it did not work a notice says why, unless it was given up."""

    server: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSwapped:
    """The tool list changed at a boundary; exposed names."""

    server: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRequested:
    """An entry waits for a person to say whether it may start; ``asked``: they asked to see it."""

    question: TrustQuestion
    asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettled:
    """A person answered about an entry; its question goes."""

    name: str
    answer: TrustAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionsHeld:
    """Definitions of one server wait for a person; ``asked``: they asked to see them."""

    changes: tuple[HeldChange, ...]
    asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionSettled:
    """A person answered about a definition; its question goes."""

    server: str
    name: str  # on the wire; "" for the server's instructions
    answer: PinAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """Something the person should know that belongs to no call and no server state."""

    level: Level
    what: str
    why: str = ""
    fix: str = ""


Event = (
    SessionOpened
    | RunStarted
    | TurnStarted
    | TextStreamed
    | ThinkingStreamed
    | CallStreamed
    | MessageAppended
    | ApprovalRequested
    | ApprovalSettled
    | RequestReceived
    | RequestSettled
    | RequestCompleted
    | ToolQueued
    | ToolStarted
    | ToolProgressed
    | ToolPrinted
    | CallUndone
    | ModelRetried
    | RunFinished
    | ContextMeasured
    | PromptsWaiting
    | ModelChanged
    | ModeChanged
    | ServerChanged
    | LoginRequested
    | LoginSettled
    | ToolsSwapped
    | TrustRequested
    | TrustSettled
    | DefinitionsHeld
    | DefinitionSettled
    | Noticed
)

Publish = Callable[[Event], None]

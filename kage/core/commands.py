"""What a front end can ask of the engine; each command is plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kage.core.content import Content
    from kage.core.gate import Mode, Reply
    from kage.core.pins import HeldChange, PinAnswer
    from kage.core.requests import RequestReply
    from kage.core.trust import TrustAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitPrompt:
    """Send what the person typed; while a run is on it joins at the next turn, or waits.

    ``queue`` makes it start the next run instead of joining this one. Mentions in the first part
    are attached when it is sent, unless ``typed`` is set: then that is what the person wrote, and
    the content is what came of it.
    """

    content: tuple[Content, ...]
    queue: bool = False
    typed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """Stop the run; the partial reply is kept, servers stay connected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerApproval:
    """Answer an open question."""

    question_id: str
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRequest:
    """Answer what a server asked."""

    request_id: str
    reply: RequestReply


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLogLevel:
    """Choose what a server tells of itself for this session; "" for nothing."""

    name: str
    level: str  # "debug" to "emergency"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShell:
    """Run the person's own shell line (``!``); the output joins the conversation."""

    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetModel:
    """Use another model from the next turn on."""

    model: str  # "provider:name"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMode:
    """Change the permission mode of this session."""

    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartServer:
    """Restart a server make-before-break, at the next boundary.

    ``fresh`` reads the configuration first; else it is started from the entry it has.
    """

    name: str
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadConfig:
    """Read the configuration again and put in force what can be while kage runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableServer:
    """Start or stop a server for this session; the config file stays as it is."""

    name: str
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTrust:
    """Show what an entry would start, to be trusted or not; "" means every one that waits."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTrust:
    """Say whether an entry may start; counts only for exactly the entry that was shown."""

    name: str
    entry_hash: str
    answer: TrustAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPins:
    """Show what is held of a server because it changed; "" means of every server."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPin:
    """Say what becomes of a definition; counts only for exactly the one that was shown."""

    change: HeldChange
    answer: PinAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginServer:
    """Sign in to a server; the page to open comes as an event."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLogin:
    """Hand over the address the sign-in page ended at, where the browser could not."""

    name: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelLogin:
    """Give a sign-in up that waits for the person."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutServer:
    """Forget the sign-in at a server."""

    name: str


SignInCommand = LoginServer | AnswerLogin | CancelLogin | LogoutServer


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoCall:
    """Take back what a call did to files, while no run is on."""

    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatCall:
    """Make a call whose outcome is unknown once more, while no run is on: a new decision."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """Start a fresh conversation; the old one stays on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSession:
    """Go on with a session from disk."""

    session_id: str


Command = (
    SubmitPrompt
    | Interrupt
    | AnswerApproval
    | AnswerRequest
    | SetLogLevel
    | RunShell
    | SetModel
    | SetMode
    | RestartServer
    | ReloadConfig
    | EnableServer
    | AskTrust
    | AnswerTrust
    | AskPins
    | AnswerPin
    | SignInCommand
    | UndoCall
    | RepeatCall
    | NewSession
    | ResumeSession
)

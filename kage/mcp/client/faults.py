"""Say what went wrong with a server in a sentence a person can act on."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence

from kage.core.errors import KageError, ServerError
from kage.core.sanitise import clip
from kage.core.servers import Fault, ServerState, Stage

LAST_LINES = 20  # of stderr quoted in a failure
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_WRONG_VERSION = -32022
_CLOSED = -32000
_MAX_CAUSE = 500  # characters of an exception's text


class StartFailed(Exception):
    """A connection did not come up.

    ``hopeless``: another try ends the same way. ``on_probe``: the process ended between the
    question for its era and its first answer, so it may be one that only knows ``initialize``.
    ``needs_auth``: a person has to sign in first. ``try_sse``: the address answered as one does
    that speaks only the older HTTP transport.
    """

    def __init__(
        self,
        fault: Fault,
        *,
        hopeless: bool = False,
        on_probe: bool = False,
        needs_auth: bool = False,
        try_sse: bool = False,
    ) -> None:
        super().__init__(fault.what)
        self.fault = fault
        self.hopeless = hopeless
        self.on_probe = on_probe
        self.needs_auth = needs_auth
        self.try_sse = try_sse


def first_cause(error: BaseException) -> BaseException:
    """Give the first real error inside nested exception groups.

    A cancellation counts only when there is nothing else: it is what an error does to the rest.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [first_cause(inner) for inner in error.exceptions]
    real = [leaf for leaf in leaves if isinstance(leaf, Exception)]
    return (real or leaves)[0]


def reason(error: BaseException) -> str:
    """Give the text of an exception without its class, clipped; never empty."""
    cause = first_cause(error)
    if isinstance(cause, KageError):
        return clip(str(cause), _MAX_CAUSE)
    if isinstance(cause, OSError) and cause.strerror:
        place = f": {cause.filename}" if cause.filename else ""
        return clip(f"{cause.strerror}{place}", _MAX_CAUSE)
    if isinstance(cause, ValueError) and (misfits := getattr(cause, "errors", None)) is not None:
        first = misfits()[0]  # pydantic's, whose text is for programmers
        place = ".".join(str(step) for step in first["loc"])
        return clip(f"{place}: {first['msg']}", _MAX_CAUSE)
    lines = str(cause).strip().splitlines()
    return clip(lines[0] if lines else "it gave no reason", _MAX_CAUSE)


def ended(code: int | None) -> str:
    """Put an exit code into words: "exit code 3", "signal SIGKILL"."""
    if code is None:
        return "no exit code"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def to_error(server: str, fault: Fault) -> ServerError:
    """Make the exception that carries ``fault``."""
    return ServerError(
        fault.what,
        server=server,
        stage=fault.stage.value,
        why=fault.why,
        fix=fault.fix,
        exit_code=fault.exit_code,
        stderr=fault.stderr,
    )


def to_fault(error: ServerError, *, stage: Stage = Stage.SPAWN) -> Fault:
    """Read a fault back; ``stage`` stands in for one nobody knows."""
    known = {item.value for item in Stage}
    return Fault(
        stage=Stage(error.stage) if error.stage in known else stage,
        what=error.what,
        why=error.why,
        fix=error.fix,
        exit_code=error.exit_code,
        stderr=error.stderr,
    )


def exited(
    server: str,
    stage: Stage,
    argv: Sequence[str],
    *,
    code: int | None,
    stderr: tuple[str, ...],
    piped: bool,
) -> Fault:
    """The process ended while it was needed; at the start the usual cause is a missing package."""
    when = {
        Stage.HANDSHAKE: "before it answered",
        Stage.LIST: "while it listed its tools",
        Stage.SPAWN: "as soon as it started",
    }.get(stage, "")
    what = f"The server {server} ended {when}".rstrip() + f" ({ended(code)})"
    last = next((line for line in reversed(stderr) if line.strip()), "")
    if not piped:
        why = "see its output above"
    else:
        why = f"it said: {clip(last.strip(), 300)}" if last else "it said nothing on stderr"
    line = clip(shlex.join(argv), 200)
    if stage in (Stage.SPAWN, Stage.HANDSHAKE, Stage.LIST):
        fix = f"The launcher was found, so look at what it starts: run {line} in a shell"
    else:
        fix = f"Restart it: /mcp restart {server} in the chat"
    return Fault(stage=stage, what=what, why=why, fix=fix, exit_code=code, stderr=stderr)


def silent(
    server: str, stage: Stage, seconds: float, *, stderr: tuple[str, ...] = (), url: str = ""
) -> Fault:
    """The server is there but did not answer in time; ``url``: where, when it is no process."""
    asked = {
        Stage.HANDSHAKE: "never answered the handshake",
        Stage.LIST: "did not finish listing its tools",
        Stage.SPAWN: "did not start",
        Stage.PING: "stopped answering",
    }.get(stage, "did not answer")
    speaks = "the command is an MCP server that speaks over stdin and stdout"
    fix = (
        f"Check that {'url leads to an MCP server' if url else speaks}; if it is only slow, "
        f"raise timeout for [mcp.servers.{server}]"
    )
    if stage is Stage.PING:
        fix = f"Restart it: /mcp restart {server} in the chat"
    return Fault(
        stage=stage,
        what=f"The server {server} {asked} within {seconds:g} s",
        fix=fix,
        stderr=stderr,
    )


def misspoke(server: str, stage: Stage, error: BaseException, *, stderr: tuple[str, ...]) -> Fault:
    """The server answered, but not with what the protocol asks for."""
    doing = "list its tools" if stage is Stage.LIST else "agree on the protocol"
    return Fault(
        stage=stage,
        what=f"The server {server} could not {doing}",
        why=reason(error),
        fix="Check that it is an MCP server of a revision kage speaks, and its version",
        stderr=stderr,
    )


def is_version_clash(error: BaseException) -> bool:
    """Say whether the server and kage share no revision, which no further try changes."""
    code = getattr(getattr(error, "error", None), "code", None)
    return code == _WRONG_VERSION or "nsupported protocol version" in str(error)


def is_closed(error: BaseException) -> bool:
    """Say whether an error only tells that the connection ended, not why."""
    return getattr(getattr(error, "error", None), "code", None) == _CLOSED


def version_clash(server: str, error: BaseException, *, stderr: tuple[str, ...]) -> Fault:
    """The server answered, in a revision kage does not speak."""
    return Fault(
        stage=Stage.HANDSHAKE,
        what=f"The server {server} and kage share no protocol revision",
        why=f"{reason(error)}; kage speaks {', '.join(REVISIONS)}",
        fix="Update the server, or check the protocol setting of its entry",
        stderr=stderr,
    )


def down(server: str, state: ServerState) -> Fault:
    """Nothing answers for the server, and nobody said why."""
    return Fault(
        stage=Stage.CALL,
        what=f"The server {server} is {state.value.replace('_', ' ')}",
        fix=f"Start it: /mcp restart {server} in the chat",
    )


def surprise(server: str, error: Exception) -> Fault:
    """A mistake of kage's own kept the server from starting."""
    return Fault(
        stage=Stage.SPAWN,
        what=f"The server {server} could not be started",
        why=reason(error),
        fix=f"Try /mcp restart {server}; if it stays, this is a mistake in kage worth reporting",
    )

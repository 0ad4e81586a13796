"""One card per fault of a server: retries rewrite it, a recovery ends it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kage.core.servers import Fault, ServerState, ServerStatus
from kage.tui.text import of_server
from kage.tui.transcript.model import TranscriptModel
from kage.tui.transcript.rows import Card

QUOTED = 8  # stderr lines on a card; all of them are in the servers screen
SAID = "it said: "
_PARENTHESIS = re.compile(r"\(([^()]{24})[^()]{8,}\)")  # a whole PATH, say; /mcp shows all of it
RETRYING = " · trying again,"
_RESTING = (ServerState.DISABLED, ServerState.STOPPED, ServerState.IDLE)
_QUIET = (ServerState.DISABLED, ServerState.STOPPED)


@dataclass(slots=True)
class _Trouble:
    """What a server is in until it connects again; ``fault`` is the one told last."""

    block_id: str
    card: Card
    fault: Fault
    repeated: bool = False  # a notice said the same and was left out


class ServerCards:
    """Keeps the cards of failing servers in the conversation."""

    def __init__(self, model: TranscriptModel) -> None:
        self._model = model
        self._open: dict[str, _Trouble] = {}
        self._left_out: dict[str, tuple[str, ...]] = {}
        self._count = 0

    def forget(self) -> None:
        """The conversation was cleared, and every card with it."""
        self._open.clear()

    def changed(self, server: ServerStatus) -> bool:
        """Tell of a server's new state, where it needs words; True when a card was put down."""
        told = False
        fault = server.fault
        if fault is None:
            self._well(server)
        elif server.state not in _QUIET:
            told = self._tell_fault(server, fault)
        if server.state is ServerState.CONNECTED:
            told = self._tell_left_out(server) or told
        return told

    def covers(self, what: str, why: str) -> bool:
        """Say whether a notice repeats a fault whose card stands; once for each card.

        A restart a person asked for fails twice: as the server's state and as the command's error.
        """
        for trouble in self._open.values():
            if not trouble.repeated and (trouble.fault.what, trouble.fault.why) == (what, why):
                trouble.repeated = True
                return True
        return False

    def _well(self, server: ServerStatus) -> None:
        """Nothing is wrong any more, or it is tried anew: the next fault gets its own card."""
        asked_again = server.state is ServerState.CONNECTING and not server.attempt
        if server.state is ServerState.CONNECTED or server.state in _RESTING or asked_again:
            trouble = self._open.pop(server.name, None)
            if trouble is not None and server.state is ServerState.CONNECTED:
                why = trouble.card.why.split(RETRYING)[0] + " · it is connected again"
                self._model.add_card(trouble.block_id, replace(trouble.card, level="info", why=why))

    def _tell_fault(self, server: ServerStatus, fault: Fault) -> bool:
        trouble = self._open.get(server.name)
        if server.state is ServerState.CONNECTED:
            # a restart failed and the old one serves on: the same fault stays in its status, and
            # only another object is another fault
            if trouble is not None and trouble.fault is fault:
                return False
            trouble = None
        card = _card(server, fault)
        if trouble is not None and trouble.card == card:
            return False
        if trouble is None:
            self._count += 1
            trouble = _Trouble(f"server:{server.name}:{self._count}", card, fault)
            self._open[server.name] = trouble
        trouble.card, trouble.fault, trouble.repeated = card, fault, False
        self._model.add_card(trouble.block_id, card)
        return True

    def _tell_left_out(self, server: ServerStatus) -> bool:
        if server.dropped == self._left_out.get(server.name, ()):
            return False
        self._left_out[server.name] = server.dropped
        if not server.dropped:
            return False
        self._count += 1
        number = len(server.dropped)
        title = f"{server.name}: {number} tool{'s are' if number > 1 else ' is'} left out"
        card = Card(level="warning", title=title, lines=server.dropped)
        self._model.add_card(f"dropped:{server.name}:{self._count}", card)
        return True


def _card(server: ServerStatus, fault: Fault) -> Card:
    failed = server.state is ServerState.FAILED
    facts = [f"stage: {fault.stage.value}"]
    ended = exit_words(fault.exit_code)
    if ended and ended not in f"{fault.what} {fault.why}":
        facts.append(ended)
    if server.state is ServerState.CONNECTING and server.attempt:
        facts.append(f"{RETRYING.strip(' ·')} {server.attempt} of {server.attempts}")
    why = "" if _quoted(fault) else _PARENTHESIS.sub(r"(\1…)", fault.why)
    fix = fault.fix
    if failed and not fix:
        fix = f"/mcp restart {server.name} tries again, /mcp log {server.name} shows its output"
    return Card(
        level="error" if failed else "warning",
        title=f"{server.name}: {of_server(server.name, fault.what)}",
        why="\n".join(filter(None, (why, " · ".join(facts)))),
        lines=fault.stderr[-QUOTED:],
        fix=fix,
    )


def _quoted(fault: Fault) -> bool:
    """Say whether the reason is a stderr line, which the card quotes anyway."""
    said = fault.why.removeprefix(SAID)
    return said != fault.why and any(line.strip() == said for line in fault.stderr[-QUOTED:])


def exit_words(code: int | None) -> str:
    """Say how a process ended: ``exit code 2``, ``killed by signal 9``; "" when not known."""
    if code is None:
        return ""
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"

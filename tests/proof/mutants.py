"""A pytest plugin that breaks one safeguard: ``-p tests.proof.mutants --mutant NAME``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kage.agent.calls import Calls
from kage.core.canonical import digest
from kage.core.gate import CallRequest, Decision, Verdict, Who
from kage.core.ids import new_id
from kage.mcp.client.wire import tap
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.gate import Gate
from kage.permissions.seal import SealBook


def _allowed(request: CallRequest) -> Decision:
    return Decision(
        id=new_id("d"),
        verdict=Verdict.ALLOW,
        who=Who.DEFAULT,
        rule="",
        reason="nobody was asked",
        digest=digest(request.arguments),
    )


def gate_allows(patch: pytest.MonkeyPatch) -> None:
    """The gate lets everything through, with a seal and a record, and asks nobody."""

    async def decide(self: Gate, request: CallRequest, **_: Any) -> Decision:
        return await self._let(request, _allowed(request), "")

    patch.setattr(Gate, "decide", decide)


def gate_skipped(patch: pytest.MonkeyPatch) -> None:
    """The loop asks no gate; the seals are opened all the same."""

    class NoGate:
        def __init__(self, gate: Gate) -> None:
            self.gate = gate

        async def decide(self, request: CallRequest, **_: Any) -> Decision:
            decision = _allowed(request)
            if (origin := request.tool.server) is not None:
                book: SealBook = self.gate._seals
                book.open(origin.connection, origin.original, decision.digest, decision.id)
            return decision

        async def finish(self, *_: Any, **__: Any) -> None:
            return

    run = Calls.run

    async def unjudged(self: Calls, *words: Any) -> None:
        self.gate = NoGate(self.gate)  # type: ignore[arg-type]  # the real one is inside
        await run(self, *words)

    patch.setattr(Calls, "run", unjudged)


def seal_open(patch: pytest.MonkeyPatch) -> None:
    """The book of seals says yes to whatever the tap asks."""
    patch.setattr(SealBook, "bind", lambda self, *_: "d0")


def seal_reused(patch: pytest.MonkeyPatch) -> None:
    """A seal is not used up by the call it covers."""
    bind = SealBook.bind

    def keep(self: SealBook, connection: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        decision = bind(self, connection, tool, arguments)
        if decision is not None:
            self.open(connection, tool, digest(arguments), decision)
        return decision

    patch.setattr(SealBook, "bind", keep)


def tap_unsealed(patch: pytest.MonkeyPatch) -> None:
    """The tap writes calls without looking for a seal."""
    patch.setattr(tap, "sealed", lambda seals, line, params, follow=None: (dict(params), "d0"))


def log_silent(patch: pytest.MonkeyPatch) -> None:
    """Nothing is written into the decision log."""

    async def nothing(self: DecisionLog, *_: Any, **__: Any) -> bool:
        return True

    patch.setattr(DecisionLog, "append", lambda self, *_, **__: True)
    patch.setattr(DecisionLog, "write", nothing)


def log_halved(patch: pytest.MonkeyPatch) -> None:
    """How calls ended is not recorded."""
    append, write = DecisionLog.append, DecisionLog.write

    def decisions(self: DecisionLog, kind: str, *words: Any, **named: Any) -> bool:
        return kind == "outcome" or append(self, kind, *words, **named)

    async def written(self: DecisionLog, kind: str, *words: Any, **named: Any) -> bool:
        return kind == "outcome" or await write(self, kind, *words, **named)

    patch.setattr(DecisionLog, "append", decisions)
    patch.setattr(DecisionLog, "write", written)


MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    made.__name__: made
    for made in (
        gate_allows, gate_skipped, seal_open, seal_reused, tap_unsealed, log_silent, log_halved,
    )
}  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--mutant``."""
    parser.addoption("--mutant", choices=["none", *MUTANTS], default="none")


def pytest_configure(config: pytest.Config) -> None:
    """Break the safeguard for the whole run."""
    chosen = config.getoption("--mutant")
    if chosen == "none":
        return
    patch = pytest.MonkeyPatch()
    MUTANTS[chosen](patch)
    config.add_cleanup(patch.undo)

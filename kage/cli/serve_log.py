"""Write what other agents had kage's served tools do into the same decision log as everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kage.core.ids import new_id
from kage.core.messages import Outcome
from kage.core.tools import Risk, ToolSpec
from kage.mcp.server.service import Ruling

if TYPE_CHECKING:
    from kage.core.gate import CallRequest, Decision
    from kage.permissions.decisions.log import DecisionLog


class ServedLog:
    """The ``CallLog`` of ``kage mcp serve``.

    Reads inside the root that nothing refused have no effect and leave no record; the log is
    loaded with the first call that does.
    """

    def __init__(self, directory: Path, root: Path) -> None:
        self._directory = directory
        self._root = root
        self._session = new_id("served")
        self._log: DecisionLog | None = None
        self._open: dict[str, tuple[CallRequest, Decision]] = {}

    def decided(
        self, call_id: str, spec: ToolSpec, arguments: Mapping[str, Any], ruling: Ruling
    ) -> None:
        """Record what was decided, before anything happens."""
        allowed = ruling.verdict != "deny"
        if allowed and spec.risk is Risk.READ and not ruling.rule:
            return
        from kage.core.canonical import NotCanonical, digest
        from kage.core.gate import CallRequest, Decision, Verdict, Who
        from kage.permissions.decisions import records

        try:
            shown = digest(arguments)
        except NotCanonical:
            shown = ""
        request = CallRequest(call_id=call_id, tool=spec, arguments=arguments, workspace=self._root)
        decision = Decision(
            id=new_id("d"),
            verdict=Verdict.ALLOW if allowed else Verdict.DENY,
            who=Who.RULE if ruling.rule else Who.CLIENT,
            rule=ruling.rule,
            reason=ruling.reason,
            digest=shown,
        )
        fields = records.call(
            request, session_id=self._session, decision_id=decision.id, shown=shown
        )
        why = ruling.reason or "the calling program holds the person"
        self._write("decision", fields | records.verdict(decision, why=why), sync=True)
        if allowed:
            self._open[call_id] = request, decision

    def finished(self, call_id: str, spec: ToolSpec, outcome: Outcome, seconds: float) -> None:
        """Record how an allowed call ended."""
        held = self._open.pop(call_id, None)
        if held is None:
            return
        from kage.permissions.decisions import records

        fields = records.outcome(
            *held, outcome, session_id=self._session, seconds=seconds, result=""
        )
        del fields["result"]  # results go out as they are made; nobody keeps them
        self._write("outcome", fields, sync=False)

    def _write(self, kind: str, fields: Mapping[str, Any], *, sync: bool) -> None:
        if self._log is None:
            from kage.permissions.decisions.log import DecisionLog

            self._log = DecisionLog(self._directory, on_trouble=_complain)
        self._log.append(kind, fields, sync=sync)


def _complain(text: str) -> None:
    import sys

    from kage.core.sanitise import visible

    print(visible(f"kage: {text}"), file=sys.stderr, flush=True)

"""Record what is handed to a server in answer to its questions, and let its follow-up through."""

from __future__ import annotations

from kage.core.canonical import digest
from kage.core.gate import Who
from kage.core.ids import new_id
from kage.core.requests import Handed
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.seal import SealBook


class HandedLog:
    """Implements ``core.requests.Receipts`` over the decision log; values are never written."""

    def __init__(self, *, log: DecisionLog, seals: SealBook) -> None:
        self._log = log
        self._seals = seals

    async def handed(self, answer: Handed) -> None:
        """Write the record, then open the seal of the follow-up that carries the answers.

        Raises:
            NotCanonical: the follow-up holds what plain JSON cannot carry.
        """
        record_id = new_id("d")
        fields = {
            "id": record_id,
            "server": answer.server,
            "origin": answer.origin,
            "original": answer.tool,
            "follows": answer.decision,
            "asked": answer.kind,
            "action": answer.action,
            "who": str(Who.PERSON if answer.by_person else Who.RULE),
            "keys": list(answer.keys),
            "digest": answer.digest,
        }
        await self._log.write("handed", fields, sync=answer.sealed is not None)
        if answer.sealed is not None:
            self._seals.open(answer.connection, answer.tool, digest(answer.sealed), record_id)

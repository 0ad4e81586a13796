"""What a server says unasked: who is told of it, and what little of it the SDK has to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kage.core.sanitise import clip
from kage.mcp.client.asking.reception import Reception
from kage.mcp.client.asking.requests import ServerRequests
from kage.mcp.client.wire.ledger import Ledger
from kage.mcp.client.wire.metadata import amount
from kage.mcp.client.wire.methods import OFFERS

if TYPE_CHECKING:
    from mcp_types import JSONRPCNotification


def _unheard(*_: object) -> None:
    pass


class Notices:
    """Takes the notifications of one connection.

    Args:
        ledger: What kage asked.
        requests: What the server asked.
        drop: Told of each one nobody wants.
    """

    def __init__(
        self,
        ledger: Ledger,
        requests: ServerRequests,
        *,
        redact: Callable[[str], str],
        drop: Callable[[str], None],
    ) -> None:
        self.changed: Callable[[], None] = _unheard  # told that the tools changed
        self.offered: Callable[[str, object], None] = _unheard  # told what changed beside tools
        self.logged: Callable[[Mapping[str, Any]], None] = _unheard  # told each log message
        self._ledger = ledger
        self._requests = requests
        self._redact = redact
        self._drop = drop

    def take(self, notice: JSONRPCNotification, reception: Reception | None) -> bool:
        """Act on a notification; True: the SDK, which starts a task for each, has to see it."""
        params = notice.params or {}
        match notice.method:
            case "notifications/progress":
                self._progress(params)
            case "notifications/tools/list_changed":
                self.changed()
            case method if method in OFFERS:
                self.offered(method, params.get("uri"))
            case "notifications/message":
                self.logged(params)
            case "notifications/elicitation/complete":
                if reception is not None:
                    reception.answering.completed(params.get("elicitationId"))
            case "notifications/cancelled":
                return self._cancelled(params.get("requestId"), reception)
            case "notifications/subscriptions/acknowledged":
                return self._ledger.has(method="subscriptions/listen")
            case _:
                self._drop(f"unwanted {notice.method}")
        return False

    def _cancelled(self, request: object, reception: Reception | None) -> bool:
        if self._requests.is_open(request):
            assert isinstance(request, int | str)
            self._requests.settle(request)
            return reception is None or not reception.intake.cancel(request)
        # the end of a subscription
        return isinstance(request, str) and self._ledger.has(id=request)

    def _progress(self, params: Mapping[str, Any]) -> None:
        exchange = self._ledger.by_token(params.get("progressToken"))
        progress, total = params.get("progress"), params.get("total")
        done, whole = amount(progress), amount(total)
        if exchange is None or done is None:
            self._drop("progress of nothing that runs")
            return
        message = params.get("message")
        said = self._redact(message) if isinstance(message, str) else ""
        exchange.progressed(done, whole, clip(said, 500))

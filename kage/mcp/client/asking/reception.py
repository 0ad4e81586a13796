"""Where one connection's questions arrive: on the wire, in results, or as an error with pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from kage.core.links import BadLink
from kage.core.requests import Action
from kage.mcp.client.asking.answering import Answering
from kage.mcp.client.asking.intake import Intake
from kage.mcp.client.asking.requests import Reply, Unanswerable
from kage.mcp.client.asking.rounds import Rounds, Send, Subject, while_up
from kage.mcp.client.wire.exchange import Exchange

VISIT_FIRST = -32042  # "URL elicitation required" of 2025-11-25
_MAX_PAGES = 8  # of one such error


class Reception:
    """Answers what a server asks while its requests run, in either era.

    Args:
        reply: Writes the answer to a request that came on the wire.
        modern: Whether the connection speaks the era without such requests.
    """

    def __init__(self, answering: Answering, reply: Reply, modern: Callable[[], bool]) -> None:
        self.answering = answering
        self.intake = Intake(answering, reply)
        self._gone = asyncio.Event()
        self._rounds = Rounds(answering, self._gone)
        self._modern = modern

    def take(self, request: int | str, method: str, params: Mapping[str, Any] | None) -> bool:
        """Begin to answer a request from the wire; False leaves it to the SDK."""
        return not self._modern() and self.intake.take(request, method, params)

    async def converse(
        self,
        send: Send,
        exchange: Exchange,
        subject: Subject,
        pause: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Send a request and answer what it asks, on the wire or in its results.

        Raises:
            Stuck: a question has no answer, or there were too many rounds.
        """
        with self.intake.during(subject.name, lambda: exchange.decision, pause):
            await self._rounds.send(send, exchange, subject, pause)

    def end(self) -> None:
        """Withdraw every open question: nobody waits for the answers any more."""
        self._gone.set()
        self.intake.end()

    async def visit(self, data: object, tool: str) -> tuple[int, bool]:
        """Put the pages of error -32042 to the person; how many, and whether all were agreed to."""
        from mcp import MCPError

        pages = data.get("elicitations") if isinstance(data, Mapping) else None
        pages = pages[:_MAX_PAGES] if isinstance(pages, list) else []
        for page in pages:
            try:
                asked = page if isinstance(page, Mapping) else {}
                action = await while_up(self._gone, self.answering.visit(asked, tool))
                if action is not Action.ACCEPT:
                    return len(pages), False
            except MCPError:  # the connection closed under the page
                return len(pages), False
            except (BadLink, Unanswerable) as error:
                what = f"A page of the server {self.answering.spec.name} was not shown"
                self.answering.complain(what, str(error))
                return len(pages), False
        return len(pages), bool(pages)

    def declared(self) -> dict[str, Any]:
        """Give the arguments of the SDK's client that declare what is answered here.

        It declares what has a callback; none is ever called, since no such request reaches it.
        """
        from mcp_types import SamplingCapability, SamplingToolsCapability

        made: dict[str, Any] = {}
        if self.answering.forms:
            made["elicitation_callback"] = _unreached
        if self.answering.roots:
            made["list_roots_callback"] = _unreached
        if self.answering.sampling:
            made["sampling_callback"] = _unreached
        if self.answering.sampling == "tools":
            made["sampling_capabilities"] = SamplingCapability(tools=SamplingToolsCapability())
        return made


async def _unreached(*_: object) -> Any:  # the SDK's ErrorData
    from mcp_types import ErrorData

    return ErrorData(code=-32601, message="Not answered here")

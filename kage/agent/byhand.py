"""What a person does by hand with a server: through the gate, into the log, no question asked."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kage.agent import calls
from kage.core.content import Content, as_text
from kage.core.errors import KageError, Refused
from kage.core.gate import CallRequest, Decision
from kage.core.ids import new_id
from kage.core.messages import Outcome
from kage.core.offers import Provenance
from kage.core.tools import Risk, ServerTool, ToolSpec

T = TypeVar("T")

READ = "resources/read"
GET = "prompts/get"
COMPLETE = "completion/complete"


class Judge(calls.Judge, Protocol):
    """What lets acts through; ``permissions.gate.Gate``."""

    def denies(self, request: CallRequest) -> bool:
        """Say whether a rule or a hold forbids it; nothing is recorded."""
        ...


def act(
    source: Provenance, method: str, arguments: Mapping[str, Any], *, workspace: Path
) -> CallRequest:
    """Describe a request to a server that is no tool call as the gate takes it.

    Rules about all tools of the server are about it too, and so are those that name it:
    ``docs__resources/read(uri=memo://private/*)``.
    """
    spec = ToolSpec(
        name=f"{source.server}__{method}",
        description="",
        schema={"type": "object"},
        risk=Risk.EXEC,
        server=ServerTool(
            server=source.server,
            origin=source.origin,
            original=method,
            entry_hash=source.entry_hash,
            pin="",
            connection=source.connection,
        ),
    )
    return CallRequest(
        call_id=new_id("c"), tool=spec, arguments=arguments, workspace=workspace, by_hand=True
    )


async def by_hand(
    gate: Judge,
    request: CallRequest,
    work: Callable[[Decision], Awaitable[T]],
    *,
    content: Callable[[T], tuple[Content, ...]],
) -> T:
    """Do ``work`` unless a deny or a hold forbids it; decision and outcome are recorded.

    Args:
        gate: Who decides.
        request: What is done, with ``by_hand`` set.
        work: Does it.
        content: Gives what is recorded of a result, as a digest.

    Raises:
        Refused: a rule forbids it.
        KageError: what ``work`` raises.
    """
    decision = await gate.decide(request)
    if not decision.allowed:
        raise Refused(f"{request.tool.name} was refused", rule=decision.rule, why=decision.reason)
    began = time.monotonic()
    outcome, text = Outcome.UNKNOWN, ""
    try:
        result = await work(decision)
        outcome, text = Outcome.OK, as_text(content(result))
        return result
    except KageError as error:
        outcome, text = Outcome.TOOL_ERROR, str(error)
        raise
    finally:
        await gate.finish(request, decision, outcome, seconds=time.monotonic() - began, result=text)

"""What the gate costs a call of 2 KB: rules, scanners, redaction and its record."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kage.core.gate import CallRequest
from kage.core.messages import Outcome
from kage.core.redact import Redactor
from kage.core.tools import ToolSpec
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.gate import Gate
from kage.permissions.grants import Grants
from kage.permissions.scanners import Kind, argument_flags, scan
from kage.permissions.seal import SealBook
from kage.permissions.watch import Watch
from tests.bench.table import Figure, figure
from tests.permissions.calls import mcp, rules

CALLS = 300
SECRETS = 20  # each in some ten forms
_LINE = "The build of service-42 took 3.5 s; please look at https://ci.example/jobs/7781 first.\n"
ARGUMENTS = {"title": "a report", "body": (_LINE * 30)[:2_000]}
RESULT = ("Row 1: order 8812, Ada Lovelace, shipped to Bern on Monday, 12.50 EUR.\n" * 2_000)[
    :50_000
]


def _median(work: Callable[[], object]) -> float:
    """Give milliseconds of processor time of one ``work``."""
    taken = []
    for _ in range(CALLS):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return statistics.median(taken) * 1e3


def _redactor() -> Redactor:
    redact = Redactor()
    for number in range(SECRETS):
        redact.add(f"KEY_{number}", secrets.token_urlsafe(32))
    return redact


async def _verdicts(folder: Path, tool: ToolSpec) -> float:
    """Give milliseconds of processor time of ``decide``, its record aside."""
    log = DecisionLog(folder / "decisions", redact=_redactor())
    gate = Gate(
        rules=rules(allow=(tool.name,)),
        grants=Grants(folder / "grants.toml", log=log, on_notice=str),
        log=log,
        seals=SealBook(),
        asker=None,
        session_id="s1",
        protected=lambda place: False,
    )
    gate.returned("mail", RESULT)
    taken = []
    for number in range(CALLS):
        request = CallRequest(
            call_id=f"c{number}", tool=tool, arguments=ARGUMENTS, workspace=folder
        )
        began = time.thread_time()
        decision = await gate.decide(request)
        taken.append(time.thread_time() - began)
        await gate.finish(request, decision, Outcome.OK, seconds=0.0, result="")
    log.close()
    return statistics.median(taken) * 1e3


def measure() -> list[Figure]:
    """Take every figure."""
    redact, watch = _redactor(), Watch(_redactor())
    watch.returned("mail", RESULT)
    request = CallRequest(call_id="c", tool=mcp(), arguments=ARGUMENTS, workspace=Path("/"))
    text = ARGUMENTS["body"]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        whole = asyncio.run(_verdicts(folder, mcp()))
    return [
        figure("one verdict on a 2 KB call, all of it", whole, "ms", most=1.0),
        figure(
            "of it the scanners on its arguments", _median(lambda: argument_flags(ARGUMENTS)), "ms"
        ),
        figure("of it all that is looked at", _median(lambda: watch.arguments(request)), "ms"),
        figure(f"redaction of 2 KB, {SECRETS} secrets", _median(lambda: redact(text)), "ms"),
        figure(
            "the scanners on a result of 50 KB", _median(lambda: scan(RESULT, Kind.RESULT)), "ms"
        ),
    ]

"""What a person's answer to a question means, and whether the call is still what they saw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kage.core.canonical import NotCanonical, digest
from kage.core.gate import Answer, CallRequest, Question, Reply, Verdict
from kage.permissions.offers import Offer
from kage.permissions.rules.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came of a question."""

    verdict: Verdict
    rule: str
    reason: str
    offer: Offer | None = None
    answer: Answer = Answer.YES
    say: str = ""


def answered(
    request: CallRequest,
    reading: Reading,
    question: Question,
    reply: Reply,
    *,
    offered: tuple[Offer, ...],
    roots: Iterable[Path],
) -> Answered:
    """Turn ``reply`` into a verdict; a call that changed while it was shown is refused.

    Args:
        request: The call as it would run now.
        reading: What it was about when the person was asked.
        question: What they saw.
        reply: What they answered.
        offered: The rules that can be saved.
        roots: Folders beside the workspace where reading is free.
    """
    name = request.tool.name
    if reply.answer in (Answer.NO, Answer.NO_SAY):
        said = reply.say.strip() if reply.answer is Answer.NO_SAY else ""
        more = f" They said: {said}" if said else " Ask what they want instead."
        reason = f"The person refused this call of {name}.{more}"
        return Answered(verdict=Verdict.DENY, rule="", reason=reason, answer=reply.answer, say=said)
    if changed := _changed(request, reading, question, roots):
        reason = f"kage refused this call of {name}: {changed} while the person was asked."
        return Answered(verdict=Verdict.DENY, rule="sealed", reason=reason, answer=reply.answer)
    lasting = reply.answer in (Answer.SESSION, Answer.ALWAYS)
    if not lasting or not 0 <= reply.scope < len(offered):
        return Answered(verdict=Verdict.ALLOW, rule="", reason="You allowed this call.")
    offer = offered[reply.scope]
    span = "for this session" if reply.answer is Answer.SESSION else "always"
    return Answered(
        verdict=Verdict.ALLOW,
        rule=str(offer.rule),
        reason=f"You allowed {offer.rule} {span}.",
        offer=offer,
        answer=reply.answer,
    )


def _changed(
    request: CallRequest, reading: Reading, question: Question, roots: Iterable[Path]
) -> str:
    """Say what is no longer as it was shown, "" when nothing changed."""
    try:
        if digest(request.arguments) != question.digest:
            return "its arguments changed"
    except NotCanonical:
        return "its arguments changed"
    if Reading.of(request, roots=tuple(roots)).path != reading.path:
        return "its path came to mean another place"
    return ""

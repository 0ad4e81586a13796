"""The gate: the only place a tool call is let through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kage.core.canonical import NotCanonical, digest
from kage.core.gate import Answer, Asker, CallRequest, Decision, Question, Verdict, Who
from kage.core.ids import new_id
from kage.core.messages import Outcome
from kage.core.tools import Risk, ToolSpec
from kage.permissions.answers import Answered, answered
from kage.permissions.decisions import records
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.grants import Grant, Grants
from kage.permissions.offers import Offer, offers, remedy
from kage.permissions.previews import Preview, previewed
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rules import Case, Hook, Judgement, Rules
from kage.permissions.seal import SealBook

if TYPE_CHECKING:
    from kage.permissions.watch import Watch


class Gate:
    """Decides about every call of one session, and records each decision before it counts."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        *,
        rules: Rules,
        grants: Grants,
        log: DecisionLog,
        seals: SealBook,
        asker: Asker | None,
        session_id: str,
        protected: Callable[[Path], bool],
        extra: Iterable[Path] = (),
        held: Callable[[ToolSpec], str | None] | None = None,
        since: Callable[[ToolSpec], str] | None = None,
    ) -> None:
        """Start in the mode of the settings.

        Args:
            rules: What the settings and ``--allow`` say.
            grants: What the person allowed for good.
            log: Where each decision is recorded.
            seals: Where an allowed MCP call is opened for the tap.
            asker: Who puts questions to the person; None in print mode, which never asks.
            session_id: Whose calls these are.
            protected: Says whether a place is one of kage's own files. When it has a method
                ``uproots``, that says whether removing a place takes such files along.
            extra: Folders beside the workspace where reading is free: a session's own outputs.
            held: Says why a tool is held, None when it is not.
            since: Says when a tool's definition was first seen; without it grants say it.
        """
        self.mode = rules.mode
        self._rules = rules
        self._grants = grants
        self._log = log
        self._seals = seals
        self._asker = asker
        self._session_id = session_id
        self._protected = protected
        self._uproots: Callable[[Path], bool] | None = getattr(protected, "uproots", None)
        self._roots = tuple(extra)
        self._held = held
        self._since = since or grants.since

    def go_by(self, rules: Rules) -> None:
        """Judge the calls from now on by other rules; the mode stays."""
        self._rules = rules

    @cached_property
    def _watch(self) -> Watch:
        from kage.permissions.watch import Watch  # with the first call: kage starts faster

        return Watch(self._log.redact)

    def said(self, text: str) -> None:
        """Take note of what the person wrote: it may go to any server."""
        self._watch.written(text)

    def returned(self, server: str, text: str) -> None:
        """Take note of what a server gave back before the session was resumed."""
        self._watch.returned(server, text)

    async def decide(
        self, request: CallRequest, *, preview: Preview | None = None, hook: Hook | None = None
    ) -> Decision:
        """Let one call through or refuse it; the first record of the log stands before it returns.

        For an MCP tool that is allowed, the seal is open for exactly these arguments.

        Args:
            request: The call; its arguments must not be changed any more.
            preview: Gives a unified diff for the question; asked only when there is one.
            hook: What a plugin's hook wants.
        """
        decision_id = new_id("d")
        try:
            shown = digest(request.arguments)
        except NotCanonical as error:
            return await self._unsound(request, decision_id, error)
        reading = Reading.of(request, roots=self._roots)
        grant, void = self._grants.find(reading, self._session_id)
        judgement = self._judged(reading, hook, grant)
        if judgement.wish != "ask":
            return await self._settled(request, reading, judgement, decision_id, shown)
        if self._asker is None:
            return await self._unasked(request, reading, judgement, decision_id, shown)
        question = await self._question(request, reading, judgement, void, shown, preview)
        return await self._asked(request, reading, question, judgement, decision_id)

    async def finish(
        self,
        request: CallRequest,
        decision: Decision,
        outcome: Outcome,
        *,
        seconds: float,
        result: str,
    ) -> Outcome:
        """Record how the call ended and give it; one whose seal is unused was never sent."""
        if self._seals.close(decision.id) and outcome is Outcome.UNKNOWN:
            outcome = Outcome.NEVER_SENT
        fields = records.outcome(
            request,
            decision,
            outcome,
            session_id=self._session_id,
            seconds=seconds,
            result=result,
        )
        await self._log.write("outcome", fields)
        if request.tool.server is not None:
            self._watch.returned(request.tool.server.server, result)
        return outcome

    def denies(self, request: CallRequest) -> bool:
        """Say whether nothing but a change of rules lets this through; nothing is recorded.

        For what is asked of a server while a person types, which no decision is made about.
        """
        try:
            digest(request.arguments)
        except NotCanonical:
            return True
        return self._judged(Reading.of(request, roots=self._roots), None, None).wish == "deny"

    def _judged(self, reading: Reading, hook: Hook | None, grant: Grant | None) -> Judgement:
        tool = reading.tool
        case = Case(
            mode=self.mode,
            held=(self._held(tool) if self._held is not None else None) or "",
            hook=hook,
            guarded=self._guarded(reading),
            grant=str(grant.rule) if grant is not None else "",
        )
        return self._rules.judge(reading, case)

    # -- without a question ------------------------------------------------------------------

    async def _unsound(
        self, request: CallRequest, decision_id: str, error: NotCanonical
    ) -> Decision:
        decision = Decision(
            id=decision_id,
            verdict=Verdict.DENY,
            who=Who.RULE,
            rule="canonical arguments",
            reason=f"kage refused this call: {error}. Send arguments that plain JSON can carry.",
            digest="",
        )
        await self._record(request, decision, str(error))
        return decision

    async def _settled(
        self,
        request: CallRequest,
        reading: Reading,
        judgement: Judgement,
        decision_id: str,
        shown: str,
    ) -> Decision:
        allowed = judgement.wish == "allow"
        decision = Decision(
            id=decision_id,
            verdict=Verdict.ALLOW if allowed else Verdict.DENY,
            who=judgement.who,
            rule=judgement.rule,
            reason=_sentence(judgement.reason) if allowed else _refusal(judgement),
            digest=shown,
            roots=_roots(reading) if allowed else (),
            warnings=self._watch.arguments(request) if allowed else (),
        )
        return await self._let(request, decision, judgement.reason)

    async def _unasked(
        self,
        request: CallRequest,
        reading: Reading,
        judgement: Judgement,
        decision_id: str,
        shown: str,
    ) -> Decision:
        fix = "" if judgement.every_time else remedy(reading)
        decision = Decision(
            id=decision_id,
            verdict=Verdict.DENY,
            who=Who.NOBODY,
            rule=judgement.rule,
            reason=(
                f"kage refused this call: it needs a person's answer ({judgement.reason}) and "
                "nobody is here to ask."
            ),
            digest=shown,
            fix=f"{fix}." if fix else "Only a person can allow it: run kage in a terminal.",
        )
        return await self._let(request, decision, judgement.reason)

    # -- with a question ---------------------------------------------------------------------

    async def _question(
        self,
        request: CallRequest,
        reading: Reading,
        judgement: Judgement,
        void: str,
        shown: str,
        preview: Preview | None,
    ) -> Question:
        offered = self._offers(reading, judgement)
        return Question(
            id=new_id("q"),
            request=request,
            digest=shown,
            reason=void or judgement.reason,
            scopes=tuple(str(offer.rule) for offer in offered),
            warnings=(*self._watch.arguments(request), *self._watch.definition(request.tool)),
            red=judgement.red,
            preview=await previewed(preview),
            pinned_since=self._since(request.tool),
        )

    async def _asked(
        self,
        request: CallRequest,
        reading: Reading,
        question: Question,
        judgement: Judgement,
        decision_id: str,
    ) -> Decision:
        assert self._asker is not None
        try:
            reply = await self._asker.ask(question)
        except asyncio.CancelledError:
            await self._withdrawn(request, question, decision_id)
            raise
        offered = self._offers(reading, judgement)
        asked = answered(request, reading, question, reply, offered=offered, roots=self._roots)
        decision = Decision(
            id=decision_id,
            verdict=asked.verdict,
            who=Who.PERSON,
            rule=asked.rule,
            reason=asked.reason,
            digest=question.digest,
            roots=_roots(reading) if asked.verdict is Verdict.ALLOW else (),
            warnings=question.warnings,
        )
        return await self._let(request, decision, question.reason, reading=reading, asked=asked)

    async def _withdrawn(self, request: CallRequest, question: Question, decision_id: str) -> None:
        fields = self._fields(request, decision_id, question.digest)
        await self._log.write(
            "decision",
            {**fields, "verdict": "withdrawn", "who": str(Who.PERSON), "reason": question.reason},
        )

    # -- the record and the seal -------------------------------------------------------------

    async def _let(
        self,
        request: CallRequest,
        decision: Decision,
        why: str,
        *,
        reading: Reading | None = None,
        asked: Answered | None = None,
    ) -> Decision:
        """Record ``decision``, keep its grant, open its seal, in this order."""
        grant = None
        extra: dict[str, Any] = {}
        if asked is not None and asked.say:
            extra["say"] = asked.say
        if asked is not None and asked.offer is not None and reading is not None:
            grant = Grant.of(
                asked.offer.rule, reading, exact=asked.offer.exact, decision=decision.id
            )
            extra |= {"scope": str(asked.answer), "grant": grant.identity}
        try:
            recorded = await self._record(request, decision, why, extra)
        except asyncio.CancelledError:
            if decision.allowed:  # the record says yes, but nothing will run
                await self.finish(request, decision, Outcome.NEVER_SENT, seconds=0.0, result="")
            raise
        if grant is not None and asked is not None:
            lasting = asked.answer is Answer.ALWAYS and recorded  # unrecorded it would be dropped
            if not lasting or not self._grants.save(grant):
                self._grants.add(grant, self._session_id)
        if decision.allowed and (server := request.tool.server) is not None:
            self._seals.open(server.connection, server.original, decision.digest, decision.id)
        return decision

    async def _record(
        self,
        request: CallRequest,
        decision: Decision,
        why: str,
        extra: Mapping[str, Any] | None = None,
    ) -> bool:
        sync = decision.allowed and request.tool.risk is not Risk.READ
        fields = self._fields(request, decision.id, decision.digest)
        fields |= {**records.verdict(decision, why=why), **(extra or {})}
        return await self._log.write("decision", fields, sync=sync)

    def _fields(self, request: CallRequest, decision_id: str, shown: str) -> dict[str, Any]:
        return records.call(
            request, session_id=self._session_id, decision_id=decision_id, shown=shown
        )

    def _offers(self, reading: Reading, judgement: Judgement) -> tuple[Offer, ...]:
        """Give what can be saved: nothing where every call asks, nothing that holds a secret."""
        if judgement.every_time:
            return ()
        redact = self._log.redact
        said = ((offer, f"{offer.rule}\n{offer.whole}") for offer in offers(reading))
        return tuple(offer for offer, text in said if redact(text) == text)

    def _guarded(self, reading: Reading) -> Path | None:
        found = reading.guarded(self._protected)
        if found is None and self._uproots is not None:
            found = next((place for place in reading.uprooted() if self._uproots(place)), None)
        return found


def _roots(reading: Reading) -> tuple[Path, ...]:
    """Give the place outside the workspace this decision covers."""
    return (reading.path,) if reading.path is not None and reading.outside else ()


def _refusal(judgement: Judgement) -> str:
    text = _sentence(f"kage refused this call: {judgement.reason}")
    if judgement.who is Who.HOLD:
        return f"{text} The person has to look at it first."
    return f"{text} Do not try to reach the same effect in another way; ask the person."


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."

"""Say in words why a call ran or did not, from its records alone (``kage log why``)."""

from __future__ import annotations

import re

from kage.core.gate import Verdict, Who
from kage.core.messages import Outcome
from kage.permissions.decisions.cases import Case

WITHDRAWN = "withdrawn"
BY_HAND = "by hand"
_PLACE = re.compile(r"\(([^()]+:\d+)\)")
_ENDS = {
    Outcome.OK: "It ran and worked",
    Outcome.TOOL_ERROR: "It ran, and the tool said it failed",
    Outcome.REFUSED: "It was refused on the way",
    Outcome.NEVER_SENT: "It was allowed, but never sent: nothing happened",
    Outcome.UNKNOWN: "It was sent, and nobody knows whether it took effect",
}
_REFUSED = {
    Who.HOLD: "the tool is held until you have looked at it",
    Who.HOOK: "a plugin's hook refused it",
    Who.MODE: "the session was set to refuse what would ask",
}
_ACTS = {
    "trusted": "You trusted this entry of a server, as it was then",
    "never": "You said that no form of this entry may start",
    "revoked": "You took back what you had said about this entry",
    "held": "kage held it: it was changed while a kage was running, and not by a verb of kage",
    "released": "You let count what had been held",
    "changed": "You changed it with a verb of kage",
}
_HANDED = {
    "accept": "You answered what the server asked; the values are not written down",
    "decline": "You declined what the server asked",
    "cancel": "The question of the server was put away without an answer",
}


def explain(case: Case, *, source: Case | None = None) -> tuple[str, ...]:
    """Give the sentences that explain a case, the answer first.

    Args:
        case: What is to be explained.
        source: For a call that a permission covered: the decision that made it, where known.
    """
    match case.kind:
        case "decision":
            return (*_decided(case, source), *_ended(case), *_remedy(case))
        case "trust":
            act = case.text("act")
            return (f"{_ACTS.get(act, act)}: {case.text('server')} ({case.text('origin')}).",)
        case "handed":
            action = case.text("action")
            about = f"{case.text('server')}__{case.text('original')}"
            return (f"{_HANDED.get(action, action)}. It was asked during a call of {about}.",)
        case "gap":
            missed = case.fields.get("missed")
            many = f"{missed} records are missing before this one" if missed else "Something is off"
            return (f"{many}: {case.text('reason')}.",)
        case _:
            told = ("reason", "act", "why")
            said = next((case.text(name) for name in told if case.text(name)), "")
            return (f"A record of the kind {case.kind or 'unknown'}{': ' if said else ''}{said}.",)


def granting(case: Case, other: Case) -> bool:
    """Say whether ``other`` is a decision that gave the permission ``case`` went by."""
    return (
        other.text("scope") in ("session", "always")
        and other.text("rule") == case.text("rule")
        and other.text("server") == case.text("server")
        and other.text("time") <= case.text("time")
        and (other.text("scope") == "always" or other.text("session") == case.text("session"))
    )


def _decided(case: Case, source: Case | None) -> tuple[str, ...]:
    reason, verdict = case.text("reason"), case.text("verdict")
    if verdict == WITHDRAWN:
        return (
            "The question was taken back before you answered it, so nothing ran.",
            f"It asked because {reason}.",
        )
    if verdict == Verdict.ALLOW:
        return _allowed(case, reason, source)
    return _denied(case, reason)


def _allowed(case: Case, reason: str, source: Case | None) -> tuple[str, ...]:
    rule = case.text("rule")
    match case.text("who"):
        case Who.PERSON if rule == BY_HAND:
            return ("Allowed: you made this call yourself, which is its own answer.",)
        case Who.PERSON:
            span = {"session": "for the session", "always": "for good"}.get(case.text("scope"))
            what = f"{rule} {span}" if span else "this one call"
            return (f"Allowed: you were asked and allowed {what}.", f"It asked because {reason}.")
        case Who.GRANT:
            given = "Where you gave it is not in the log."
            if source is not None:
                span = "for good" if source.text("scope") == "always" else "for the session"
                given = f"You gave it {span} in {source.text('id')} ({source.text('time')})."
            return (f"Allowed: the permission {rule} covers it, so nobody was asked.", given)
        case Who.CLIENT:
            return (
                "Allowed: the program that called kage's own server answers for its person, and "
                "no rule of yours spoke against it.",
            )
        case _:
            return (f"Allowed without a question: {reason or rule}.",)


def _denied(case: Case, reason: str) -> tuple[str, ...]:
    rule, who = case.text("rule"), case.text("who")
    if who == Who.PERSON and rule == "sealed":
        return (
            "Refused: you answered, but the call was no longer the one you had been shown.",
            f"It asked because {reason}.",
        )
    if who == Who.PERSON:
        said = f" You said: {case.text('say')}" if case.text("say") else ""
        return (f"Refused: you were asked and said no.{said}", f"It asked because {reason}.")
    if who == Who.NOBODY:
        return ("Refused: it needed your answer and nobody was there to ask.", f"Why: {reason}.")
    if rule == "canonical arguments":
        return (f"Refused before any rule was looked at: {reason}.",)
    if who in _REFUSED:
        return (f"Refused: {_REFUSED[Who(who)]}.", f"Why: {reason}.")
    return (f"Refused without a question: {reason or rule}.",)


def _ended(case: Case) -> tuple[str, ...]:
    if case.text("verdict") != Verdict.ALLOW:
        return ()
    if case.ended is None:
        return ("How it ended is not in the log: it still runs, or its kage was killed.",)
    try:
        told = _ENDS[Outcome(case.outcome)]
    except ValueError:
        told = f"It ended: {case.outcome or 'unknown'}"
    seconds = case.seconds
    return (f"{told}{f' ({seconds:.3g} s)' if seconds is not None else ''}.",)


def _remedy(case: Case) -> tuple[str, ...]:
    if case.text("verdict") == Verdict.ALLOW:
        return ()
    place = _PLACE.search(case.text("reason"))
    if case.text("who") in (Who.RULE, Who.DEFAULT) and place:
        return (f"To change it: {place[1]}",)
    if case.text("who") == Who.NOBODY:
        return (
            "To be asked: run kage in a terminal. To allow it beforehand: kage -p --allow RULE",
        )
    return ()

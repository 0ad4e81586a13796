"""What the gate would say about a tool before a call is made: for ``kage mcp why``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kage.config.schema import Wish
from kage.core.gate import CallRequest, Mode
from kage.core.tools import SubjectKind, ToolSpec
from kage.permissions.grants import Grant
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rules import Case, Judgement, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The answer for a plain call, and what makes it another one for some calls."""

    wish: Wish
    rule: str
    reason: str
    some: tuple[str, ...] = ()  # rules with patterns, and permissions, each in words


def outlook(
    tool: ToolSpec, rules: Rules, grants: Sequence[Grant], *, workspace: Path, held: str = ""
) -> Outlook:
    """Judge a call with nothing in it, and name what depends on the arguments.

    Args:
        tool: What would be called.
        rules: The rules of the settings and the command line.
        grants: Every saved permission.
        workspace: Where it would be called.
        held: Why the tool is held, "" when it is not.
    """
    subject = tool.subject
    arguments = {} if subject.kind is SubjectKind.ARGUMENTS else {subject.argument: ""}
    request = CallRequest(call_id="", tool=tool, arguments=arguments, workspace=workspace)
    reading = Reading.of(request)
    about = [grant for grant in grants if grant.about(tool)]
    counting = [grant for grant in about if not grant.void(tool)]
    whole = next((g for g in counting if not g.rule.pattern and not g.exact), None)
    case = Case(mode=rules.mode, held=held, grant=str(whole.rule) if whole is not None else "")
    found = rules.judge(reading, case)
    return Outlook(
        wish=found.wish,
        rule=found.rule,
        reason=found.reason,
        some=(*_patterns(tool, rules, found), *_grants(tool, about, whole)),
    )


def _patterns(tool: ToolSpec, rules: Rules, found: Judgement) -> tuple[str, ...]:
    words = {"deny": "refuses", "ask": "asks for", "allow": "allows"}
    if rules.mode is not Mode.DEFAULT:
        words["allow"] = "would allow, were the mode not what it is,"
    return tuple(
        f"{entry.rule} ({entry.source}) {words[entry.wish]} calls like that"
        for entry in rules.entries
        if entry.rule.pattern
        and str(entry.rule) != found.rule
        and entry.rule.names(tool, rules.servers, strictly=entry.wish == "allow")
    )


def _grants(tool: ToolSpec, about: Sequence[Grant], whole: Grant | None) -> tuple[str, ...]:
    told = []
    for grant in about:
        day = f" on {grant.since[:10]}" if grant.since else ""
        if why := grant.void(tool):
            told.append(f"your permission {grant.rule}{day} no longer counts: {why}")
        elif grant is not whole:
            told.append(f"you allowed {grant.rule}{day}")
    return tuple(told)

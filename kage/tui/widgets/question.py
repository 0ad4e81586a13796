"""The words and rows of the approval panel: what a question says, before any widget draws it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content
from textual.style import Style

from kage.tui.text import MUTED, shown
from kage.tui.widgets.arguments import argument_rows, diff_rows, is_foldable
from kage.tui.widgets.rows import Rows, Span, row

if TYPE_CHECKING:
    from kage.core.gate import Question
    from kage.core.tools import ToolSpec

ANSWERS = (  # action, key, words; the order is that of the keys 1 to 5
    ("yes", "1", "yes"),
    ("session", "2", "yes, this session"),
    ("always", "3", "always"),
    ("no", "4", "no"),
    ("no_say", "5", "no, and say what instead"),
)
GAP = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question and how it stands among the others."""

    question: Question
    number: int  # 1-based
    of: int
    scope: int = 0
    unfolded: bool = False

    @property
    def rule(self) -> str:
        """The rule that answers 2 and 3 would save, "" where they are not offered."""
        scopes = self.question.scopes
        return scopes[self.scope % len(scopes)] if scopes else ""


def tool_name(tool: ToolSpec, limit: int = 60) -> str:
    """Name a tool for a person: ``server · tool``, or the built-in's name."""
    if tool.server is None:
        return shown(tool.name, limit)
    return f"{shown(tool.server.server, limit // 2)} · {shown(tool.server.original, limit)}"


def title(asked: Asked, gauge: str, width: int) -> Content:
    """Draw the panel's first line."""
    question = asked.question
    tail = f" {question.request.tool.risk.value} · {asked.number} of {asked.of} ── {gauge} ─"
    room = max(4, width - len(tail) - 12)
    name = tool_name(question.request.tool)
    name = name if len(name) <= room else name[: room - 1] + "…"
    head = f"─ Allow {name}? "
    fill = "─" * max(1, width - Content(head + tail).cell_length)
    style = "bold $error" if question.red else "bold $warning"
    return Content.assemble((head, style), (fill + tail, style if question.red else "$warning"))


def banner(question: Question, width: int, *, most: int = 4, key: str = "") -> Content | None:
    """Draw what the scanners saw; None when there is nothing.

    The answers stay on the screen however much they saw: there are at most ``most`` rows, one a
    warning (a single one has two), and ``key`` shows the rest.
    """
    warnings, left = question.warnings, most - question.red
    room = max(20, width - 2) * (2 if len(warnings) == 1 else 1)
    lines = [shown(text, room) for text in warnings[: left if len(warnings) <= left else left - 1]]
    if rest := len(warnings) - len(lines):
        where = f" ({key}: full screen)" if key else ""
        lines.append(f"{rest} more of these{where}")
    if question.red:
        lines.insert(0, "This touches kage's own files: settings, grants, trust or its logs.")
    if not lines:
        return None
    style = "bold $error" if question.red else "bold $warning"
    return Content("\n").join(Content.styled(f"⚠ {line}", style) for line in lines)


def body(asked: Asked) -> Rows:
    """Give the call as rows: what would change, then the arguments."""
    question = asked.question
    arguments = argument_rows(question.request.arguments, unfolded=asked.unfolded)
    if not question.preview:
        return arguments
    return (*diff_rows(question.preview), row(""), *arguments)


def facts(question: Question) -> Content:
    """Draw why it asks, what the server claims and since when the definition is known."""
    parts = [f"why: {shown(question.reason, 160)}"] if question.reason else []
    tool = question.request.tool
    if tool.sandbox:
        parts.append(f"sandbox: {tool.sandbox}")
    if tool.server is not None:
        parts += [f"safety level: {tool.safety}"] if tool.safety else []
        parts += _claims(tool)
        since = _day(question.pinned_since)
        parts.append(
            f"definition unchanged since {since}" if since else "definition first seen now"
        )
    return Content.styled(" · ".join(parts), MUTED)


def _claims(tool: ToolSpec) -> list[str]:
    assert tool.server is not None
    claims = tool.server.claims
    words = [
        word
        for value, yes, no in (
            (claims.read_only, "read-only", "writes"),
            (claims.destructive, "destructive", "not destructive"),
            (claims.idempotent, "idempotent", ""),
            (claims.open_world, "open world", "closed world"),
        )
        if value is not None and (word := yes if value else no)
    ]
    return [f"server claims: {', '.join(words)} (not trusted)"] if words else []


def _day(iso: str) -> str:
    try:
        day = datetime.date.fromisoformat(iso[:10])
    except ValueError:
        return shown(iso, 20)
    return f"{day.day} {day:%b %Y}"


def rule_line(asked: Asked, scope_key: str) -> Content | None:
    """Draw the rule that 2 and 3 would save; None where they are not offered."""
    if not asked.rule:
        return None
    scopes = len(asked.question.scopes)
    other = f"   ({scope_key}: another scope)" if scopes > 1 and scope_key else ""
    return Content.assemble(
        ("2 and 3 allow: ", MUTED), (shown(asked.rule, 2000), "bold"), (other, MUTED)
    )


def options(asked: Asked, width: int) -> Content:
    """Draw the answers, each one clickable, wrapped between them."""
    offered = [item for item in ANSWERS if asked.rule or item[0] not in ("session", "always")]
    lines: list[Content] = []
    line = Content()
    for action, key, words in offered:
        choice = Content.assemble((key, "bold $accent"), f" {words}")
        choice = choice.stylize(Style.from_meta({"answer": action}))
        joined = choice if not line else line + GAP + choice
        if line and joined.cell_length > width:
            lines.append(line)
            line = choice
        else:
            line = joined
    return Content("\n").join([*lines, line])


def beside_draft(asked: Asked, key: str) -> Content:
    """Say that the answers type into the draft until ``key`` moves into the panel."""
    which = "1 to 5" if asked.rule else "1, 4 or 5"
    return Content.assemble((f"{key}, then {which}", "bold $warning"), ": a draft stands below")


def hints(asked: Asked, keys: dict[str, str], more: int = 0) -> Content:
    """Draw the other keys of the panel; ``keys`` gives the key of each action.

    ``more`` lines of the call are out of view.
    """
    words = [f"{keys['details']} full screen"] if keys.get("details") else []
    if more:
        words.insert(0, f"{keys['panel_up']}/{keys['panel_down']} {more} more lines")
    if keys.get("unfold") and (asked.unfolded or is_foldable(asked.question.request.arguments)):
        words.append(f"{keys['unfold']} {'fold' if asked.unfolded else 'unfold'}")
    if asked.of > asked.number:
        rest = asked.of - asked.number + 1
        if asked.rule:
            words.append(f"{keys['all_yes']} yes to all of this rule")
        words.append(f"{keys['all_no']} no to all {rest}")
    return Content.styled(" · ".join(words), MUTED)


def details(question: Question) -> Rows:
    """Give the whole question, nothing folded, for the full screen."""
    tool = question.request.tool
    heading = [row(Span(tool_name(tool, 400), "strong"), f"   {tool.risk.value}")]
    heading += [row(Span(f"⚠ {shown(text, 2000)}", "warning")) for text in question.warnings]
    heading.append(row(Span(facts(question).plain, "muted")))
    heading += [row(Span("rule  ", "muted"), shown(scope, 4000)) for scope in question.scopes]
    rows = [*heading, row(""), *argument_rows(question.request.arguments, unfolded=True)]
    if question.preview:
        rows += [row(""), *diff_rows(question.preview)]
    rows += [row(""), row(Span(f"sha-256 of the arguments  {shown(question.digest, 80)}", "muted"))]
    return tuple(rows)

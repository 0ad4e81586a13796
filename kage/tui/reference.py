"""The reference of commands and keys as Markdown, from the tables that make them work."""

from __future__ import annotations

from collections.abc import Iterable

from kage.tui.controllers.commands import COMMANDS
from kage.tui.keymap import ACTIONS, Context, display


def commands() -> str:
    """Give the slash commands as a Markdown table."""
    rows = [
        (
            f"`{f'/{command.name} {command.usage}'.strip()}`",
            command.help,
            ", ".join(f"`/{name}`" for name in command.aliases),
        )
        for command in COMMANDS
    ]
    return _table(("command", "does", "also"), rows)


def keys() -> str:
    """Give the keys as Markdown tables, one for each place where they count."""
    parts = []
    for context in Context:
        rows = [
            (
                " ".join(f"`{display(key)}`" for key in action.keys),
                action.help,
                "" if action.fixed else f"`{action.id}`",
            )
            for action in ACTIONS
            if action.context is context
        ]
        parts.append(f"### {context.value}\n\n{_table(('keys', 'do', 'name in `[keys]`'), rows)}")
    return "\n\n".join(parts)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )

"""The written reference comes from the tables that make keys and commands work."""

from __future__ import annotations

from kage.tui import reference
from kage.tui.controllers.commands import COMMANDS
from kage.tui.keymap import ACTIONS


def test_every_command_and_action_is_in_the_reference() -> None:
    commands, keys = reference.commands(), reference.keys()
    assert all(f"/{command.name}" in commands for command in COMMANDS)
    assert all(action.help in keys for action in ACTIONS)
    assert all(line.startswith("| ") for line in commands.splitlines())

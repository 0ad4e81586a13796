"""Every verb of ``kage`` as a command line, found in the tree of commands: new ones too."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kage.cli.commands import cli

_GIVEN = {  # by the name of the parameter; what is not named here is a server
    "tool": "{}__echo", "uri": "memo://a", "prompt": "hello", "session_id": "{session}",
    "id_": "d-1", "key": "model", "value": "x", "text": '{{"command": "true"}}', "which": "{}",
}  # fmt: skip
_ENDLESS = {"--follow", "--watch", "--help"}


def verbs() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Give every verb with its command."""
    yield from _below((), cli)


def lines(server: str, session: str = "nobody") -> Iterator[tuple[str, ...]]:
    """Give every verb about ``server``: as it is, and with each of its switches."""
    for verb, command in verbs():
        given = tuple(_argument(p, server, session) for p in command.params if _wanted(p))
        yield (*verb, *given)
        for switch in _switches(command):
            yield (*verb, *given, switch)


def _below(
    path: tuple[str, ...], command: click.Command
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None, name
        yield from _below((*path, name), found)


def _wanted(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument) and parameter.nargs == 1


def _argument(parameter: click.Parameter, server: str, session: str) -> str:
    return _GIVEN.get(str(parameter.name), "{}").format(server, session=session)


def _switches(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        flag = isinstance(parameter, click.Option) and parameter.is_flag
        if flag and parameter.opts[-1] not in _ENDLESS | {"--json"}:
            yield parameter.opts[-1]

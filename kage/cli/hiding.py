"""Make known what the settings hold of secrets, whether or not a server of them ever starts."""

from __future__ import annotations

import contextlib

from kage.cli.ground import Ground
from kage.cli.trusting import desk_of
from kage.config.expand import expand_server
from kage.core.errors import ServerError
from kage.mcp.client.servers.recipe import passwords_in


def hide_secrets(here: Ground) -> None:
    """Tell the redactor the secrets of every server that is the person's or trusted.

    Those of others stay unknown: a stranger's file must not choose what a person cannot read.
    """
    desk = desk_of(here)
    for spec in here.settings.servers.values():
        with contextlib.suppress(ServerError):  # a variable is not set; starting it tells
            if desk.counts(spec):
                expanded = expand_server(spec, here.environ, workspace=here.workspace)
                for name, value in (*expanded.secrets, *passwords_in(expanded.url)):
                    here.redact.add(name, value)


def hide_keys(here: Ground) -> None:
    """Tell the redactor the keys of the models, for verbs that make none."""
    from kage.providers.catalog import Models

    for name, value in Models(here.settings, here.environ).secrets():
        here.redact.add(name, value)

"""What all connections of one manager share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kage.config.schema import ServerSpec
from kage.core.gate import Seals
from kage.core.processes import Spawner
from kage.core.redact import Redactor
from kage.core.sandbox import Sandbox
from kage.mcp.client.asking.answering import Around
from kage.mcp.client.connections.sdk import Sdk
from kage.mcp.client.servers.eras import Eras

if TYPE_CHECKING:
    import httpx2


class Logins(Protocol):
    """Signs in to servers that ask for it."""

    def auth(self, spec: ServerSpec, url: str) -> httpx2.Auth | None:
        """Give what authorises the requests to ``url``; None: this entry is not signed in.

        Where a person has to sign in first it raises, while a request is made, an exception
        whose class has ``needs_auth = True``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What every connection of one manager shares."""

    spawner: Spawner
    seals: Seals
    redactor: Redactor
    sdk: Sdk
    eras: Eras
    around: Around = field(default_factory=Around)  # whom servers' questions go to
    logins: Logins | None = None
    sandbox: Sandbox | None = None

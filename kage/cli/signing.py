"""Make what signs in to HTTP servers: where sign-ins are kept, and how long a call waits."""

from __future__ import annotations

from collections.abc import Callable

from kage.cli.ground import Ground
from kage.core.processes import Spawner
from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.oauth.vault import Vault, find_keyring


def logins_for(
    here: Ground,
    warn: Callable[[str], None],
    *,
    waits: float = 0.0,
    spawner: Spawner | None = None,
) -> Logins:
    """Make the sign-ins of HTTP servers; nothing is read yet.

    Args:
        warn: Told in words what cannot be read or kept.
        waits: Seconds a running call waits for a person; 0 where nobody is there.
        spawner: Runs programs that print tokens; None: none is run.
    """
    keyring = None
    if here.settings.token_store == "keyring":
        keyring = find_keyring()
        if keyring is None:
            warn("There is no keyring here: sign-ins are kept in files (mode 0600)")
    folder = here.paths.data / "oauth"
    vault = Vault(folder, redactor=here.redact, notice=warn, keyring=keyring)
    return Logins(
        vault,
        environ=here.environ,
        redactor=here.redact,
        waits=waits,
        spawner=spawner,
        workspace=here.workspace,
    )

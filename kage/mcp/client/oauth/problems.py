"""Why a sign-in did not work, or is needed first."""

from __future__ import annotations

from kage.core.errors import ServerError


class NeedsAuth(ServerError):
    """A server wants a person to sign in; nothing was opened for that.

    The transport looks for ``needs_auth``, so that it need not know this class.
    """

    needs_auth = True

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(
            f"The server {server} wants you to sign in",
            server=server,
            stage="handshake",
            why=reason,
            fix=f"Sign in: kage mcp login {server} (in the chat: /mcp login {server})",
        )
        self.reason = reason


class SignInFailed(ServerError):
    """A sign-in was tried and came to nothing; ``code`` is the OAuth error, where there is one."""

    def __init__(self, server: str, why: str, *, fix: str = "", code: str = "") -> None:
        super().__init__(
            f"Signing in to the server {server} did not work",
            server=server,
            stage="handshake",
            why=why,
            fix=fix or f"Try again: kage mcp login {server}",
        )
        self.code = code


class Refused(Exception):
    """Something a server or its sign-in pages said is not safe to follow; the text says why."""


class Offline(Exception):
    """The authorization server could not be asked just now; what is stored may still be good."""

"""The sign-in at one server while kage runs: gives its token, renews it, waits for a person."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from kage.config.schema import OAuthSpec
from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.idtoken import IdToken
from kage.mcp.client.oauth.problems import NeedsAuth, Offline, Refused, SignInFailed
from kage.mcp.client.oauth.records import Key, Record
from kage.mcp.client.oauth.vault import Vault
from kage.mcp.client.wire.exchange import current_exchange

_BEAT = 1.0  # seconds between two signs of life for a call that waits for a person
_GONE = frozenset({"invalid_client", "unauthorized_client"})  # the client itself is not known


class Want(StrEnum):
    """What becomes of a request that met a refusal only a person can mend."""

    WAITING = "waiting"  # it waits for the person
    OVER = "over"  # it waits no more
    MISSED = "missed"  # it was refused, the connection is well


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A person is needed at a server, or no longer."""

    server: str
    reason: str
    want: Want


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whom a session tells that a person is needed."""

    needed: Callable[[Need], None]
    waits: float  # seconds a running call waits for the person; 0 = not at all


class Session:
    """Everything about one sign-in; connections come and go, it stays.

    Args:
        oauth: What the configuration says, variables expanded.
        id_token: What an identity provider says of the person.
    """

    def __init__(
        self,
        key: Key,
        oauth: OAuthSpec,
        guard: Guard,
        *,
        vault: Vault,
        told: Told,
        id_token: IdToken,
    ) -> None:
        self.key = key
        self.oauth = oauth
        self.guard = guard
        self.id_token = id_token
        self.challenge: Challenge | None = None  # the last refusal a person has to mend
        self._vault = vault
        self._told = told
        self._renewing = asyncio.Lock()
        self._waiting: set[asyncio.Event] = set()  # of the calls that wait for the person

    @property
    def record(self) -> Record | None:
        """What is kept, by this kage or another, unless the entry wants another sign-in by now."""
        kept = self._vault.load(self.key)
        return kept if kept is None or _fits(kept, self.oauth) else None

    @property
    def machine(self) -> bool:
        """Whether it signs in without a person."""
        return self.oauth.grant != "authorization_code"

    async def token(self) -> str:
        """Give the token to send, renewed if its end is near; "" when there is none."""
        record = self.record
        if record is None:
            return ""
        if record.access_token and record.due() and record.refresh_token:
            with contextlib.suppress(Offline, Refused):  # it may still be good; else a 401 follows
                record = await self._renew(record.access_token)
        return record.access_token if record is not None else ""

    async def recover(
        self, challenge: Challenge, used: str, *, call: bool, first: bool = False
    ) -> str:
        """Find another token after a refusal; "" when there is none and the refusal stands.

        Args:
            challenge: The refusal.
            used: The token that was refused, "" for none.
            call: Whether the request is one that may wait for a person.
            first: Whether it is one nothing can go on without.

        Raises:
            NeedsAuth: a person has to sign in before anything else can be done.
        """
        trouble = ""
        try:
            found = await self._without_person(challenge, used)
        except (Offline, Refused, SignInFailed) as error:
            found = ""
            trouble = error.why if isinstance(error, SignInFailed) else str(error)
        if found:
            return found
        self.challenge = challenge
        reason = trouble or challenge.reason
        if call and self._told.waits > 0 and not self.machine:
            return await self._wait(reason, used)
        if (first or not challenge.more) and not self._waiting:
            raise NeedsAuth(self.key.server, reason)
        if not self._waiting:
            self._tell(reason, Want.MISSED)
        return ""

    def signed_in(self, record: Record) -> None:
        """Keep a new sign-in; calls that wait for it go on."""
        self._vault.save(record)
        self.challenge = None
        for woken in self._waiting:
            woken.set()

    async def _without_person(self, challenge: Challenge, used: str) -> str:
        record = self.record
        if record is not None and record.access_token and record.access_token != used:
            return record.access_token  # renewed meanwhile, by this kage or another
        if self.machine:
            return await self._as_machine(challenge, used)
        if challenge.more or record is None or not record.refresh_token or not used:
            return ""
        if not await self._same_issuer(challenge, record):
            return ""
        renewed = await self._renew(used)
        return renewed.access_token if renewed is not None else ""

    async def _as_machine(self, challenge: Challenge, used: str) -> str:
        from kage.mcp.client.oauth.signin import SignIn

        async with self._renewing, self._vault.locked(self.key):
            record = self.record
            if record is not None and record.access_token and record.access_token != used:
                return record.access_token
            sign_in = SignIn(self.key, self.oauth, self.guard, old=record, id_token=self.id_token)
            new = await sign_in.run(challenge, None)
            self.signed_in(new)
            return new.access_token

    async def _same_issuer(self, challenge: Challenge, record: Record) -> bool:
        """Say whether the server still trusts the issuer the tokens are from."""
        from kage.mcp.client.oauth.discovery import issuers_of

        named = await issuers_of(self.key.url, challenge, self.guard)
        return not named or not record.issuer or record.issuer.rstrip("/") in named

    async def _renew(self, used: str) -> Record | None:
        """Renew under the lock, once among all kages; None: a person has to sign in again.

        Raises:
            Offline: the issuer could not be asked.
            Refused: its address is not one to follow.
        """
        from kage.mcp.client.oauth.renewal import refresh

        async with self._renewing, self._vault.locked(self.key):
            record = self.record  # as the one who had the lock before left it
            if record is None or not record.refresh_token:
                return None
            if record.access_token != used:
                return record
            try:
                new = await refresh(record, self.guard)
            except SignInFailed as error:
                new = replace(record, access_token="", refresh_token="", expires_at=0.0)
                if error.code in _GONE:
                    new = replace(new, client={})
                self._vault.save(new)
                return None
            self._vault.save(new)
            return new

    async def _wait(self, reason: str, used: str) -> str:
        """Wait for the person; the call's limit on silence does not run meanwhile."""
        loop, exchange = asyncio.get_running_loop(), current_exchange()
        woken = asyncio.Event()
        if exchange is not None:
            exchange.on_over(woken.set)  # the call was cancelled, or ran into its other limit
        end = loop.time() + self._told.waits
        self._waiting.add(woken)
        self._tell(reason, Want.WAITING)
        try:
            while loop.time() < end and not self._fresh(used):
                if exchange is not None:
                    exchange.beat()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_BEAT):  # another kage may sign in too
                        await woken.wait()
                        break
        finally:
            self._waiting.discard(woken)
            if not self._waiting:
                self._tell(reason, Want.OVER)
        return self._fresh(used)

    def _fresh(self, used: str) -> str:
        record = self.record
        return record.access_token if record is not None and record.access_token != used else ""

    def _tell(self, reason: str, want: Want) -> None:
        self._told.needed(Need(server=self.key.server, reason=reason, want=want))


def _fits(record: Record, oauth: OAuthSpec) -> bool:
    """Say whether a sign-in is with the issuer, and as the client, the entry names."""
    issuer, client = oauth.issuer.rstrip("/"), record.client.get("client_id")
    elsewhere = issuer and record.issuer and record.issuer.rstrip("/") != issuer
    return not elsewhere and (not oauth.client_id or client in (None, oauth.client_id))

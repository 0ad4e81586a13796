"""Every sign-in of one kage: what transports ask for tokens, and how a person signs in and out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kage.config.expand import child_environment, expand_oauth, expand_server
from kage.config.schema import OAuthSpec, ServerSpec
from kage.core.errors import UsageError
from kage.core.links import host_of
from kage.core.processes import Spawner
from kage.core.redact import Redactor
from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.idtoken import IdToken
from kage.mcp.client.oauth.loopback import Loopback, PortTaken
from kage.mcp.client.oauth.problems import Offline, Refused, SignInFailed
from kage.mcp.client.oauth.records import Key, Record
from kage.mcp.client.oauth.session import Need, Session, Told
from kage.mcp.client.oauth.vault import Vault
from kage.mcp.client.servers.printing import Program
from kage.mcp.client.transport.proxies import proxies_in

if TYPE_CHECKING:
    import httpx2

PERSON_TIME = 300.0  # seconds a person gets, and a running call waits for them


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page a person has to open to sign in."""

    server: str
    url: str
    host: str  # of ``url``, in ASCII
    paste: Callable[[str], None]  # takes the address the page ended at; raises Refused


Show = Callable[[Page], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One entry with its variables expanded, as far as signing in needs it."""

    spec: ServerSpec
    url: str
    headers: Mapping[str, str]


class Logins:
    """Signs in, renews and forgets; nothing is read before it is needed.

    Args:
        waits: Seconds a running call waits for a person; 0 where nobody is there.
        needed: Told when a request needs a person, and when no longer.
        spawner: Runs programs that print tokens; None: none is run.
        workspace: The folder they run in.
    """

    def __init__(
        self,
        vault: Vault,
        *,
        environ: Mapping[str, str],
        redactor: Redactor,
        waits: float = 0.0,
        needed: Callable[[Need], None] = lambda need: None,
        spawner: Spawner | None = None,
        workspace: Path | None = None,
    ) -> None:
        self.needed = needed
        self._vault = vault
        self._environ = environ
        self._redactor = redactor
        self._waits = waits
        self._spawner = spawner
        self._workspace = workspace or Path.cwd()
        self._sessions: dict[tuple[Key, OAuthSpec], Session] = {}

    def auth(self, spec: ServerSpec, url: str) -> httpx2.Auth | None:
        """Give what puts tokens on the requests to ``url``; None: this entry never signs in.

        Raises:
            ServerError: a variable of its ``oauth`` table is missing.
        """
        if spec.auth == "none":
            return None
        from kage.mcp.client.oauth.bearer import Bearer

        return Bearer(self.session(spec, url), eager=spec.auth == "oauth")

    def session(self, spec: ServerSpec, url: str) -> Session:
        """Give the sign-in of an entry, the same one each time."""
        oauth, secrets = expand_oauth(spec, self._environ)
        for name, value in secrets:
            self._redactor.add(name, value)
        key = Key(server=spec.name, origin=spec.origin, url=url)
        known = self._sessions.get((key, oauth))
        if known is None:
            told = Told(needed=self._tell, waits=self._waits)
            own = (url, oauth.issuer, oauth.idp_token_endpoint)
            guard = Guard(*own, proxies=proxies_in(self._environ))
            known = Session(
                key,
                oauth,
                guard,
                vault=self._vault,
                told=told,
                id_token=self._id_token(spec, oauth),
            )
            self._sessions[key, oauth] = known
        return known

    def _id_token(self, spec: ServerSpec, oauth: OAuthSpec) -> IdToken:
        argv = oauth.idp_id_token_command
        env = child_environment(self._environ, {}, (), hidden=spec.env_hidden)
        return IdToken(
            spec.name,
            written=oauth.idp_id_token,
            program=Program(argv=argv, cwd=self._workspace, env=env) if argv else None,
            spawner=self._spawner,
            secret=self._redactor.add,
        )

    def target(self, spec: ServerSpec, workspace: Path) -> Target:
        """Expand an entry for :meth:`login`.

        Raises:
            UsageError: it is not one to sign in to.
            ServerError: a variable is missing.
        """
        if not spec.url or spec.transport == "stdio":
            raise UsageError(f"{spec.name} is started by kage: there is nothing to sign in to")
        if spec.auth == "none":
            fix = f'Set auth = "auto" for [mcp.servers.{spec.name}]'
            raise UsageError(f'{spec.name} is never signed in to: its auth is "none"', fix=fix)
        authorization = next((n for n in spec.headers if n.lower() == "authorization"), "")
        if authorization:
            fix = f"Take {authorization} out of its headers to sign in instead"
            raise UsageError(f"{spec.name} sends its own {authorization} header", fix=fix)
        expanded = expand_server(spec, self._environ, workspace=workspace)
        for name, value in expanded.secrets:
            self._redactor.add(name, value)
        return Target(spec=spec, url=expanded.url, headers=expanded.headers)

    async def login(
        self,
        target: Target,
        show: Show,
        *,
        timeout: float = PERSON_TIME,
        scopes: tuple[str, ...] = (),
    ) -> Record:
        """Sign in: find out where, have ``show`` tell the person, wait for them, keep the tokens.

        Args:
            timeout: Seconds for all of it.
            scopes: To ask for besides what the server and the configuration name.

        Raises:
            SignInFailed: it did not work; says why.
        """
        quiet_sdk()
        session = self.session(target.spec, target.url)
        try:
            async with asyncio.timeout(timeout):
                record = await self._login(session, target, show, scopes)
        except TimeoutError:
            why = f"nobody signed in within {timeout:g} s"
            raise SignInFailed(target.spec.name, why) from None
        async with self._vault.locked(session.key):
            session.signed_in(record)
        return record

    async def logout(self, server: str) -> tuple[Key, ...]:
        """Forget every sign-in at servers called ``server``; their issuers are told if they listen.

        Returns:
            What was forgotten; () when there was nothing.
        """
        gone: list[Key] = []
        for key in tuple(self._vault.keys(server)):
            async with self._vault.locked(key):
                record = self._vault.load(key)
                if record is not None:
                    await self._revoke(record)
                if self._vault.forget(key):
                    gone.append(key)
        return tuple(gone)

    async def _login(
        self, session: Session, target: Target, show: Show, scopes: tuple[str, ...]
    ) -> Record:
        from kage.mcp.client.oauth.signin import Ask, SignIn

        challenge = session.challenge or await self._challenge(session, target)
        sign_in = SignIn(
            session.key,
            session.oauth,
            session.guard,
            old=session.record,
            extra=scopes,
            id_token=session.id_token,
        )
        if session.machine:
            return await sign_in.run(challenge, None)
        loopback = Loopback()
        try:
            await self._listen(loopback, session)

            async def shown(url: str) -> None:
                host = host_of(url)
                name = target.spec.name
                await show(Page(server=name, url=url, host=host, paste=loopback.paste))

            return await sign_in.run(challenge, Ask(loopback=loopback, show=shown))
        finally:
            await loopback.close()

    async def _challenge(self, session: Session, target: Target) -> Challenge:
        """Have the server say where to sign in."""
        from kage.mcp.client.oauth.discovery import ask_for_challenge, issuers_of

        name = target.spec.name
        try:
            headers = dict(target.headers)
            found = await ask_for_challenge(target.url, headers, session.guard)
            if found is not None:
                return found
            anyway = Challenge(status=401)
            if await issuers_of(target.url, anyway, session.guard):
                return anyway
        except (Refused, Offline) as error:
            raise SignInFailed(name, str(error)) from None
        why = "the server does not ask for it, and names no place to do it"
        raise SignInFailed(name, why, fix=f"Try it: kage mcp test {name}")

    async def _listen(self, loopback: Loopback, session: Session) -> None:
        port = session.oauth.redirect_port
        try:
            await loopback.open(port, preferred=_old_port(session.record))
        except PortTaken:
            server = session.key.server
            fix = (
                f"End what uses port {port}, or set another redirect_port in "
                f"[mcp.servers.{server}.oauth] (0 = any free one)"
            )
            raise SignInFailed(server, f"port {port} of 127.0.0.1 is in use", fix=fix) from None
        except OSError as error:
            why = f"nothing can listen on 127.0.0.1: {error.strerror or error}"
            raise SignInFailed(session.key.server, why) from None

    async def _revoke(self, record: Record) -> None:
        from kage.mcp.client.oauth.renewal import revoke

        quiet_sdk()
        await revoke(record, Guard(record.url, proxies=proxies_in(self._environ)))

    def _tell(self, need: Need) -> None:
        self.needed(need)


def quiet_sdk() -> None:
    """Keep the SDK's loggers off the terminal: what they say is said by kage, without secrets."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
        logger.propagate = False


def _old_port(record: Record | None) -> int:
    """Give the port the kept client was registered with, 0 when there is none."""
    found = record.client.get("redirect_uris") if record is not None else None
    try:
        return urlsplit(str(found[0])).port or 0 if isinstance(found, list) and found else 0
    except ValueError:
        return 0

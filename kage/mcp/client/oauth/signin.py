"""One sign-in from the refusal to the tokens: the SDK's flow, sent over the guarded wire.

Imports the SDK: import it late.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from kage.config.schema import OAuthSpec
from kage.core.sanitise import clip, visible
from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.guard import Guard, origin_of
from kage.mcp.client.oauth.idtoken import IdToken
from kage.mcp.client.oauth.loopback import Loopback
from kage.mcp.client.oauth.problems import Offline, Refused, SignInFailed
from kage.mcp.client.oauth.records import Key, Record, expiry
from kage.mcp.client.oauth.renewal import Drawer
from kage.mcp.client.oauth.wire import Wire
from kage.mcp.client.oauth.wishes import Wishes

_PROTOCOL = "mcp-protocol-version"
_BESIDE = "client_metadata_url"  # of a registered client: the address its issuer did not take


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """How a person gets to the sign-in page and back."""

    loopback: Loopback
    show: Callable[[str], Awaitable[None]]  # the page's address


class _Person(OAuthClientProvider):
    """The code flow, as the configuration wants it."""

    wishes: Wishes

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return self.wishes.choose(advertised)

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        self.wishes.settle(self.context)
        return await super()._perform_authorization_code_grant()


class _Machine(ClientCredentialsOAuthProvider):
    wishes: Wishes

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return self.wishes.choose(advertised)

    async def _exchange_token_client_credentials(self) -> httpx2.Request:
        if self.context.client_info is not None:
            self.context.client_info.token_endpoint_auth_method = None
        self.wishes.settle(self.context)
        return await super()._exchange_token_client_credentials()


class _SigningMachine(PrivateKeyJWTOAuthProvider):
    wishes: Wishes

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return self.wishes.choose(advertised)

    async def _exchange_token_client_credentials(self) -> httpx2.Request:
        self.wishes.settle(self.context)
        return await super()._exchange_token_client_credentials()


_AnyProvider = _Person | _Machine | _SigningMachine


class SignIn:
    """Signs in to one server once.

    Args:
        old: What was kept of an earlier sign-in; its client is used again where it may be.
        extra: Scopes to ask for besides the others.
        id_token: What an identity provider says of the person, where one vouches for them.
    """

    def __init__(
        self,
        key: Key,
        oauth: OAuthSpec,
        guard: Guard,
        *,
        old: Record | None = None,
        extra: tuple[str, ...] = (),
        id_token: IdToken | None = None,
    ) -> None:
        self._key = key
        self._oauth = oauth
        self._guard = guard
        self._old = old
        self._extra = extra
        self._id_token = id_token

    async def run(self, challenge: Challenge, ask: Ask | None) -> Record:
        """Sign in and give what is to be kept; ``ask`` None: as a machine.

        Raises:
            SignInFailed: it did not work; says why.
        """
        wishes = Wishes(self._oauth, self._extra)
        wishes.more = challenge.more
        try:
            return await self._try(challenge, ask, wishes)
        except SignInFailed as error:
            if error.code != "invalid_scope":
                raise
        wishes.without_scopes = True  # from asking for everything a server lists
        return await self._try(challenge, ask, wishes)

    async def _try(self, challenge: Challenge, ask: Ask | None, wishes: Wishes) -> Record:
        async with Wire(self._guard) as wire:
            try:
                if self._oauth.grant == "identity_assertion":
                    return await self._vouched(challenge, wire)
                provider, drawer = self._provider(challenge, ask)
                provider.wishes = wishes
                await _drive(provider, wire, challenge, self._key.url)
                return self._record(provider, drawer)
            except SignInFailed:
                raise
            except (Refused, Offline) as error:
                raise self._failed(str(error), wire) from None
            except (OAuthFlowError, ValidationError, ValueError, UnicodeError) as error:
                raise self._failed(_plain(error), wire, error) from None

    async def _vouched(self, challenge: Challenge, wire: Wire) -> Record:
        from kage.mcp.client.oauth.assertion import sign_in

        async def drive(provider: httpx2.Auth) -> None:
            await _drive(provider, wire, challenge, self._key.url)

        assert self._id_token is not None
        return await sign_in(self._key, self._oauth, wire, drive, id_token=self._id_token)

    def _provider(self, challenge: Challenge, ask: Ask | None) -> tuple[_AnyProvider, Drawer]:
        if ask is None:
            return self._machine()
        redirect = AnyUrl(ask.loopback.redirect_uri)
        granted = self._old if challenge.more else None
        tokens = None
        if granted is not None and granted.access_token:
            tokens = OAuthToken(access_token=granted.access_token, scope=granted.scope or None)
        drawer = Drawer(tokens, self._client(str(redirect)))
        provider = _Person(
            self._key.url,
            OAuthClientMetadata(client_name="kage", redirect_uris=[redirect]),
            drawer,
            redirect_handler=lambda url: self._show(url, ask),
            callback_handler=lambda: self._answer(ask),
            client_metadata_url=self._oauth.client_metadata_url or None,
        )
        return provider, drawer

    def _machine(self) -> tuple[_AnyProvider, Drawer]:
        oauth, drawer = self._oauth, Drawer(None, None)
        scope = " ".join(oauth.scopes) or None
        issuer = oauth.issuer or None
        provider: _AnyProvider
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the issuer is optional here: the person may set it
            if oauth.private_key:
                signed = SignedJWTParameters(
                    issuer=oauth.client_id,
                    subject=oauth.client_id,
                    signing_key=oauth.private_key,
                    signing_algorithm=oauth.signing_algorithm,
                )
                provider = _SigningMachine(
                    self._key.url,
                    drawer,
                    oauth.client_id,
                    signed.create_assertion_provider(),
                    scope=scope,
                    issuer=issuer,
                )
            else:
                provider = _Machine(
                    self._key.url,
                    drawer,
                    oauth.client_id,
                    oauth.client_secret,
                    scope=scope,
                    issuer=issuer,
                )
        return provider, drawer

    def _client(self, redirect: str) -> OAuthClientInformationFull | None:
        """Give the client to use, None to register one."""
        oauth = self._oauth
        if oauth.client_id:
            return OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=oauth.client_secret or None,
                redirect_uris=[AnyUrl(redirect)],
            )
        known = self._old.client if self._old is not None else {}
        described = oauth.client_metadata_url
        if not known or (described and known.get(_BESIDE) != described):
            return None
        try:
            client = OAuthClientInformationFull.model_validate(known)
        except ValidationError:
            return None
        fits = redirect in [str(uri) for uri in client.redirect_uris or ()]
        return client if fits else None

    async def _show(self, url: str, ask: Ask) -> None:
        head, mark, query = url.partition("?")
        url = head + mark + query.replace("?", "&")  # the endpoint may have a query of its own
        parts = self._guard.check(url, "authorization_endpoint")
        scheme, host, port = origin_of(parts)
        with contextlib.suppress(OSError):  # the browser may find a host that kage does not
            await self._guard.addresses(scheme, host, port)
        ask.loopback.expect(parse_qs(parts.query).get("state", [""])[0])
        await ask.show(url)

    async def _answer(self, ask: Ask) -> AuthorizationCodeResult:
        answer = await ask.loopback.answer()
        if answer.error:
            why = f"the sign-in page said {answer.error}"
            if answer.description:
                why += f": {answer.description}"
            raise SignInFailed(self._key.server, why, code=answer.error)
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    def _record(self, provider: _AnyProvider, drawer: Drawer) -> Record:
        context = provider.context
        tokens, client, metadata = drawer.tokens, context.client_info, context.oauth_metadata
        if tokens is None or client is None:
            raise OAuthFlowError("it gave no token")
        revoke = metadata.revocation_endpoint if metadata is not None else None
        indicated = context.should_include_resource_param(context.protocol_version)
        return Record(
            server=self._key.server,
            origin=self._key.origin,
            url=self._key.url,
            issuer=str(metadata.issuer) if metadata is not None else "",
            token_endpoint=provider._get_token_endpoint(),
            revocation_endpoint=str(revoke) if revoke is not None else "",
            resource=context.get_resource_url() if indicated else "",
            client=self._kept(client),
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or "",
            scope=tokens.scope or "",
            expires_at=expiry(tokens.expires_in),
        )

    def _kept(self, client: OAuthClientInformationFull) -> dict[str, Any]:
        """Give the client as it is kept: to be used again for as long as it would be made again."""
        kept: dict[str, Any] = client.model_dump(mode="json", exclude_none=True)
        url = self._oauth.client_metadata_url
        if url and client.client_id != url:  # its issuer does not take such an address
            kept[_BESIDE] = url
        return kept

    def _failed(self, why: str, wire: Wire, error: Exception | None = None) -> SignInFailed:
        server = self._key.server
        code = "invalid_scope" if "invalid_scope" in why else ""
        fix = ""
        if isinstance(error, OAuthRegistrationError):
            fix = (
                "Register kage there by hand and set client_id in "
                f"[mcp.servers.{server}.oauth], with redirect_port if it wants a fixed address"
            )
        elif "does not match expected" in why:
            fix = f"Set url of [mcp.servers.{server}] to the address the server names, if it is its"
        if wire.notes and not code:
            why += f" (on the way: {'; '.join(wire.notes[-4:])})"
        return SignInFailed(server, clip(visible(why, single_line=True), 900), fix=fix, code=code)


async def _drive(provider: httpx2.Auth, wire: Wire, challenge: Challenge, url: str) -> None:
    """Run the SDK's flow on a request that was refused already."""
    headers = {_PROTOCOL: challenge.protocol} if challenge.protocol else {}
    request = httpx2.Request("POST", url, headers=headers)
    refused = httpx2.Response(challenge.status, headers=challenge.headers(), request=request)
    flow = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        shown = False
        while not (outgoing is request and shown):
            if outgoing is request:
                shown = True
                answer = refused
            else:
                answer = await wire.send(outgoing)
            outgoing = await flow.asend(answer)
    except StopAsyncIteration:
        pass
    finally:
        await flow.aclose()


def _plain(error: Exception) -> str:
    """Say what the SDK met, without its classes and links."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        return f"an answer of the sign-in is wrong at {place}: {first['msg']}"
    text = str(error).strip()
    if text.startswith("State parameter mismatch"):
        return "the answer belongs to another sign-in (state)"
    head, _, rest = text.partition("\n")
    return head if rest else (text or "it gave no reason")

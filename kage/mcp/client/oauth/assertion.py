"""Sign in with what an enterprise's identity provider says of the person (SEP-990).

The person's ID token is exchanged at their identity provider for an assertion meant for one
authorization server (RFC 8693), and that one gives the token for it (RFC 7523). Which authorization
server that is says the configuration: the MCP server is never asked. Imports the SDK: import it
late.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth_utils import resource_url_from_server_url

from kage.config.schema import OAuthSpec
from kage.core.sanitise import clip, visible
from kage.mcp.client.oauth.idtoken import IdToken
from kage.mcp.client.oauth.records import Key, Record, expiry
from kage.mcp.client.oauth.renewal import Drawer
from kage.mcp.client.oauth.wire import Wire

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
_ASSERTION = "urn:ietf:params:oauth:token-type:id-jag"

Drive = Callable[[httpx2.Auth], Awaitable[None]]  # runs the flow on the refusal that came


async def sign_in(
    key: Key, oauth: OAuthSpec, wire: Wire, drive: Drive, *, id_token: IdToken
) -> Record:
    """Sign in and give what is to be kept; there is nothing to renew it with.

    Raises:
        SignInFailed: the ID token could not be had.
        OAuthFlowError: one of the two refused, or answered something else.
        Refused: an address is not one to follow.
        Offline: one of the two could not be asked.
    """

    async def assertion(audience: str, resource: str) -> str:
        said = await id_token.get()
        return await _assertion(oauth, wire, said, audience=audience, resource=resource)

    drawer = Drawer(None, None)
    provider = IdentityAssertionOAuthProvider(
        key.url,
        drawer,
        oauth.client_id,
        oauth.client_secret,
        oauth.issuer,
        assertion,
        scope=" ".join(oauth.scopes) or None,
        token_endpoint_auth_method="client_secret_basic",
    )
    await drive(provider)
    tokens = drawer.tokens
    if tokens is None:
        raise OAuthFlowError("it gave no token")
    return Record(
        server=key.server,
        origin=key.origin,
        url=key.url,
        issuer=oauth.issuer,
        token_endpoint=provider._token_endpoint or "",
        revocation_endpoint="",
        resource=resource_url_from_server_url(key.url),
        client={},  # the configuration has it
        access_token=tokens.access_token,
        refresh_token="",
        scope=tokens.scope or "",
        expires_at=expiry(tokens.expires_in),
    )


async def _assertion(
    oauth: OAuthSpec, wire: Wire, id_token: str, *, audience: str, resource: str
) -> str:
    """Have the identity provider vouch for the person to ``audience``, for ``resource`` alone."""
    data = {
        "grant_type": _EXCHANGE,
        "requested_token_type": _ASSERTION,
        "subject_token": id_token,
        "subject_token_type": _ID_TOKEN,
        "audience": audience,
        "resource": resource,
        "client_id": oauth.idp_client_id,
    }
    if oauth.scopes:
        data["scope"] = " ".join(oauth.scopes)
    answer = await wire.send(httpx2.Request("POST", oauth.idp_token_endpoint, data=data))
    found = _object(answer.content)
    if answer.status_code != 200:
        code = found.get("error_description") or found.get("error") or answer.status_code
        said = clip(visible(str(code), single_line=True), 200)
        raise OAuthFlowError(f"the identity provider did not vouch for you: {said}")
    token, kind = found.get("access_token"), found.get("issued_token_type")
    if kind != _ASSERTION or not isinstance(token, str) or not token:
        raise OAuthFlowError("the identity provider gave something else than was asked for")
    return token


def _object(content: bytes) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

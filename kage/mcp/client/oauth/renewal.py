"""Renew and revoke the tokens of a kept sign-in. Imports the SDK: import it late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from kage.core.sanitise import clip, visible
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.problems import Offline, Refused, SignInFailed
from kage.mcp.client.oauth.records import Record, expiry
from kage.mcp.client.oauth.wire import Wire


class Drawer:
    """What the SDK stores while it works; what is kept of it is decided at the end."""

    def __init__(
        self, tokens: OAuthToken | None, client: OAuthClientInformationFull | None
    ) -> None:
        self.tokens = tokens
        self.client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def refresh(record: Record, guard: Guard) -> Record:
    """Renew the tokens of ``record`` at whoever issued them.

    Raises:
        SignInFailed: they are not renewed any more; ``code`` says which way.
        Offline: the authorization server could not be asked, or is in trouble itself.
        Refused: its address is not one to follow.
    """
    try:
        context, client = _proof(record)
    except ValidationError:
        raise SignInFailed(record.server, "the client that was kept cannot be read") from None
    data = {
        "grant_type": "refresh_token",
        "refresh_token": record.refresh_token,
        "client_id": client.client_id,
        **({"resource": record.resource} if record.resource else {}),
    }
    answer = await _post(record.token_endpoint, data, context, guard)
    if answer.status_code >= 500 or answer.status_code == 429:
        raise Offline(f"{answer.request.url.host} answered {answer.status_code}")
    if answer.status_code != 200:
        code = _error_code(answer)
        why = f"the sign-in is not renewed any more ({code or answer.status_code})"
        raise SignInFailed(record.server, why, code=code or "invalid_grant")
    try:
        tokens = OAuthToken.model_validate_json(answer.content)
    except ValidationError:
        raise Offline(f"{answer.request.url.host} gave no token kage can read") from None
    return _renewed(record, tokens)


async def revoke(record: Record, guard: Guard) -> bool:
    """Tell the issuer that the tokens are no longer wanted; False when it did not agree."""
    if not record.revocation_endpoint or not record.client:
        return False
    done = False
    kinds = (("refresh_token", record.refresh_token), ("access_token", record.access_token))
    try:
        context, client = _proof(record)
        for kind, token in kinds:
            data = {"token": token, "token_type_hint": kind}
            if token:
                data["client_id"] = client.client_id
                answer = await _post(record.revocation_endpoint, data, context, guard)
                done = answer.status_code == 200 or done
    except (Refused, Offline, OAuthFlowError, ValidationError):
        return done
    return done


def _proof(record: Record) -> tuple[OAuthContext, OAuthClientInformationFull]:
    """Make what lets a kept client prove itself to its issuer."""
    client = OAuthClientInformationFull.model_validate(dict(record.client))
    context = OAuthContext(
        server_url=record.url,
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=Drawer(None, None),
        redirect_handler=None,
        callback_handler=None,
    )
    context.client_info = client
    return context, client


def _renewed(record: Record, tokens: OAuthToken) -> Record:
    return replace(
        record,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or record.refresh_token,  # not every server rotates
        scope=tokens.scope or record.scope,
        expires_at=expiry(tokens.expires_in),
    )


async def _post(
    url: str, data: dict[str, str], context: OAuthContext, guard: Guard
) -> httpx2.Response:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    data, headers = context.prepare_token_auth(data, headers)
    async with Wire(guard) as wire:
        return await wire.send(httpx2.Request("POST", url, data=data, headers=headers))


def _error_code(answer: httpx2.Response) -> str:
    try:
        found: Any = answer.json()  # any JSON
    except ValueError:
        return ""
    code = found.get("error") if isinstance(found, dict) else None
    return clip(visible(code, single_line=True), 60) if isinstance(code, str) else ""

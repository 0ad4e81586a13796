"""Ask a server who may sign a person in, without signing in. Imports the SDK: import it late."""

from __future__ import annotations

import json

import httpx2
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls

from kage.mcp.client.oauth.challenge import Challenge
from kage.mcp.client.oauth.guard import Guard
from kage.mcp.client.oauth.problems import Offline
from kage.mcp.client.oauth.wire import Wire

_HELLO = {
    "jsonrpc": "2.0",
    "id": "kage-sign-in",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "kage", "version": "0"},
    },
}


async def issuers_of(url: str, challenge: Challenge, guard: Guard) -> frozenset[str]:
    """Give the issuers a server's metadata names, without a trailing slash; none found: empty.

    Raises:
        Refused: the metadata is not at a place kage goes to, or names such a place.
    """
    named = challenge.field("resource_metadata") or None
    async with Wire(guard) as wire:
        for place in build_protected_resource_metadata_discovery_urls(named, url):
            try:
                answer = await wire.send(httpx2.Request("GET", place))
                found = json.loads(answer.content) if answer.status_code == 200 else None
            except (Offline, ValueError, RecursionError):
                continue
            servers = found.get("authorization_servers") if isinstance(found, dict) else None
            if isinstance(servers, list) and servers:
                return frozenset(str(server).rstrip("/") for server in servers)
    return frozenset()


async def ask_for_challenge(url: str, headers: dict[str, str], guard: Guard) -> Challenge | None:
    """Send a greeting without token and give the refusal; None: the server does not ask for one.

    Raises:
        Refused: the address is not one to follow.
        Offline: the server could not be reached.
    """
    sent = {
        **headers,
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    async with Wire(guard) as wire:
        answer = await wire.probe(httpx2.Request("POST", url, headers=sent, json=_HELLO))
        challenge = Challenge.of(answer.status_code, answer.headers.get("www-authenticate"))
        if challenge is None and answer.status_code == 405:  # an older server listens on GET only
            answer = await wire.probe(httpx2.Request("GET", url, headers=sent))
            challenge = Challenge.of(answer.status_code, answer.headers.get("www-authenticate"))
    return challenge

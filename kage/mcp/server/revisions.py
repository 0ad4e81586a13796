"""The five revisions of MCP as this server speaks them: what each has, and the shapes it wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kage.mcp.server.rpc import INVALID_PARAMS, UNSUPPORTED_VERSION, Invalid

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_HANDSHAKE = HANDSHAKE[-1]
MODERN = "2026-07-28"
ALL = (*HANDSHAKE, MODERN)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
CACHE_HINTS = {"ttlMs": 3_600_000, "cacheScope": "private"}  # nothing changes while it runs


class Era(NamedTuple):
    """What one request is to be answered with."""

    revision: str
    elicits: bool  # the client can put a form to a person

    @property
    def modern(self) -> bool:
        """Whether each request stands for itself."""
        return self.revision == MODERN

    def since(self, revision: str) -> bool:
        """Whether this revision is ``revision`` or a later one."""
        return self.revision >= revision  # dates; both are of ALL


def is_modern(params: Mapping[str, Any]) -> bool:  # JSON
    """Say whether a request carries the envelope of 2026-07-28."""
    meta = params.get("_meta")
    return type(meta) is dict and VERSION_KEY in meta


def modern_era(params: Mapping[str, Any]) -> Era:  # JSON
    """Read the envelope.

    Raises:
        Invalid: a required field is missing, or the version is not spoken here.
    """
    meta = params["_meta"]
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise Invalid(INVALID_PARAMS, f"{VERSION_KEY} must be text")
    if CAPABILITIES_KEY not in meta:
        raise Invalid(INVALID_PARAMS, f"params._meta is missing {CAPABILITIES_KEY}")
    capabilities = meta[CAPABILITIES_KEY]
    if not isinstance(capabilities, dict):
        raise Invalid(INVALID_PARAMS, f"{CAPABILITIES_KEY} must be an object")
    if version != MODERN:
        raise Invalid(
            UNSUPPORTED_VERSION,
            "Unsupported protocol version",
            data={"supported": [MODERN], "requested": version[:64]},
        )
    return Era(revision=MODERN, elicits=_elicits(capabilities))


def handshake_era(params: Mapping[str, Any]) -> Era:  # JSON
    """Read the parameters of ``initialize``; an unknown version is answered with the latest.

    Raises:
        Invalid: the parameters are not what the handshake takes.
    """
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise Invalid(INVALID_PARAMS, "initialize needs protocolVersion, as text")
    capabilities = params.get("capabilities", {})
    if not isinstance(capabilities, dict) or not isinstance(params.get("clientInfo", {}), dict):
        raise Invalid(INVALID_PARAMS, "capabilities and clientInfo must be objects")
    revision = version if version in HANDSHAKE else LATEST_HANDSHAKE
    return Era(revision=revision, elicits=revision >= "2025-06-18" and _elicits(capabilities))


def _elicits(capabilities: Mapping[str, Any]) -> bool:
    declared = capabilities.get("elicitation")
    # an empty object means forms; with modes in it, form must be one of them
    return isinstance(declared, dict) and (
        not declared or isinstance(declared.get("form"), dict) or "url" not in declared
    )


def tool_shape(full: Mapping[str, Any], revision: str) -> dict[str, Any]:  # JSON
    """Leave out of a complete tool definition what ``revision`` does not have."""
    later = {"annotations": "2025-03-26", "title": "2025-06-18", "outputSchema": "2025-06-18"}
    return {key: value for key, value in full.items() if revision >= later.get(key, "")}

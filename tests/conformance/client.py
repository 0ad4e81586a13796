"""The client the conformance suite runs: kage's own parts, driven through one scenario.

``python -m tests.conformance.client URL``, with the suite's variables ``MCP_CONFORMANCE_SCENARIO``,
``MCP_CONFORMANCE_CONTEXT`` (JSON) and ``MCP_CONFORMANCE_PROTOCOL_VERSION``. What it tells goes to
stderr; it ends with 1 when the server did not come up.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.conformance.house import Down, House, house, say

_HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_METADATA = "https://conformance-test.local/client-metadata.json"  # the suite looks for it
_SECRETS = {  # what the settings call it, and the suite
    "client_secret": "client_secret",
    "private_key": "private_key_pem",
    "idp_id_token": "idp_id_token",
}

Json = dict[str, Any]  # of the suite
Scenario = Callable[[House, Json], Awaitable[None]]


async def _listing(kage: House, context: Json) -> None:
    """Do nothing: the tools were listed at the start."""


async def _adding(kage: House, context: Json) -> None:
    await kage.call("add_numbers", {"a": 5, "b": 3})


async def _each(kage: House, context: Json) -> None:
    for name in tuple(kage.tools):
        await kage.call(name)


async def _reconnecting(kage: House, context: Json) -> None:
    await kage.call("test_reconnection")


async def _defaults(kage: House, context: Json) -> None:
    await kage.call("test_client_elicitation_defaults")


async def _rounds(kage: House, context: Json) -> None:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await kage.call(f"test_mrtr_{name}")


async def _preserving(kage: House, context: Json) -> None:
    schema = kage.tools["json_schema_2020_12_tool"].spec.schema
    await kage.call("json_schema_echo", {"schema": schema})


async def _given(kage: House, context: Json) -> None:
    """Make the calls the suite wants, of the tools that were accepted."""
    for call in context.get("toolCalls", ()):
        if call["name"] in kage.tools:
            await kage.call(call["name"], call.get("arguments"))


async def _all(kage: House, context: Json) -> None:
    for name, tool in kage.tools.items():
        await kage.call(name, _filled(tool.spec.schema))


async def _first(kage: House, context: Json) -> None:
    for name in tuple(kage.tools)[:1]:
        await kage.call(name)


SCENARIOS: Mapping[str, Scenario] = {
    "initialize": _listing,
    "json-schema-ref-no-deref": _listing,
    "tools_call": _adding,
    "request-metadata": _adding,
    "http-standard-headers": _each,
    "sse-retry": _reconnecting,
    "elicitation-sep1034-client-defaults": _defaults,
    "sep-2322-client-request-state": _rounds,
    "json-schema-2020-12-preservation": _preserving,
    "http-custom-headers": _given,
    "http-invalid-tool-headers": _all,
}


def entry_for(url: str, scenario: str, context: Json, revision: str) -> Json:
    """Make the server's table of the settings file, the way a person would write it."""
    entry: Json = {"url": url, "transport": "http", "allow_sampling": True}
    if revision in _HANDSHAKE:
        entry["protocol"] = "legacy"
    if scenario.startswith("auth/"):
        entry["oauth"] = _oauth(url, scenario, context)
    return entry


def _oauth(url: str, scenario: str, context: Json) -> Json:
    if not context.get("client_id"):
        return {"client_metadata_url": _METADATA}
    oauth: Json = {"client_id": context["client_id"]}
    if scenario.startswith("auth/client-credentials"):
        oauth["grant"] = "client_credentials"
    for key, given in _SECRETS.items():
        if context.get(given):
            variable = f"CONFORMANCE_{given.upper()}"
            os.environ[variable] = context[given]
            oauth[key] = f"${{{variable}}}"
    if "private_key" in oauth:
        oauth["signing_algorithm"] = context.get("signing_algorithm", "ES256")
    if "idp_id_token" in oauth:
        named = ("idp_client_id", "idp_token_endpoint")
        oauth |= {"grant": "identity_assertion", "issuer": _issuer(url)}
        oauth |= {key: context[key] for key in named}
    return oauth


def _issuer(url: str) -> str:
    """Find out what a person would have been told: the suite names it nowhere else."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(place, timeout=20) as answer:
        return str(json.load(answer)["authorization_servers"][0])


def _filled(schema: Mapping[str, Any]) -> Json:
    """Give arguments with something of the right type in each that is required."""
    some = {"integer": 0, "number": 0, "boolean": False, "object": {}, "array": [], "null": None}
    types = {name: found.get("type") for name, found in schema.get("properties", {}).items()}
    return {name: some.get(types.get(name, ""), "x") for name in schema.get("required", ())}


async def run(url: str, scenario: str, context: Json, revision: str) -> int:
    """Run one scenario; give the exit code."""
    steps = SCENARIOS.get(scenario, _first if scenario.startswith("auth/") else _listing)
    entry = entry_for(url, scenario, context, revision)
    with tempfile.TemporaryDirectory(prefix="kage-conformance-") as folder:
        try:
            async with house(Path(folder), entry) as kage:
                await steps(kage, context)
        except Down as down:
            say(f"down: {down}")
            return 1
        finally:
            os.chdir("/")
    return 0


def main() -> int:
    """Run the scenario the suite asks for."""
    if len(sys.argv) != 2:
        print("usage: python -m tests.conformance.client URL", file=sys.stderr)
        return 2
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    say(f"{scenario or 'no scenario'} at {revision or 'any revision'}")
    return asyncio.run(run(sys.argv[1], scenario, context, revision))


if __name__ == "__main__":
    sys.exit(main())

"""Read ``[providers.<name>]``, and know which variables hold model keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kage.config import keys
from kage.config.schema import ProviderSpec
from kage.config.tables import Table

VENDORS = ("anthropic", "openai")
PROVIDER_KEYS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY_WORDS = frozenset({"api_key", "apikey", "key", "token", "api_token"})


def read_providers(table: Table) -> dict[str, ProviderSpec]:
    """Read every endpoint; one with a mistake is reported and left out."""
    found: dict[str, ProviderSpec] = {}
    for name in table.data:
        entry = table.table(name)
        spec = None if entry is None else _provider(entry, name)
        if spec is not None:
            found[name] = spec
    return found


def key_variables(providers: Mapping[str, ProviderSpec]) -> frozenset[str]:
    """Name every variable that holds a model key; no server may get one by ``env_pass``."""
    named = {spec.api_key_env for spec in providers.values() if spec.api_key_env}
    return PROVIDER_KEYS | named


def _provider(table: Table, name: str) -> ProviderSpec | None:
    if not _NAME.fullmatch(name):
        table.fault("is no name for a provider", expected="letters, digits, . _ and -")
    if name == "offline":
        table.fault("is the name of kage's own provider")
    data = {key: value for key, value in table.data.items() if key.lower() not in _KEY_WORDS}
    for key in table.data.keys() - data.keys():
        table.fault(
            "would keep the key in this file",
            key=key,
            expected='api_key_env = "NAME_OF_A_VARIABLE"',
        )
    if data.get("kind") == "openai-responses":
        table.fault(
            "is not supported in this version", key="kind", expected='"anthropic" or "openai"'
        )
        data.pop("kind")
    reader = Table(table.document, data, table.report, table.path)
    found: dict[str, Any] = reader.read(keys.PROVIDER)
    kind = found.pop("kind", "anthropic" if name == "anthropic" else "openai")
    if "base_url" not in data and name not in VENDORS:
        reader.fault("has no base_url", expected="the endpoint's address")
    if not (table.sound and reader.sound):
        return None
    return ProviderSpec(name=name, kind=kind, place=table.place, **found)

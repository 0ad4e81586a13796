"""Find out which models there are, choose one, and make its provider."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from dataclasses import replace

from kage.config.schema import ProviderSpec, Settings
from kage.core.errors import KageError, UnknownModel
from kage.core.usage import Price
from kage.providers import table
from kage.providers.base import ModelInfo, Provider
from kage.providers.endpoints import (
    LABELS,
    LOCAL_PORTS,
    Endpoint,
    endpoint_of,
    local_spec,
)
from kage.providers.errors import missing_key
from kage.providers.listing import list_models, probe
from kage.providers.offline import ID as OFFLINE
from kage.providers.offline import Offline

ASK = 3.0  # seconds an endpoint has to list its models
VENDORS = ("anthropic", "openai")
DEFAULTS = {"anthropic": table.ANTHROPIC_DEFAULT, "openai": table.OPENAI_DEFAULT}
REPLY = 32_000  # tokens of one reply, where the person set nothing and the model can
REPLY_UNKNOWN = 8_192  # the same for a model kage knows nothing about


class Models:
    """The models of this person: configured, behind the vendors' keys, or on this machine.

    Nothing is asked before ``choose`` or ``available``. ``local_ports`` are the model servers
    that are looked for on this machine.
    """

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        local_ports: Mapping[str, int] = LOCAL_PORTS,
        markdown: bool = False,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._ports = local_ports
        self._markdown = markdown  # whether the front end draws it; a model writes it anyway
        self._seen: dict[str, ModelInfo] = {}  # what listings said

    async def choose(self) -> tuple[str, str]:
        """Give (model id, reason): the config's, a key's, this machine's, else offline."""
        if self._settings.model:
            return self._settings.model, "model in the configuration"
        for name in VENDORS:
            endpoint = self._endpoint(name)
            if endpoint is not None and endpoint.key_from:
                return await self._default(endpoint), f"{endpoint.key_from} is set"
        for name, found in (await self._probe()).items():
            reason = f"{LABELS.get(name, name)} answers on port {self._ports[name]}"
            return found[0].id, reason
        for name, spec in self._settings.providers.items():
            if spec.models:
                return f"{name}:{spec.models[0]}", f"the first model of providers.{name}"
        return OFFLINE, "no key is set and no model server answers on this machine"

    def create(self, model: str) -> Provider:
        """Make the provider of ``model``; connects to nothing.

        Raises:
            UnknownModel: there is no such provider.
            AuthFailed: its key is not set.
        """
        if model == OFFLINE or model.startswith(f"{OFFLINE}:"):
            return Offline(markdown=self._markdown)
        provider, _, name = model.partition(":")
        spec = self._spec(provider)
        if spec is None:
            raise self._unknown(model, provider, name)
        endpoint = endpoint_of(spec, self._environ)
        if not name:
            name = spec.models[0] if spec.models else DEFAULTS.get(provider, "")
        if not name:
            raise UnknownModel(
                f"{model!r} names a provider and no model",
                fix=f"Write {provider}:NAME; /model in the chat lists what it has.",
                provider=provider,
            )
        target = endpoint.target(name)
        if endpoint.key_missing:
            raise missing_key(target)
        info = self._info(endpoint, name)
        if endpoint.kind == "anthropic":
            from kage.providers.anthropic import Anthropic

            return Anthropic(
                info,
                target,
                headers=endpoint.headers,
                max_tokens=_reply_limit(spec, info),
                budget=spec.thinking,
            )
        from kage.providers.openai import OpenAI

        return OpenAI(
            info,
            target,
            headers=endpoint.headers,
            max_tokens=spec.max_tokens,
            budget=spec.thinking,
            vendor=endpoint.vendor,
        )

    async def available(self) -> tuple[ModelInfo, ...]:
        """Give every model that can be chosen now; endpoints are asked side by side.

        One that does not answer in time is left with what the config and kage's own table say.
        """
        endpoints = [self._endpoint(name) for name in self._names()]
        usable = [one for one in endpoints if one is not None and not one.key_missing]
        probing = asyncio.ensure_future(self._probe())
        try:
            listings = await asyncio.gather(*map(self._list, usable))
            on_this_machine = await probing
        finally:
            probing.cancel()
        found: dict[str, ModelInfo] = {}
        for infos in (*listings, *on_this_machine.values()):
            for info in infos:
                found.setdefault(info.id, info)
        offline = Offline().info
        return (*found.values(), offline)

    def secrets(self) -> tuple[tuple[str, str], ...]:
        """Give every (name, value) that may never reach a screen, a log or a model."""
        found: dict[tuple[str, str], None] = {}
        for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
            if value := self._environ.get(variable, "").strip():
                found[variable, value] = None
        for name in self._names():
            endpoint = self._endpoint(name)
            for secret in endpoint.secrets if endpoint is not None else ():
                found[secret] = None
        return tuple(found)

    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*VENDORS, *self._settings.providers)))

    def _spec(self, provider: str) -> ProviderSpec | None:
        spec = self._settings.providers.get(provider)
        if spec is not None:
            return spec
        if provider == "anthropic":
            return ProviderSpec(name="anthropic", kind="anthropic")
        if provider == "openai":
            return ProviderSpec(name="openai", kind="openai")
        port = self._ports.get(provider)
        return None if port is None else local_spec(provider, port)

    def _endpoint(self, provider: str) -> Endpoint | None:
        """Give the endpoint, None when it cannot be worked out now."""
        spec = self._spec(provider)
        if spec is None:
            return None
        try:
            return endpoint_of(spec, self._environ)
        except KageError:  # told when the person chooses it
            return None

    async def _probe(self) -> dict[str, tuple[ModelInfo, ...]]:
        found = await probe(
            {name: port for name, port in self._ports.items() if not self._is_configured(name)}
        )
        for infos in found.values():
            self._seen.update((info.id, info) for info in infos)
        return found

    def _is_configured(self, name: str) -> bool:
        return name in self._settings.providers

    async def _default(self, endpoint: Endpoint) -> str:
        """Give the default model of a vendor; another address is asked what it has."""
        default = DEFAULTS[endpoint.name]
        if endpoint.spec.models:
            return f"{endpoint.name}:{endpoint.spec.models[0]}"
        if not endpoint.vendor:
            names = [info.name for info in await self._list(endpoint)]
            if names and default not in names:
                default = names[0]
        return f"{endpoint.name}:{default}"

    async def _list(self, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
        named = endpoint.spec.models
        if not named:
            try:
                named = await self._ask(endpoint)
            except KageError:
                listed = table.ANTHROPIC if endpoint.kind == "anthropic" else table.OPENAI
                named = tuple(listed) if endpoint.vendor else ()
        return tuple(self._info(endpoint, name) for name in named)

    async def _ask(self, endpoint: Endpoint) -> tuple[str, ...]:
        from kage.providers.wire import Wire

        headers = dict(endpoint.headers)
        if endpoint.kind == "anthropic":
            from kage.providers.anthropic import VERSION

            headers["anthropic-version"] = VERSION
        wire = Wire(endpoint.target(""), headers)
        try:
            infos = await list_models(wire, endpoint.name, kind=endpoint.kind, timeout=ASK)
        finally:
            await wire.close()
        self._seen.update((info.id, info) for info in infos)
        return tuple(info.name for info in infos)

    def _info(self, endpoint: Endpoint, name: str) -> ModelInfo:
        """Put together what the person, the endpoint and kage's table say, in that order."""
        model = f"{endpoint.name}:{name}"
        info = self._seen.get(model) or ModelInfo(id=model, name=name, images=True)
        if table.listens(endpoint.kind, name):
            info = replace(info, images=False, audio=True)
        known = table.known(endpoint.kind, name)
        if known is not None:
            info = replace(
                info,
                window=info.window or known.window,
                max_output=info.max_output or known.output,
                # another seller has prices of its own
                price=known.price if endpoint.name in VENDORS else info.price,
                thinking=endpoint.kind == "openai" or known.thought is not table.Thought.NEVER,
            )
        spec = endpoint.spec
        if endpoint.name in self._ports and not self._is_configured(endpoint.name):
            info = replace(info, price=Price(input=0.0, output=0.0))
        if spec.price_input or spec.price_output:
            price = Price(
                input=spec.price_input,
                output=spec.price_output,
                cache_read=spec.price_input,
                cache_write=spec.price_input,
            )
            info = replace(info, price=price)
        return replace(
            info,
            window=spec.context_window or info.window,
            max_output=spec.max_tokens or info.max_output,
        )

    def _unknown(self, model: str, provider: str, name: str) -> UnknownModel:
        names = [*self._names(), *self._ports, OFFLINE]
        close = difflib.get_close_matches(provider, names, 1, 0.6)
        if not name and table.known("anthropic", model) is not None:
            fix = f"Did you mean anthropic:{model}?"
        elif not name and table.known("openai", model) is not None:
            fix = f"Did you mean openai:{model}?"
        elif close:
            fix = f"Did you mean {close[0]}{':' + name if name else ''}?"
        else:
            fix = f"Write provider:name; the providers are {', '.join(dict.fromkeys(names))}."
        return UnknownModel(f"There is no provider {provider!r}", fix=fix, provider=provider)


def _reply_limit(spec: ProviderSpec, info: ModelInfo) -> int:
    """Give the tokens a reply may have; the Messages API wants a number."""
    if spec.max_tokens:
        return spec.max_tokens
    if info.max_output is None:
        return (REPLY if info.name.startswith("claude") else REPLY_UNKNOWN) + spec.thinking
    return min(REPLY + spec.thinking, info.max_output)

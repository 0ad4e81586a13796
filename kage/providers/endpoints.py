"""Where each provider's endpoint is and what it is sent: address, key, headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from kage.config.schema import ProviderSpec
from kage.core.errors import AuthFailed
from kage.providers.errors import Target
from kage.providers.wire import is_local

ANTHROPIC_URL = "https://api.anthropic.com"
OPENAI_URL = "https://api.openai.com/v1"
LOCAL_PORTS: Mapping[str, int] = {"ollama": 11434, "llamacpp": 8080, "lmstudio": 1234}
LABELS = {"ollama": "Ollama", "llamacpp": "llama.cpp", "lmstudio": "LM Studio"}

_SECRETIVE = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint, ready to be asked; ``key_missing`` names the variable that is not set."""

    name: str
    kind: str  # "anthropic" or "openai"
    url: str  # with the version, without a slash at the end
    headers: Mapping[str, str]
    spec: ProviderSpec
    key_env: str = ""  # the variable that should hold the key
    key_from: str = ""  # the variable that does
    secrets: tuple[tuple[str, str], ...] = ()
    key_missing: bool = False
    vendor: bool = False  # the vendor's own address
    local: bool = False

    def target(self, model: str) -> Target:
        """Say who is asked, for errors."""
        return Target(
            provider=self.name,
            model=model,
            url=self.url,
            key_env=self.key_env,
            secrets=self.secrets,
            local=self.local,
        )


def endpoint_of(spec: ProviderSpec, environ: Mapping[str, str]) -> Endpoint:
    """Work out the endpoint of ``spec``; the vendors' own variables count for their names only.

    Raises:
        AuthFailed: a header needs a variable that is not set.
    """
    vendors = {"anthropic": ("ANTHROPIC", ANTHROPIC_URL), "openai": ("OPENAI", OPENAI_URL)}
    prefix, own = vendors.get(spec.name, ("", ""))
    base = spec.base_url or (environ.get(f"{prefix}_BASE_URL", "") if prefix else "") or own
    url = _versioned(base, spec.kind)
    key_env = spec.api_key_env or (f"{prefix}_API_KEY" if prefix else "")
    key = environ.get(key_env, "").strip() if key_env else ""
    headers: dict[str, str] = {}
    secrets: list[tuple[str, str]] = []
    token = environ.get("ANTHROPIC_AUTH_TOKEN", "").strip() if spec.name == "anthropic" else ""
    if key:
        secrets.append((key_env, key))
        if spec.kind == "anthropic":
            headers["x-api-key"] = key
        else:
            headers["authorization"] = f"Bearer {key}"
    elif token:
        secrets.append(("ANTHROPIC_AUTH_TOKEN", token))
        headers["authorization"] = f"Bearer {token}"
    for name, raw in spec.headers.items():
        value = _expand(spec, name, raw, environ)
        headers[name.lower()] = value
        if value != raw or _SECRETIVE.search(name):
            secrets.append((f"{spec.name} {name}", value))
    vendor = url in (_versioned(ANTHROPIC_URL, "anthropic"), OPENAI_URL)
    given = bool(key or token or "authorization" in headers or "x-api-key" in headers)
    return Endpoint(
        name=spec.name,
        kind=spec.kind,
        url=url,
        headers=headers,
        spec=spec,
        key_env=key_env,
        key_from=key_env if key else "ANTHROPIC_AUTH_TOKEN" if token else "",
        secrets=tuple(secrets),
        # an address of the person's own may do without a key, a named variable may not
        key_missing=not given and (vendor or bool(spec.api_key_env)),
        vendor=vendor,
        local=is_local(url),
    )


def local_spec(name: str, port: int) -> ProviderSpec:
    """Describe a model server on this machine."""
    return ProviderSpec(name=name, kind="openai", base_url=f"http://127.0.0.1:{port}/v1")


def _versioned(base: str, kind: str) -> str:
    url = base.strip().rstrip("/")
    tail = "/messages" if kind == "anthropic" else "/chat/completions"
    url = url.removesuffix(tail)
    try:
        path = urlsplit(url).path
    except ValueError:
        return url
    if kind == "anthropic":
        return url if url.endswith("/v1") else f"{url}/v1"
    return url if path.strip("/") else f"{url}/v1"


def _expand(spec: ProviderSpec, name: str, raw: str, environ: Mapping[str, str]) -> str:
    def value_of(match: re.Match[str]) -> str:
        value = environ.get(match[1], "") or match[2]
        if value is None:
            raise AuthFailed(
                f"The header {name} of {spec.name} needs {match[1]}, which is not set",
                fix=f"Set {match[1]}, or choose another model with /model or --model.",
                provider=spec.name,
            )
        return str(value)

    return _REFERENCE.sub(value_of, raw)

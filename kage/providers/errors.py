"""Say in kage's words what an endpoint refused or why it could not be reached."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from kage.core.errors import (
    AuthFailed,
    ContextTooLong,
    Overloaded,
    ProviderError,
    UnknownModel,
    Unreachable,
)
from kage.core.redact import Redactor
from kage.core.sanitise import clip, visible

MAX_MESSAGE = 500  # characters of an endpoint's own words
CHOOSE = "/model or --model"  # in the chat and on the command line

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 530)})
_TOO_LONG = re.compile(
    r"prompt is too long|context.?length|context.?window|context size|context limit"
    r"|maximum context|too many (input )?tokens|exceeds? the max\w* (number of )?(input )?tokens"
    r"|input token count|reduce the length|request_too_large|input is too long",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"authentication|invalid.{0,12}api.?key|incorrect api key|api.?key not valid|unauthori[sz]ed"
    r"|invalid x-api-key|no auth credentials|missing.{0,20}api.?key",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient_quota|credit balance|billing_error|billing details|payment required|spend limit"
    r"|exceeded your current quota|insufficient.{0,9}(funds|credit|balance)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|not_found_error|invalid model|unknown model|no such model|not a valid model"
    r"|model\b.{0,120}(not found|not exist|is not available|not supported for generate)"
    r"|(not found|does not exist).{0,40}\bmodel|^model: ",
    re.IGNORECASE | re.DOTALL,
)
_BUSY_KIND = re.compile(
    r"overloaded|rate.?limit|too many requests|server_?error|api_error|unavailable|timeout_error"
    r"|insufficient_system_resource|resource_exhausted|internal.?error|try again later",
    re.IGNORECASE,
)
_ABOUT_TOOLS = re.compile(r"\btools[.\[]\d|function_declarations\[|[Ii]nvalid schema for function")
_AGAIN_IN = re.compile(r"(?:try again in|retry in|retryDelay\W+)\s*([\d.]+)\s*(ms|s|m)\b")


class NoConnection(Unreachable):
    """The connection never came about; ``local`` when the endpoint is on this machine."""

    def __init__(self, what: str, *, why: str, fix: str, provider: str, local: bool) -> None:
        super().__init__(what, why=why, fix=fix, provider=provider)
        self.local = local


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Who was asked; what an error has to name and what it must not repeat."""

    provider: str  # its name in the configuration
    model: str
    url: str
    key_env: str = ""  # the variable that holds the key
    secrets: tuple[tuple[str, str], ...] = ()  # (name, value)
    local: bool = False

    def clean(self, text: str) -> str:
        """Make the endpoint's words safe to show: sanitised, without the key, short."""
        redact = Redactor()
        for name, value in self.secrets:
            redact.add(name, value)
        return clip(visible(redact(text), single_line=True), MAX_MESSAGE)


def missing_key(target: Target) -> AuthFailed:
    """Say that there is no key to send."""
    return AuthFailed(
        f"There is no key for {target.provider}",
        why=f"the variable {target.key_env} is not set" if target.key_env else "",
        fix=f"Set {target.key_env or 'api_key_env'}, or choose another model ({CHOOSE}).",
        provider=target.provider,
    )


def from_answer(
    target: Target, status: int, headers: Mapping[str, str], body: str
) -> ProviderError:
    """Make the error for an answer that is no success; ``headers`` have lower-case names."""
    kind, message = read_body(body)
    if not message:
        message = f"HTTP {status}"
    wait = retry_after(headers, f"{message} {body[:2000]}")
    if 300 <= status < 400:
        return ProviderError(
            f"{target.provider} answered with a redirect",
            why=target.clean(headers.get("location", f"HTTP {status}")),
            fix=f"Set base_url to the final address; it is {target.url} now.",
            provider=target.provider,
            status=status,
        )
    return _classify(target, status, kind, message, wait)


def from_stream(target: Target, payload: object) -> ProviderError:
    """Make the error for an error object that came inside a stream."""
    kind, message = _describe(payload)
    status = None
    if isinstance(payload, Mapping):
        inner = payload.get("error", payload)
        code = inner.get("code") if isinstance(inner, Mapping) else None
        if isinstance(code, int) and 400 <= code < 600:
            status = code
    return _classify(target, status, kind, message or "no reason given", None)


def _classify(
    target: Target, status: int | None, kind: str, message: str, wait: float | None
) -> ProviderError:
    text = f"{kind} {message}"
    why = target.clean(message)
    name = target.provider
    if status in (400, 422) and _ABOUT_TOOLS.search(message):  # its words are a server's
        return _refused(target, status, why)
    if _NO_CREDIT.search(text) or status == 402:
        return ProviderError(
            f"{name} takes no more requests on this account",
            why=why,
            fix=f"Check the account's credit and limits, or choose another model ({CHOOSE}).",
            provider=name,
            status=status,
        )
    if status in (401, 403) or (status in (None, 400) and _BAD_KEY.search(text)):
        return _refused_key(target, status, why)
    if status in (None, 400, 413, 422, 500) and _TOO_LONG.search(text):
        return _too_long(target, status, why)
    if status == 413:
        return _too_long(target, status, why)
    if status in (None, 400, 404, 422) and (
        _NO_MODEL.search(f"{kind} {message}") and not (status == 404 and _no_path(message))
    ):
        return UnknownModel(
            f"{name} does not offer the model {target.model!r}",
            why=why,
            fix=f"Choose one it has ({CHOOSE}).",
            provider=name,
            status=status,
        )
    if status == 404:
        return ProviderError(
            f"{name} knows no such address",
            why=f"{target.clean(target.url)} answered: {why}",
            fix="Check its base_url.",
            provider=name,
            status=status,
        )
    if status in _BUSY or (status is None and _BUSY_KIND.search(text)):
        limited = status == 429 or "rate" in kind
        return Overloaded(
            f"{name} {'limits the rate of requests' if limited else 'is overloaded or failing'}",
            why=why,
            fix="Wait a moment and send the prompt again.",
            provider=name,
            status=status,
            retry_after=wait,
        )
    return _refused(target, status, why)


def _refused(target: Target, status: int | None, why: str) -> ProviderError:
    return ProviderError(
        f"{target.provider} refused the request",
        why=why,
        fix=f"Read the reason; another model may take it ({CHOOSE}).",
        provider=target.provider,
        status=status,
    )


def _refused_key(target: Target, status: int | None, why: str) -> AuthFailed:
    if target.key_env and target.secrets:
        fix = f"Check the key in {target.key_env}."
    elif target.key_env:
        fix = f"Put a key into {target.key_env}."
    else:
        fix = f"Name the variable that holds the key: providers.{target.provider}.api_key_env."
    what = (
        f"{target.provider} refused the key"
        if target.secrets
        else (f"{target.provider} wants a key")
    )
    return AuthFailed(what, why=why, fix=fix, provider=target.provider, status=status)


def _too_long(target: Target, status: int | None, why: str) -> ContextTooLong:
    return ContextTooLong(
        f"The conversation no longer fits into {target.model}",
        why=why,
        fix=f"Start a new session, or choose a model with a larger window ({CHOOSE}).",
        provider=target.provider,
        status=status,
    )


def _no_path(message: str) -> bool:
    return bool(re.fullmatch(r"(HTTP 404|404.*|not found\.?|.*page not found.*)", message.lower()))


def read_body(body: str) -> tuple[str, str]:
    """Give (kind, message) of an error body in any of the shapes endpoints use."""
    try:
        return _describe(json.loads(body))
    except (ValueError, RecursionError):
        pass
    text = re.sub(r"(?is)<(script|style).*?</\1>|<[^>]{0,500}>", " ", body[:20_000])
    return "", " ".join(text.split())


def _describe(payload: object) -> tuple[str, str]:
    while isinstance(payload, list) and payload:
        payload = payload[0]
    if isinstance(payload, str):
        return "", payload
    if not isinstance(payload, Mapping):
        return "", ""
    inner: object = payload.get("error", payload)
    if isinstance(inner, str):
        return str(payload.get("type") or payload.get("error_type") or ""), inner
    if not isinstance(inner, Mapping):
        return "", ""
    kinds = [inner.get(key) for key in ("type", "code", "status")]
    kind = " ".join(str(value) for value in kinds if isinstance(value, str))
    for key in ("message", "detail", "msg", "error_description"):
        value: Any = inner.get(key)
        if isinstance(value, str) and value:
            return kind, value + _deeper(inner, value)
        if value:
            return kind, json.dumps(value)[:2000]
    return kind, ""


def _deeper(inner: Mapping[str, Any], message: str) -> str:
    """Give the field it is about, and what a gateway says about the endpoint behind it."""
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    field = inner.get("param")
    text = f": {raw[:1000]}" if isinstance(raw, str) and raw else ""
    return f"{text} ({field})" if isinstance(field, str) and field not in message else text


def retry_after(headers: Mapping[str, str], text: str = "") -> float | None:
    """Give the seconds the endpoint asks to wait, from its headers or its words."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if not value:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            seconds = _until(value)
        if 0 <= seconds < float("inf"):
            return seconds
    if found := _AGAIN_IN.search(text):
        try:
            return float(found[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[found[2]]
        except ValueError:
            return None
    return None


def _until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return -1.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())

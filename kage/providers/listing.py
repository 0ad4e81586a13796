"""What an endpoint says it offers: read its listing, find servers on this machine."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kage.core.errors import KageError, UnknownModel
from kage.core.usage import Price
from kage.providers.base import ModelInfo
from kage.providers.wire import Wire

PROBE = 0.3  # seconds for all servers on this machine together
MAX_PROBE = 1 << 20  # bytes of one answer
MAX_MODELS = 2_000  # of one endpoint
SUGGEST = 3.0  # seconds to look for what a misspelt model could mean

_NO_CHAT = (
    *("embed", "rerank", "whisper", "tts-", "-tts", "moderation", "dall-e", "transcribe"),
    *("gpt-image", "chatgpt-image", "realtime", "-audio", "sora", "davinci", "babbage"),
)


def read_listing(provider: str, data: object) -> tuple[ModelInfo, ...]:
    """Read a ``/models`` answer of any vendor; what it does not say stays unknown."""
    entries = data.get("data") if isinstance(data, Mapping) else data
    if not isinstance(entries, list):
        return ()
    found: dict[str, ModelInfo] = {}
    for entry in entries[:MAX_MODELS]:
        name = entry.get("id") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name or len(name) > 200 or not name.isprintable():
            continue
        if any(word in name.lower() for word in _NO_CHAT):
            continue
        found.setdefault(name, _info(provider, name.removeprefix("models/"), entry))
    return tuple(found.values())


def _info(provider: str, name: str, entry: Mapping[str, Any]) -> ModelInfo:
    top = entry.get("top_provider")
    meta = entry.get("meta")
    shape = entry.get("architecture")
    kinds = shape.get("input_modalities") if isinstance(shape, Mapping) else None
    window = _number(entry, "context_length", "max_model_len", "max_input_tokens", "context_window")
    if window is None and isinstance(meta, Mapping):
        window = _number(meta, "n_ctx", "n_ctx_train")
    output = _number(entry, "max_tokens", "max_output_tokens")
    if output is None and isinstance(top, Mapping):
        output = _number(top, "max_completion_tokens")
    return ModelInfo(
        id=f"{provider}:{name}",
        name=name,
        window=window,
        max_output=output,
        price=_price(entry.get("pricing")),
        images="image" in kinds if isinstance(kinds, list) else True,
        audio="audio" in kinds if isinstance(kinds, list) else False,
    )


def _number(data: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = data.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12:
            return value
    return None


def _price(data: object) -> Price | None:
    """Read prices in dollars a token, as OpenRouter lists them."""
    if not isinstance(data, Mapping):
        return None
    values: dict[str, float] = {}
    for name in ("prompt", "completion", "input_cache_read", "input_cache_write"):
        with suppress(TypeError, ValueError):
            value = float(data[name]) * 1_000_000 if name in data else -1.0
            if 0 <= value < 1e6:
                values[name] = value
    if "prompt" not in values or "completion" not in values:
        return None
    return Price(
        input=values["prompt"],
        output=values["completion"],
        cache_read=values.get("input_cache_read", values["prompt"]),
        cache_write=values.get("input_cache_write", values["prompt"]),
    )


async def list_models(
    wire: Wire, provider: str, *, kind: str, timeout: float
) -> tuple[ModelInfo, ...]:
    """Ask an endpoint of ``kind`` what it offers; ``timeout`` in seconds.

    Raises:
        ProviderError: it does not answer, or not with a list.
    """
    # Anthropic lists 20 unless asked for more; others refuse what they do not know
    path = "/models?limit=1000" if kind == "anthropic" else "/models"
    return read_listing(provider, await wire.get(path, timeout=timeout))


async def suggest(error: UnknownModel, wire: Wire, name: str, *, kind: str) -> None:
    """Put the nearest models the endpoint has into the error's fix, if it tells them."""
    try:
        listed = await list_models(wire, "", kind=kind, timeout=SUGGEST)
    except KageError:
        return  # the first error is the one to report
    offered = [info.name for info in listed]
    close = difflib.get_close_matches(name, offered, 3, 0.4)
    if close:
        error.fix = f"Did you mean {' or '.join(close)}? Choose with /model or --model."
    elif offered:
        error.fix = f"It has {', '.join(offered[:5])}. Choose with /model or --model."


async def probe(ports: Mapping[str, int]) -> dict[str, tuple[ModelInfo, ...]]:
    """Ask the servers of this machine side by side; those that answer in time, in order.

    Plain sockets: this runs right after the first frame, and an HTTP library would cost more
    than the answer.
    """
    names = list(ports)
    answers = await asyncio.gather(*(_ask(name, ports[name]) for name in names))
    return {name: found for name, found in zip(names, answers, strict=True) if found}


async def _ask(name: str, port: int) -> tuple[ModelInfo, ...]:
    try:
        async with asyncio.timeout(PROBE):
            return read_listing(name, json.loads(await _fetch(port)))
    except (OSError, ValueError, RecursionError):  # not there, too slow, or something else
        return ()


async def _fetch(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        # 1.0, so that the answer is neither chunked nor kept open
        writer.write(
            f"GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n"
            "Accept: application/json\r\nConnection: close\r\n\r\n".encode()
        )
        data = b""
        parts: list[bytes] = []
        size = 0
        length: int | None = None
        while size < MAX_PROBE:
            chunk = await reader.read(1 << 16)
            if not chunk:
                break
            parts.append(chunk)
            size += len(chunk)
            data = b"".join(parts)
            head, end, body = data.partition(b"\r\n\r\n")
            if end and length is None:
                length = _length(head)
            if end and length is not None and len(body) >= length:
                break
        head, _, body = data.partition(b"\r\n\r\n")
        if b" 200" not in head.partition(b"\r\n")[0]:
            return b""
        return body
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _length(head: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return None

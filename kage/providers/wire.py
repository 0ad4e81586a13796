"""One streaming HTTP request to an endpoint, with limits and deadlines; errors in kage's words."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kage.core.errors import ProviderError, Unreachable
from kage.providers.errors import NoConnection, Target, from_answer

if TYPE_CHECKING:
    import httpx2

CONNECT = 10.0  # seconds
IDLE = 120.0  # seconds between two pieces of a stream
IDLE_LOCAL = 900.0  # a model on this machine may read a long prompt before it says a word
MAX_EVENT = 16 << 20  # bytes of one server-sent event
MAX_REPLY = 64 << 20  # characters of all events of one reply
MAX_ERROR = 64 << 10  # bytes of an error body that are read
MAX_LIST = 8 << 20  # bytes of a model listing

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})


def is_local(url: str) -> bool:
    """Tell whether ``url`` points at this machine."""
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return False
    return host in _LOCAL or host.startswith("127.") or host.endswith(".localhost")


class Wire:
    """The connection to one endpoint; opened at the first request, closed once."""

    def __init__(
        self, target: Target, headers: Mapping[str, str], *, idle: float | None = None
    ) -> None:
        self.target = target
        self._headers = {"user-agent": "kage", **{k.lower(): v for k, v in headers.items()}}
        self._idle = idle or (IDLE_LOCAL if target.local else IDLE)
        self._client: httpx2.AsyncClient | None = None

    async def _open(self) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None:
            # reading the system's certificates takes 60 ms: not on the loop, not for plain HTTP
            plain = self.target.local and urlsplit(self.target.url).scheme == "http"
            verify = False if plain else await asyncio.to_thread(httpx2.create_ssl_context)
            self._client = httpx2.AsyncClient(
                headers=self._headers,
                timeout=httpx2.Timeout(self._idle, connect=CONNECT, pool=CONNECT),
                verify=verify,
                trust_env=not self.target.local,  # a proxy has no business on loopback
            )
        return self._client

    async def events(self, path: str, body: bytes) -> AsyncGenerator[str, None]:
        """Post ``body`` and give the data of each event, or the whole body when it is JSON.

        Raises:
            ProviderError: or one of its subclasses, whatever goes wrong.
        """
        import httpx2

        url = self.target.url + path
        try:
            client = await self._open()
            async with client.stream(
                "POST",
                url,
                content=body,
                headers={"content-type": "application/json", "accept": "text/event-stream"},
            ) as response:
                if response.status_code != 200:
                    raise await self._refusal(response)
                async with aclosing(self._data(response)) as data:
                    async for text in data:
                        yield text
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise self._broken(error) from error
        except (UnicodeError, ValueError) as error:  # a header or address that cannot be sent
            raise ProviderError(
                f"The request to {self.target.provider} cannot be sent",
                why=self.target.clean(str(error)),
                fix="Check its base_url, key and headers.",
                provider=self.target.provider,
            ) from error

    async def _data(self, response: httpx2.Response) -> AsyncGenerator[str, None]:
        import httpx2

        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":  # an endpoint that does not stream
            yield (await _read(response, MAX_EVENT)).decode("utf-8", "replace")
            return
        if kind == "text/html":
            text = (await _read(response, MAX_ERROR)).decode("utf-8", "replace")
            raise from_answer(self.target, 404, {}, text)
        # some gateways forget the type, and httpx2 insists on it
        response.headers["content-type"] = "text/event-stream"
        size = 0
        async for event in httpx2.EventSource(response, max_event_size=MAX_EVENT):
            size += len(event.data)
            if size > MAX_REPLY:
                raise ProviderError(
                    f"{self.target.provider} sent more than a reply can hold",
                    why=f"over {MAX_REPLY >> 20} MB",
                    fix="Send the prompt again, or choose another model with /model or --model.",
                    provider=self.target.provider,
                )
            if event.data:
                yield event.data

    async def _refusal(self, response: httpx2.Response) -> ProviderError:
        body = (await _read(response, MAX_ERROR)).decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return from_answer(self.target, response.status_code, headers, body)

    def _broken(self, error: Exception) -> ProviderError:
        import httpx2

        name, why = self.target.provider, self.target.clean(root_cause(error))
        place = self.target.clean(self.target.url)
        match error:
            case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
                why = f"{place} did not answer within {CONNECT:.0f} s"
            case httpx2.ReadTimeout():
                return Unreachable(
                    f"{name} went silent",
                    why=f"nothing came for {self._idle:.0f} s",
                    fix="Send the prompt again.",
                    provider=name,
                )
            case httpx2.ConnectError() | httpx2.ProxyError():
                why = f"{place}: {why}"
            case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
                return ProviderError(
                    f"The address of {name} cannot be used",
                    why=f"{place}: {why}",
                    fix="Set base_url to something like http://127.0.0.1:11434/v1.",
                    provider=name,
                )
            case _:
                return Unreachable(
                    f"The connection to {name} broke off",
                    why=why,
                    fix="Send the prompt again.",
                    provider=name,
                )
        local = self.target.local
        fix = "Start the model server" if local else "Check the network and the base_url"
        return NoConnection(
            f"{name} cannot be reached",
            why=why,
            fix=f"{fix}, or choose another model with /model or --model.",
            provider=name,
            local=local,
        )

    async def get(self, path: str, *, timeout: float) -> Any:  # whatever JSON the endpoint has
        """Fetch JSON, for listings; ``timeout`` in seconds for the whole of it.

        Raises:
            ProviderError: or one of its subclasses, whatever goes wrong.
        """
        import httpx2

        try:
            async with (
                asyncio.timeout(timeout),
                (await self._open()).stream("GET", self.target.url + path) as response,
            ):
                if response.status_code != 200:
                    raise await self._refusal(response)
                return json.loads(await _read(response, MAX_LIST))
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            raise self._broken(error) from error
        except (ValueError, RecursionError) as error:
            raise ProviderError(
                f"{self.target.provider} did not answer with a list of models",
                why=self.target.clean(str(error)),
                provider=self.target.provider,
            ) from error

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


async def _read(response: httpx2.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.aiter_bytes():
        parts.append(chunk)
        size += len(chunk)
        if size >= limit:
            break
    return b"".join(parts)[:limit]


def root_cause(error: BaseException) -> str:
    """Give the words of the first real cause behind ``error``."""
    seen: set[int] = set()
    current: BaseException = error
    while id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({current.verify_message})"
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
            continue
        deeper = current.__cause__ or current.__context__
        if deeper is None or not str(deeper):
            break
        current = deeper
    if isinstance(current, TimeoutError):
        return "no answer in time"
    if isinstance(current, OSError) and current.strerror:
        return current.strerror
    return str(current) or str(error) or "the connection was lost"

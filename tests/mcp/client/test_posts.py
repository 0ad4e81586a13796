"""Calls over HTTP past the SDK's transport: dressed like its own, answered whatever comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import ClosedResourceError
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest

from kage.mcp.client.transport import posts as module
from kage.mcp.client.transport.base import ANSWER_LOST, End
from kage.mcp.client.transport.errand import MAIL, Errand, make_errand
from kage.mcp.client.transport.judge import Judge
from kage.mcp.client.transport.parse import INVALID_ANSWER
from kage.mcp.client.transport.posts import Posts
from kage.mcp.client.wire.exchange import Exchange
from tests.mcp.client.harness import bench, run, text
from tests.mcp.client.test_http import LEGACY, web
from tests.stubs.http_server import serving
from tests.waiting import until

URL = "http://127.0.0.1:9/mcp"
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def events(*pieces: str) -> httpx2.Response:
    return httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=Pieces(*(piece.encode() for piece in pieces)),
    )


def data(message: object, id: str = "") -> str:
    return (f"id: {id}\n" if id else "") + f"data: {json.dumps(message)}\n\n"


class Side:
    """The link and the client of one connection; ``answers`` are given in turn."""

    old = False
    most = 1 << 16
    source: Any = None  # only the client asks it

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.judge = Judge(server="s", url=URL)
        self.cookies = httpx2.Cookies()
        self.answers = list(answers)
        self.sent: list[httpx2.Request] = []
        self.told: list[dict[str, Any]] = []
        self.strays = 0
        self.holding: asyncio.Event | None = None
        self.posts = Posts(self, self)
        head = {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "s1", "accept": "a"}
        self.posts.learn(httpx2.Request("POST", URL, headers=head, content=b"{}"))

    def errand(self, http_method: str, *, session: bool) -> Errand:
        return make_errand(http_method, opening=False, session=session, longest=10)

    def ended(self, end: End) -> None:
        raise AssertionError(end)

    def inject(self, item: SessionMessage) -> None:
        self.told.append(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def take(self, item: SessionMessage) -> None:
        self.inject(item)

    def stray(self) -> None:
        self.strays += 1

    async def deliver(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        if self.holding is not None:
            await self.holding.wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        answer.request = request
        return answer

    async def opened(self, errand: Errand, request: httpx2.Request) -> httpx2.Response:
        return await self.deliver(errand, request)

    def call(self, **params: Any) -> None:
        said = {"name": "t", "arguments": {}, **params}
        message = JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/call", params=said)
        mark = MAIL.set(message)
        assert self.posts.take(SessionMessage(message))
        MAIL.reset(mark)

    async def done(self) -> None:
        await until(lambda: not self.posts._calls, what="the call is over")


def answered(*answers: httpx2.Response | Exception) -> Side:
    """Call once and give what became of it."""

    async def main() -> Side:
        side = Side(*answers)
        side.call()
        await side.done()
        return side

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY", 0.0)


def test_messages_of_a_stream_are_handed_over_up_to_the_answer() -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    other = {**RESULT, "id": "7"}
    side = answered(
        events(data("")[:6] + "\n\n", data(notice), data([notice, RESULT]), data(other))
    )
    assert side.told == [notice, notice, RESULT] and side.strays == 0
    side = answered(events(data([{**RESULT, "id": 8}, {**RESULT, "id": None}, RESULT])))
    assert side.told[-1] == RESULT and side.strays >= 1


@pytest.mark.parametrize("told", ["nonsense", '{"jsonrpc": "2.0"', "[]", "7"])
def test_an_event_that_is_no_message_fails_the_call_at_once(told: str) -> None:
    side = answered(events(f"data: {told}\n\n", data(RESULT)))
    assert [message["error"]["code"] for message in side.told] == [INVALID_ANSWER]


def test_a_stream_that_breaks_is_asked_for_again_where_it_stopped() -> None:
    side = answered(
        events(data({"jsonrpc": "2.0", "method": "notifications/x"}, id="a1")),
        httpx2.ConnectError("no"),
        httpx2.Response(405),  # two in a row are too many
    )
    assert side.told[-1]["error"]["code"] == ANSWER_LOST
    assert [request.headers.get("last-event-id") for request in side.sent] == [None, "a1", "a1"]
    side = answered(
        events(data({"jsonrpc": "2.0", "method": "notifications/x"}, id="a1")),
        httpx2.ConnectError("no"),
        events(data({"jsonrpc": "2.0", "method": "notifications/y"}, id="a2")),
        httpx2.Response(405),
        events(data(RESULT)),
    )
    assert side.told[-1] == RESULT
    back = [(request.method, request.headers.get("last-event-id")) for request in side.sent]
    assert back == [("POST", None), *[("GET", "a1")] * 2, *[("GET", "a2")] * 2]
    assert {request.headers["mcp-session-id"] for request in side.sent} == {"s1"}


def test_a_stream_that_names_no_place_is_lost_when_it_ends() -> None:
    side = answered(events(data({"jsonrpc": "2.0", "method": "notifications/x"})))
    assert side.told[-1]["error"]["code"] == ANSWER_LOST and len(side.sent) == 1


def test_nobody_comes_back_for_an_answer_nobody_waits_for() -> None:
    async def main() -> None:
        side, exchange = Side(events("id: a1\ndata:\n\n")), Exchange()
        side.holding = asyncio.Event()
        with exchange.current():
            side.call()
        side.holding.set()
        await side.done()
        assert len(side.sent) == 1 and side.told == []

    asyncio.run(main())


def test_cookies_and_what_the_list_was_asked_with_go_along() -> None:
    async def main() -> None:
        side = Side(*[httpx2.Response(200, json=RESULT) for _ in range(2)])
        side.cookies.set("pin", "a7", domain="127.0.0.1")
        side.call()
        await side.done()
        headers = dict(side.sent[0].headers)
        assert headers.pop("content-length") == str(len(side.sent[0].content))
        assert headers.pop("host") == "127.0.0.1:9"
        assert headers == {
            "accept": "a",
            "cookie": "pin=a7",
            "mcp-protocol-version": "2025-11-25",
            "mcp-session-id": "s1",
        }

    asyncio.run(main())


def test_half_a_surrogate_is_spelt_as_json_can() -> None:
    async def main() -> None:
        side = Side(httpx2.Response(200, json=RESULT))
        side.call(arguments={"a": "x\ud800"})
        await side.done()
        assert json.loads(side.sent[0].content)["params"]["arguments"] == {"a": "x\ud800"}

    asyncio.run(main())


def test_closing_gives_up_what_is_under_way_and_takes_nothing_more() -> None:
    async def main() -> None:
        side = Side()
        side.holding = asyncio.Event()
        side.call()
        await until(lambda: bool(side.sent), what="the call is out")
        await side.posts.close()
        assert not side.posts._calls and side.told == []
        with pytest.raises(ClosedResourceError):
            side.call()

    asyncio.run(main())


def test_only_the_newest_era_ends_a_call_by_closing_its_stream() -> None:
    async def main(*, modern: bool) -> bool:
        side = Side()
        side.holding = asyncio.Event()
        if modern:
            head = {"mcp-method": "tools/list"}
            side.posts.learn(httpx2.Request("POST", URL, headers=head))
        side.call()
        await until(lambda: bool(side.sent), what="the call is out")
        named = {"requestId": 7}
        ended = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=named)
        taken = side.posts.take(SessionMessage(ended))
        if modern:
            await side.done()
        await side.posts.close()
        return taken

    assert asyncio.run(main(modern=True)) and not asyncio.run(main(modern=False))


# ---- whole


@pytest.mark.parametrize("revisions", [LEGACY, ()], ids=["legacy", "modern"])
def test_a_call_is_dressed_as_the_sdk_would_and_needs_nothing_of_it(
    tmp_path: Path, revisions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with serving("--json", *revisions) as stub:
            marked = {"zone": {"type": "string", "x-mcp-header": "Zone"}}
            stub.tool("naïve tool", lambda arguments, call: "ok", properties=marked)
            async with bench(tmp_path) as b:
                await b.up(web(stub.url, headers={"X-Team": "docs"}))
                name = next(tool for tool in b.tools if "na" in tool)
                with monkeypatch.context() as patch:
                    patch.setattr(Posts, "ready", False)
                    assert text(await b.call(name, {"zone": "ü"})) == "ok"
                live = b.manager._fleet.get("web").connection
                assert live is not None and live._talk is not None

                async def refuse(*_: object, **__: object) -> None:
                    raise AssertionError("the SDK was asked")

                live._talk._client.session.send_request = refuse  # type: ignore[method-assign]
                assert text(await b.call(name, {"zone": "ü"})) == "ok"
            theirs, ours = stub.seen("tools/call")
            for call in (theirs, ours):
                del call["headers"]["content-length"]  # the SDK leaves an empty _meta away
            assert ours["headers"] == theirs["headers"]
            assert ours["path"] == theirs["path"]
            assert ("mcp-param-zone" in ours["headers"]) is (not revisions)
            metas = [call["message"]["params"].pop("_meta") for call in (theirs, ours)]
            assert set(metas[0]) == set(metas[1])
            assert ours["message"]["params"] == theirs["message"]["params"]

    run(main)


def test_the_connection_of_an_answer_over_events_is_used_again(tmp_path: Path) -> None:
    async def main() -> None:
        with serving(*LEGACY) as stub:
            async with bench(tmp_path) as b:
                await b.up(web(stub.url))
                await until(lambda: bool(stub.listening), what="its stream is open")
                seen: set[object] = set()
                for number in range(5):
                    assert text(await b.call("web__echo", {"text": str(number)})) == str(number)
                    seen |= stub.connections
                assert len(seen) <= 4

    run(main)

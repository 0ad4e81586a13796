"""Servers behind an address that are broken in every way: told once each, and the rest works."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.llm import ScriptedModel, call, say
from tests.llm.script import Turn
from tests.proof.house import Ended, House, server
from tests.stubs.base import HANDSHAKE
from tests.stubs.http_server import HttpStub, serving

LEGACY = ("--revisions", HANDSHAKE[-1])
KEYS = {"restart": "{ enabled = false }", "timeout": '"15s"'}

# each server: what goes wrong when it is greeted, words of its one report
STARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "unauthorised": ("401", ("answered 401", "kage mcp login unauthorised")),
    "forbidden": ("403", ("HTTP 403",)),
    "missing": ("404", ("HTTP 404", "url")),
    "broken": ("500", ("HTTP 500",)),
    "resting": ("503:down for repairs", ("down for repairs",)),
    "page": ("html", ("text/html",)),
    "empty": ("nothing", ("HTTP 202",)),
    "reset": ("reset", ("broke off",)),
    "cut": ("cut", ("cut off",)),
    "chunk": ("bad_chunk", ("no HTTP",)),
    "head": ("big_head", ("no HTTP",)),
    "bomb": ("gzip_bomb:40", ("longer than", "max_message_bytes")),
    "endless": ("huge:3", ("longer than", "max_message_bytes")),
    "event": ("sse_huge:3", ("longer than", "max_message_bytes")),
    "away": ("redirect://127.0.0.2:1/mcp", ("redirects to http://127.0.0.2:1/mcp",)),
    "loop": ("redirect:loop", ("HTTP 307",)),
    "silent": ("hang", ("within 2 s",)),
    "drip": ("drip_json", ("within 2 s",)),
}
# each server: what goes wrong in a call, how it ends, words of its one result
CALLS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "cut": ("cut", "unknown", ("cut off",)),
    "chunk": ("bad_chunk", "unknown", ("no HTTP",)),
    "head": ("big_head", "unknown", ("no HTTP",)),
    "reset": ("reset", "unknown", ("broke off",)),
    "bomb": ("gzip_bomb:40", "tool_error", ("longer than",)),
    "endless": ("huge:3", "tool_error", ("longer than",)),
    "event": ("sse_huge:3", "tool_error", ("longer than",)),
    "drip": ("drip", "unknown", ("given up",)),
    "page": ("html", "unknown", ("text/html",)),
    "loop": ("redirect:loop", "tool_error", ("HTTP 307",)),
    "broken": ("500", "unknown", ("HTTP 500",)),
    "forbidden": ("403", "tool_error", ("HTTP 403",)),
    "null": ("null_result", "tool_error", ("null",)),
    "storm": ("storm", "unknown", ("broke off",)),
}


def _entry(name: str, stub: HttpStub, **keys: str) -> str:
    limits = {
        "max_message_bytes": "1_048_576",
        "tool_timeout": '"2s"' if name == "drip" else '"60s"',
    }
    return server(name, "", url=f'"{stub.url}"', **{**KEYS, **limits, **keys})


@pytest.fixture
def good() -> Iterator[HttpStub]:
    """Give a server that does everything right."""
    with serving() as stub:
        yield stub


def _run(house: House, turns: list[Turn], names: list[str]) -> Ended:
    allowed = [word for name in (*names, "good") for word in ("--allow", f"{name}__*")]
    with ScriptedModel([*turns, call("good__echo", text="still here"), say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello", "--json", *allowed)
        assert model.unused == 0, ended
    assert ended.code == 0, ended.err
    assert "\x1b" not in ended.err
    return ended


def _results(ended: Ended) -> dict[str, tuple[str, str]]:
    """Give outcome and text of the one result of each server."""
    messages = [event["message"] for event in ended.of("message_appended")]
    found = [message for message in messages if message["kind"] == "tool_message"]
    by_server = {
        message["name"].split("__")[0]: (message["outcome"], message["content"][0]["text"])
        for message in found
    }
    assert len(by_server) == len(found), "a server has two results"
    return by_server


def test_each_address_that_does_not_answer_well_is_told_once_with_its_reason(
    house: House, good: HttpStub
) -> None:
    with contextlib.ExitStack() as stack:
        stubs = {
            name: stack.enter_context(serving(*LEGACY, "--fault", f"initialize={how}"))
            for name, (how, _) in STARTS.items()
        }
        slow = {"timeout": '"2s"'}
        house.write(
            *(
                _entry(name, stub, **(slow if name in {"silent", "drip"} else {}))
                for name, stub in stubs.items()
            ),
            _entry("good", good),
        )
        ended = _run(house, [], [])
    assert _results(ended) == {"good": ("ok", "still here")}
    wrong: list[str] = []
    for name, (_, words) in STARTS.items():
        heads = [line for line in ended.err.splitlines() if f"kage: server {name} " in line]
        assert len(heads) == 1, (name, ended.err)
        report = ended.err[ended.err.index(heads[0]) :].split("\nkage: ")[0]
        wrong += [f"{word!r} not in {report}" for word in words if word not in report]
    assert not wrong, "\n".join(wrong)


def test_each_answer_that_goes_wrong_costs_its_call_alone(house: House, good: HttpStub) -> None:
    house.write(*(_entry(name, good) for name in CALLS), _entry("good", good))
    calls: Turn = [call(f"{name}__fault", how=how) for name, (how, *_) in CALLS.items()]
    ended = _run(house, [calls], list(CALLS))
    found = _results(ended)
    assert found.pop("good") == ("ok", "still here")
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        name: outcome for name, (_, outcome, _) in CALLS.items()
    }, found
    for name, (_, _, words) in CALLS.items():
        for word in (name, *words):
            assert word in found[name][1], found[name]
    sent = [one["message"]["params"]["name"] for one in good.seen("tools/call")]
    assert sent.count("fault") == len(CALLS) + 4  # only the loop is followed, five times
    statuses = [event["status"] for event in ended.of("server_changed")]
    assert not [status["name"] for status in statuses if status["fault"]]

"""The verbs over a server behind a url."""

from __future__ import annotations

from collections.abc import Callable

from tests.proof.house import Ended, House
from tests.stubs.http_server import serving

Kage = Callable[..., Ended]


def test_a_url_can_be_tried_listed_and_called(house: House, kage: Kage) -> None:
    with serving() as stub:
        house.write(f'[mcp.servers.web]\nurl = "{stub.url}"\nheaders = {{ X-Team = "docs" }}\n')
        tried = kage("mcp", "test", "web", "--json").json
        assert (tried["state"], tried["transport"], tried["tools"]) == (
            "connected",
            "http",
            len(stub.tools),
        )
        assert tried["protocol"] == "2026-07-28" and tried["ping_ms"] is not None
        assert "web__echo" in kage("mcp", "tools", "web").out
        called = kage("mcp", "call", "web__echo", "text=over http")
        assert (called.code, called.out.strip()) == (0, "over http")
        assert all(request["headers"]["x-team"] == "docs" for request in stub.requests)


def test_the_older_transport_is_marked_and_remembered_from_run_to_run(
    house: House, kage: Kage
) -> None:
    with serving("--old") as stub:
        house.write(f'[mcp.servers.old]\nurl = "{stub.url}"\n')
        first = kage("mcp", "test", "old")
        assert first.code == 0 and "sse (deprecated" in first.out, f"{first.out}\n{first.err}"
        refused = [seen for seen in stub.requests if seen["path"] == "/mcp"]
        assert [seen["method"] for seen in refused] == ["POST", "POST", "GET"]
        assert kage("mcp", "test", "old", "--json").json["deprecated"]
        again = [seen for seen in stub.requests if seen["path"] == "/mcp"][len(refused) :]
        assert [seen["method"] for seen in again] == ["GET"]


def test_a_url_that_answers_nothing_says_what_to_do(house: House, kage: Kage) -> None:
    with serving("--token", "the-right-one") as stub:
        house.write(f'[mcp.servers.web]\nurl = "{stub.url}"\n')
        ended = kage("mcp", "test", "web")
        assert ended.code == 1
        assert "kage mcp login web" in ended.err
        assert len(stub.requests) <= 3


def test_only_http_addresses_are_added_and_a_password_in_one_is_never_shown(
    house: House, kage: Kage
) -> None:
    for address in ("file:///etc/passwd", "ftp://h.invalid/mcp", "ws://h.invalid/mcp"):
        added = kage("mcp", "add", "x", address)
        assert added.code == 2 and "http://" in added.err, added
    house.write('[mcp.servers.web]\nurl = "https://joe:hunter2@h.invalid/mcp?api_key=tok-123456"\n')
    shown = kage("mcp", "list"), kage("mcp", "list", "--json")
    assert all("h.invalid" in ended.out and "hunter2" not in ended.out for ended in shown)

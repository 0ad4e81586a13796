"""Lazy and required servers through whole runs of kage."""

from __future__ import annotations

from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, server

LAZY = {"start": '"lazy"'}


def _offered(model: ScriptedModel, request: int) -> set[str]:
    """Give the names of the tools one request offered."""
    return {tool["name"] for tool in model.requests[request].body["tools"]}


def test_the_second_session_offers_a_lazy_server_without_starting_it(house: House) -> None:
    counter = house.workspace / "starts"
    entry = server("known", "restart_breaks", "--counter", counter, "--works", 9, **LAZY)
    house.write(entry)
    allow = ("--allow", "known__*")
    with ScriptedModel(
        [say("first"), say("second"), call("known__echo", text="up"), say("x")]
    ) as m:
        house.use(m)
        assert house.kage("-p", "hello", *allow).code == 0
        assert counter.read_text() == "x"  # once, to be known
        assert house.kage("-p", "hello", *allow).code == 0
        assert counter.read_text() == "x"  # and then not without a need
        assert "known__echo" in _offered(m, 1)
        ended = house.kage("-p", "hello", "--json", *allow)
        assert ended.code == 0, ended.err
        assert counter.read_text() == "xx"
        [result] = [
            event["message"]
            for event in ended.of("message_appended")
            if event["message"]["kind"] == "tool_message"
        ]
        assert result["content"][0]["text"] == "up"
        states = [event["status"]["state"] for event in ended.of("server_changed")]
        assert list(dict.fromkeys(states))[:3] == ["idle", "connecting", "connected"]


def test_a_required_server_that_is_not_up_ends_the_run_before_the_model_is_asked(
    house: House,
) -> None:
    counter = house.workspace / "starts"
    broken = server("db", "restart_breaks", "--counter", counter, "--works", 1, **LAZY)
    with ScriptedModel(then=say("fine")) as model:
        house.use(model)
        house.write(broken)
        assert house.kage("-p", "hello").code == 0  # met, and known from now on
        assert house.kage("-p", "hello").code == 0  # asleep, and nobody needs it
        asked = len(model.requests)
        # known is not up: a required one has to start
        for words in (("--require-mcp",), ()):
            house.write(broken + ("" if words else "required = true\n"))
            ended = house.kage("-p", "hello", *words)
            assert (ended.code, ended.out) == (3, ""), ended.err
            assert ended.lines("db", "not up")
        # one that is tried again is not waited for
        house.write(server("exits", "exits", required="true"))
        ended = house.kage("-p", "hello")
        assert ended.code == 3
        assert ended.lines("exits", "exit code")
        assert len(model.requests) == asked


def test_a_required_server_of_a_project_nobody_trusts_ends_the_run(house: House) -> None:
    file = house.workspace / ".kage" / "config.toml"
    file.parent.mkdir()
    mark = house.workspace / "started"
    file.write_text(server("repo", "echo", "--record", mark, required="true"))
    with ScriptedModel(then=say("fine")) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
        assert (ended.code, model.requests) == (3, []), ended.err
        assert ended.lines("repo", "not")
    assert not mark.exists()

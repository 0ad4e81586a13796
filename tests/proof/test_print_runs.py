"""Whole runs without a screen: prompt, tool call, the gate's answer, result, reply, exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import pytest

from tests.llm import ScriptedModel, call, drop, fail, hold, say, too_long
from tests.llm.script import Request, Turn
from tests.proof.house import House, running, server
from tests.waiting import wait_for

BOTH = pytest.mark.parametrize("wire", ["anthropic", "openai"])


def _told(request: Request) -> Turn:
    return say(f"It said: {request.last_result}")


ASKS_ECHO: list[Turn] = [[say("Let me see. "), call("srv__echo", text="hi there")], _told]


@BOTH
def test_a_call_nobody_can_allow_is_refused_with_the_rule_and_exits_4(
    house: House, wire: str
) -> None:
    house.write(server("srv", "echo", "--record", house.home / "seen"))
    with ScriptedModel(ASKS_ECHO) as model:
        house.use(model, wire)
        ended = house.kage("-p", "greet")
    assert ended.code == 4
    assert "refused" in ended.out  # what the model was told, and said
    assert len(ended.lines("--allow", "srv__echo")) == 1, ended.err
    assert "tools/call" not in (house.home / "seen").read_text()
    assert [r["verdict"] for r in house.records() if r["kind"] == "decision"] == ["deny"]


@BOTH
def test_an_allowed_call_runs_and_only_the_reply_is_on_stdout(house: House, wire: str) -> None:
    house.write(server("srv", "echo"))
    with ScriptedModel(ASKS_ECHO) as model:
        house.use(model, wire)
        ended = house.kage("-p", "greet", "--allow", "srv__echo")
        assert model.requests[0].last_text == "greet"
        assert "srv__echo" in model.requests[0].tools
        assert model.unused == 0
    assert (ended.code, ended.out, ended.err) == (0, "It said: hi there\n", "")
    kinds = [record["kind"] for record in house.records()]
    assert kinds.count("decision") == kinds.count("outcome") == 1


def test_the_rule_that_a_refusal_names_allows_the_call(house: House) -> None:
    house.write(server("srv", "echo"))
    with ScriptedModel([*ASKS_ECHO, *ASKS_ECHO]) as model:
        house.use(model)
        refused = house.kage("-p", "greet")
        rule = refused.err.split("--allow ")[1].split(",")[0]
        assert refused.err.startswith("kage: refused srv__echo: it needs a person's answer")
        ended = house.kage("-p", "greet", "--allow", rule)
    assert (ended.code, ended.out) == (0, "It said: hi there\n")


def test_the_prompt_comes_from_stdin_and_joins_the_one_on_the_command_line(house: House) -> None:
    with ScriptedModel([], then=say("ok")) as model:
        house.use(model)
        assert house.kage("-p", stdin="from a pipe\n").out == "ok\n"
        assert house.kage("-p", "review this", stdin="diff").out == "ok\n"
        first, second = (request.messages[-1]["content"] for request in model.requests)
        assert [block["text"] for block in first] == ["from a pipe"]
        # two parts, since only the words of the person may attach files
        assert [block["text"] for block in second] == ["review this", "\ndiff"]


def test_json_lines_tell_the_whole_run(house: House) -> None:
    house.write(server("srv", "echo"))
    with ScriptedModel(ASKS_ECHO) as model:
        house.use(model)
        ended = house.kage("-p", "greet", "--json", "--allow", "srv__*")
    assert ended.code == 0
    kinds = [event["type"] for event in ended.events]
    wanted = [
        "session_opened", "run_started", "turn_started", "tool_queued", "tool_started",
        "run_finished",
    ]  # fmt: skip
    assert [kind for kind in dict.fromkeys(kinds) if kind in wanted] == wanted
    messages = [event["message"]["kind"] for event in ended.of("message_appended")]
    assert messages == [
        "user_message", "assistant_message", "tool_message", "assistant_message",
    ]  # fmt: skip
    assert ended.events[-1]["end"] == "done"
    assert ended.events[-1]["refused"] == 0


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (fail(401, "invalid x-api-key"), "ANTHROPIC_API_KEY"),
        (fail(404, "model: nope"), "model"),
        (too_long(), "long"),
    ],
    ids=["bad key", "unknown model", "context too long"],
)
def test_an_error_of_the_model_is_told_once_with_what_to_do(
    house: House, turn: Turn, words: str
) -> None:
    with ScriptedModel([], then=turn) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.strip().splitlines()) == 1, ended.err
    assert ended.err.startswith("kage: ")
    assert words in ended.err


def test_a_network_that_is_down_is_told_with_the_address(house: House) -> None:
    house.extra.update(ANTHROPIC_BASE_URL="http://127.0.0.1:9", ANTHROPIC_API_KEY="k")
    ended = house.kage("-p", "hello")
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.lines("cannot be reached", "127.0.0.1:9")) == 1
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("where", ["flag", "config"])
def test_a_model_nobody_offers_is_told_once(house: House, where: str) -> None:
    if where == "config":
        house.write('model = "nope:x"')
    ended = house.kage("-p", "hello", *(["--model", "nope:x"] if where == "flag" else []))
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == 1, ended.err
    assert "nope" in ended.err


def test_a_reply_that_breaks_off_is_asked_for_again(house: House) -> None:
    with ScriptedModel([drop("half a"), say("a whole one")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
        assert len(model.requests) == 2
    assert (ended.code, ended.out) == (0, "a whole one\n")
    assert len(ended.lines("trying again")) == 1


def test_no_prompt_is_a_mistake_of_usage(house: House) -> None:
    ended = house.kage("-p", stdin="")
    assert (ended.code, ended.out) == (2, "")
    assert 'kage -p "your question"' in ended.err


def test_without_a_terminal_kage_points_at_print_mode(house: House) -> None:
    ended = house.kage()
    assert (ended.code, ended.out) == (2, "")
    assert "no terminal" in ended.err
    assert "kage -p" in ended.err


@pytest.mark.parametrize("how", ["required", "--require-mcp"])
def test_a_required_server_that_is_down_exits_3_and_asks_no_model(house: House, how: str) -> None:
    required = "required = true" if how == "required" else ""
    house.write(server("bad", "exits") + required, server("srv", "echo"))
    with ScriptedModel([say("never")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello", *([how] if how.startswith("-") else []))
        assert not model.requests
    assert (ended.code, ended.out) == (3, "")
    assert len(ended.lines("bad", "exit code 1")) == 1
    assert len(ended.lines("required")) == 1


def test_a_server_that_is_down_is_told_once_and_the_others_serve(house: House) -> None:
    house.write(server("bad", "exits"), server("srv", "echo"))
    with ScriptedModel(ASKS_ECHO) as model:
        house.use(model)
        ended = house.kage("-p", "greet", "--allow", "srv__echo")
    assert (ended.code, ended.out) == (0, "It said: hi there\n")
    assert len(ended.lines("kage:", "bad", "handshake", "exit code 1")) == 1
    # its own stderr went straight to kage's
    assert [line for line in ended.err.splitlines() if line.startswith("line ")] == [
        f"line {number}: cannot find module" for number in (1, 2, 3)
    ]


def test_an_interrupt_ends_with_130_and_leaves_nothing(house: House) -> None:
    house.write(server("deaf", "deaf"), server("srv", "grandchild", "--deaf"))
    silence = threading.Event()
    with ScriptedModel([[say("begun"), hold(silence)]]) as model:
        house.use(model)
        with running(house, "-p", "hello") as process:
            wait_for(lambda: model.requests, what="the model is asked")
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(10) == 130
            assert process.stderr is not None
            assert process.stderr.read() == "kage: interrupted\n"
        silence.set()
    house.empty()


def test_a_second_interrupt_does_not_wait_for_a_deaf_server(house: House) -> None:
    house.write(server("deaf", "deaf"))
    silence = threading.Event()
    with ScriptedModel([hold(silence)]) as model:
        house.use(model)
        with running(house, "-p", "hello") as process:
            wait_for(lambda: model.requests, what="the model is asked")
            os.kill(process.pid, signal.SIGINT)
            assert process.stderr is not None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)  # it closes the server in order, which takes four seconds
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(2) == 130
            assert house.processes()  # the server lives; the watchdog sees to it
            house.empty()
        silence.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_signal_leaves_a_process_behind(house: House, number: signal.Signals) -> None:
    house.write(server("deaf", "deaf"), server("kin", "grandchild", "--deaf", "--setsid"))
    silence = threading.Event()
    with ScriptedModel([hold(silence)]) as model:
        house.use(model)
        with running(house, "-p", "hello") as process:
            wait_for(lambda: model.requests, what="the model is asked")
            assert len(house.processes()) >= 4
            os.kill(process.pid, number)
            process.wait(10)
            house.empty()
        silence.set()


def test_a_reader_that_went_away_is_no_crash(house: House) -> None:
    with ScriptedModel([], then=say("x" * 200_000)) as model:
        house.use(model)
        for words in ((), ("--json",)):
            with running(house, "-p", "hello", *words) as process:
                assert process.stdout is not None
                process.stdout.close()
                process.stdout = None
                assert process.wait(20) == 0
                assert process.stderr is not None
                assert process.stderr.read() == ""


def test_a_limit_of_turns_ends_the_run_with_1(house: House) -> None:
    with ScriptedModel([], then=call("ls")) as model:
        house.use(model)
        ended = house.kage("-p", "go on", "--max-turns", "2")
        assert len(model.requests) == 2
    assert ended.code == 1
    assert "stopped after 2 turns" in ended.err


def _entries(name: str, of: str, house: House) -> str:
    from tests.stubs import stub

    command, *args = stub(of, "--record", house.home / f"{name}.seen")
    return json.dumps({"mcpServers": {name: {"command": command, "args": args}}})


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "file"])
def test_servers_of_the_command_line_join_or_replace_the_configured_ones(
    house: House, inline: bool
) -> None:
    house.write(server("own", "echo", "--record", house.home / "own.seen"))
    given = _entries("more", "echo", house)
    if not inline:
        file = house.workspace / "servers.json"
        file.write_text(given)
        given = str(file)
    with ScriptedModel([], then=say("ok")) as model:
        house.use(model)
        house.kage("-p", "hello", "--mcp-config", given)
        servers = {name.split("__")[0] for name in model.requests[-1].tools if "__" in name}
        assert servers == {"own", "more"}
        house.kage("-p", "hello", "--mcp-config", given, "--strict-mcp-config")
        servers = {name.split("__")[0] for name in model.requests[-1].tools if "__" in name}
        assert servers == {"more"}


def test_without_mcp_no_server_is_started(house: House) -> None:
    house.write(server("own", "echo", "--record", house.home / "own.seen"))
    with ScriptedModel([], then=say("ok")) as model:
        house.use(model)
        ended = house.kage("-p", "hello", "--no-mcp")
        assert not [name for name in model.requests[0].tools if "__" in name]
    assert (ended.code, ended.err) == (0, "")
    assert not (house.home / "own.seen").exists()


def test_every_word_of_a_run_is_in_its_session(house: House) -> None:
    house.write(server("srv", "echo"))
    with ScriptedModel(ASKS_ECHO) as model:
        house.use(model)
        house.kage("-p", "greet", "--allow", "srv__echo")
    listed = house.kage("session", "list", "--json").json
    assert len(listed) == 1
    shown = house.kage("session", "show", listed[0]["id"]).out
    for words in ("you: greet", "calls srv__echo", "hi there", "It said: hi there"):
        assert words in shown


def test_a_pipe_that_says_nothing_is_not_waited_for_when_there_is_a_prompt(house: House) -> None:
    with ScriptedModel([], then=say("ok")) as model:
        house.use(model)
        with running(house, "-p", "hello", stdin=subprocess.PIPE) as process:
            assert process.wait(20) == 0


def test_built_in_tools_never_wait_for_a_server(house: House) -> None:
    house.write(server("mute", "silent", timeout='"1s"'))
    (house.workspace / "a.txt").write_text("in the file")
    with ScriptedModel(
        [call("read", path="a.txt"), lambda request: say(request.last_result)]
    ) as model:
        house.use(model)
        ended = house.kage("-p", "look")
    assert ended.code == 0
    assert "in the file" in ended.out
    assert len(ended.lines("kage:")) == 1


def test_what_a_server_or_model_says_never_acts_on_the_terminal(house: House) -> None:
    house.write(server("odd", "odd_results"))
    with ScriptedModel(
        [call("odd__odd", how="error"), lambda request: say(f"\x1b[2J{request.last_result}")]
    ) as model:
        house.use(model)
        for words in ((), ("--json",)):
            ended = house.kage("-p", "look", "--allow", "odd__odd", *words)
            assert "\x1b" not in ended.out + ended.err


def test_a_secret_of_a_server_is_in_no_file_and_no_output(house: House) -> None:
    secret = "s3cr3t-canary-value"
    house.extra["CANARY"] = secret
    house.write(server("srv", "echo", env='{ TOKEN = "${CANARY}" }'))
    with ScriptedModel(
        [call("srv__env", names=["TOKEN"]), lambda request: say(f"It is {request.last_result}")]
    ) as model:
        house.use(model)
        ended = house.kage("-p", "tell", "--json", "--allow", "srv__env")
        assert secret not in json.dumps([dict(r.body) for r in model.requests])
    assert ended.code == 0
    assert secret not in ended.out + ended.err
    for file in house.home.rglob("*"):
        if file.is_file():
            assert secret.encode() not in file.read_bytes(), file

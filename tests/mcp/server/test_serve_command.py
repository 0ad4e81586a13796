"""``kage mcp serve`` as other agents start it: the real command, in every revision."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import ElicitResult, methods
from mcp_types.jsonrpc import jsonrpc_message_adapter

from kage.core.tools import Risk
from kage.permissions.decisions.log import read, verify
from kage.tools import builtin
from tests.mcp.server.peer import ENVELOPE, HANDSHAKE, Served, text_of
from tests.processes import alive, linux
from tests.waiting import until, wait_for

MODERN = "2026-07-28"
MODES = ("auto", "legacy", MODERN)
READERS = ["read", "ls", "find", "grep"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


def configure(home: Path, text: str) -> None:
    """Write the person's own configuration."""
    folder = home / "config" / "kage"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)


def client(mode: str, root: Path, *flags: str, **rest: Any) -> Client:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kage", "mcp", "serve", *flags],
        cwd=str(root),
        env=dict(os.environ),
    )
    return Client(stdio_client(server), mode=mode, read_timeout_seconds=60, **rest)


def envelope(revision: str, **params: Any) -> dict[str, Any]:
    return {"_meta": ENVELOPE, **params} if revision == MODERN else params


# ------------------------------------------------------------------ the five revisions


@pytest.mark.parametrize("revision", [*HANDSHAKE, MODERN])
def test_the_command_speaks_each_revision(root: Path, revision: str) -> None:
    with Served(root) as peer:
        if revision == MODERN:
            found = peer.modern("server/discover")["result"]
            methods.validate_server_result("server/discover", revision, found)
        else:
            assert peer.hello(revision)["protocolVersion"] == revision
        listed = peer.result("tools/list", envelope(revision))
        methods.validate_server_result("tools/list", revision, listed)
        assert tuple(tool["name"] for tool in listed["tools"]) == builtin.NAMES
        params = envelope(revision, name="read", arguments={"path": "a.txt"})
        read = peer.result("tools/call", params)
        methods.validate_server_result("tools/call", revision, read)
        assert "hello" in text_of(read)
        params = envelope(revision, name="read", arguments={"path": "nothing"})
        failed = peer.ask("tools/call", params)
        jsonrpc_message_adapter.validate_python(failed)
        assert failed["result"]["isError"] is True
        assert peer.finish() == 0
        assert peer.line() == b"" and peer.stderr() == ""


# ------------------------------------------------------------------ the official Python client


@pytest.mark.parametrize("mode", MODES)
def test_all_eight_tools_work_under_the_official_client(root: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, root) as served:

            async def call(tool: str, /, **arguments: Any) -> tuple[bool, str]:
                result = await served.call_tool(tool, arguments)
                return bool(result.is_error), result.content[0].text

            names = [tool.name for tool in (await served.list_tools()).tools]
            assert tuple(names) == builtin.NAMES
            assert await call("read", path="a.txt") == (False, "     1\thello")
            assert not (await call("write", path="new/b.txt", content="one\ntwo\n"))[0]
            edited = await call("edit", path="new/b.txt", old_string="two", new_string="2")
            assert not edited[0]
            assert (root / "new/b.txt").read_text() == "one\n2\n"
            assert await call("bash", command="cat new/b.txt") == (False, "one\n2")
            failed, text = await call("bash", command="echo out; echo err >&2; exit 3")
            assert failed and text.split() == ["out", "err", "[exit", "code", "3]"]
            assert "new/" in (await call("ls"))[1]
            assert await call("find", pattern="*.txt") == (False, "a.txt\nnew/b.txt")
            assert "new/b.txt:1:one" in (await call("grep", pattern="^one"))[1]
            failed, text = await call("web_fetch", url="http://127.0.0.1:1/")
            assert failed and "public" in text
            failed, text = await call("edit", path="a.txt", old_string="none", new_string="x")
            assert failed and "not in a.txt" in text
            assert (await call("read", path="/etc/passwd"))[0]
            assert (await call("read"))[0] and (await call("read", path=7))[0]
            with pytest.raises(MCPError):
                await served.call_tool("nothing", {})

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_command_that_takes_too_long_is_a_failed_result(root: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, root) as served:
            line = "echo begun; sleep 300 & sleep 300"
            result = await served.call_tool("bash", {"command": line, "timeout": 1})
            assert result.is_error
            text = result.content[0].text
            assert "begun" in text and "timed out after 1 second" in text

    asyncio.run(main())


@linux
@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_command_is_ended_with_its_children(root: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, root) as served:
            line = "sleep 300 & echo $! > child; echo $$ > shell; wait"
            call = asyncio.ensure_future(served.call_tool("bash", {"command": line}))
            await until(lambda: number(root / "shell"))
            call.cancel()
            await until(lambda: not alive(number(root / "shell")))
            await until(lambda: not alive(number(root / "child")))
            again = await served.call_tool("bash", {"command": "echo on"})
            assert again.content[0].text == "on"

    asyncio.run(main())


@pytest.mark.parametrize("mode", MODES)
def test_a_call_with_a_progress_token_is_answered(root: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, root) as served:
            seen: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            result = await served.call_tool("bash", {"command": "echo x"}, progress_callback=note)
            assert result.content[0].text == "x" and seen == sorted(seen)

    asyncio.run(main())


def number(path: Path) -> int:
    """Give the number in a file, 0 while there is none."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


# ------------------------------------------------------------------ what narrows it


def listed(root: Path, *flags: str) -> list[str]:
    with Served(root, *flags) as peer:
        peer.hello()
        names = [tool["name"] for tool in peer.result("tools/list")["tools"]]
        for name in set(builtin.NAMES) - set(names):
            assert peer.error("tools/call", {"name": name, "arguments": {}})["code"] == -32602
        assert peer.finish() == 0
        return names


def test_read_only_offers_nothing_that_changes_anything(root: Path) -> None:
    assert listed(root, "--read-only") == READERS
    assert listed(root, "--read-only", "--tools", "bash,read") == ["read"]


def test_read_only_is_what_the_tools_themselves_call_read() -> None:
    from kage.mcp.client.watchdog import Watchdog

    tools = builtin.create(spawner=Watchdog(), environ={})
    assert [tool.spec.name for tool in tools if tool.spec.risk is Risk.READ] == READERS


def test_chosen_tools_are_the_only_ones(root: Path) -> None:
    assert listed(root, "--tools", "grep, read") == ["read", "grep"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--tools", "nothing"),
        ("--tools", "read,nothing"),
        ("--tools", "bash", "--read-only"),
        ("--root", "missing"),
        ("--root", "a.txt"),
        ("--root", "bad\x1b]0;title\x07"),
        ("--config", "missing.toml"),
        ("--sudo",),
        ("--root",),
        ("extra",),
    ],
)
def test_wrong_flags_are_told_on_stderr_with_exit_code_2(root: Path, flags: Any) -> None:
    with Served(root, *flags) as peer:
        assert peer.process.wait(60) == 2
        assert peer.line() == b""
        told = peer.stderr()
        assert told.strip() and "Traceback" not in told and "\x1b" not in told


def test_a_root_is_served_from_anywhere_and_nothing_above_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary")
    (root / "link").symlink_to(tmp_path / "secret")
    with Served(tmp_path, "--root", "project") as peer:
        assert str(root) in peer.hello()["instructions"]
        assert "hello" in text_of(peer.call("read", path="a.txt"))
        assert text_of(peer.call("bash", command="pwd")) == str(root.resolve())
        for path in ("../secret", str(tmp_path / "secret"), "link", "../project/../secret"):
            for tool, more in (
                ("read", {}),
                ("write", {"content": "x"}),
                ("edit", {"old_string": "canary", "new_string": "x"}),
                ("ls", {}),
                ("grep", {"pattern": "canary"}),
                ("find", {"pattern": "*"}),
            ):
                result = peer.call(tool, path=path, **more)
                assert result["isError"] and "canary" not in text_of(result), (tool, path)
    assert (tmp_path / "secret").read_text() == "canary"


def test_the_home_folder_is_only_served_when_it_is_named(own_home: Path) -> None:
    with Served(own_home) as peer:
        assert peer.process.wait(60) == 2
        assert f"--root {own_home}" in peer.stderr()
    with Served(own_home, "--root", str(own_home), "--read-only") as peer:
        assert peer.hello() and peer.finish() == 0


# ------------------------------------------------------------------ who says no


RULES = """
[permissions.tools.bash]
deny = ["rm *"]
ask = ["git push *"]
default = "deny"

[permissions.tools.read]
deny = ["secret*"]
"""


def test_deny_rules_of_the_person_hold_and_are_named(root: Path, own_home: Path) -> None:
    configure(own_home, RULES)
    (root / "secret.txt").write_text("canary")
    (root / "alias").symlink_to("secret.txt")
    with Served(root) as peer:
        peer.hello("2025-06-18", elicitation={})
        for line in ("rm a.txt", "true && rm a.txt", "echo $(rm a.txt)", "sh -c 'rm a.txt'"):
            result = peer.call("bash", command=line)
            assert result["isError"] and "bash(rm *)" in text_of(result), line
        for path in ("secret.txt", "./secret.txt", "x/../secret.txt", "alias"):
            result = peer.call("read", path=path)
            assert result["isError"] and "read(secret*)" in text_of(result), path
            assert "canary" not in text_of(result)
        assert text_of(peer.call("bash", command="echo the default does not count here"))
        assert "hello" in text_of(peer.call("read", path="a.txt"))
    assert (root / "a.txt").exists()


def test_ask_rules_go_to_the_person_behind_the_client(root: Path, own_home: Path) -> None:
    configure(own_home, RULES)
    with Served(root) as peer:
        peer.hello("2025-06-18", elicitation={})
        call = {"name": "bash", "arguments": {"command": "git push somewhere"}}
        for action in ("decline", "accept"):
            id_ = peer.post("tools/call", call)
            asked = peer.receive()
            assert asked["method"] == "elicitation/create"
            assert "git push somewhere" in asked["params"]["message"]
            assert "bash(git push *)" in asked["params"]["message"]
            peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action}})
            answer = peer.receive()
            assert answer["id"] == id_ and answer["result"]["isError"]  # no repository
            refused = "bash(git push *) asks" in text_of(answer["result"])
            assert refused == (action == "decline")


def test_what_a_client_changes_or_is_refused_stands_in_the_decision_log(
    root: Path, own_home: Path
) -> None:
    configure(own_home, RULES)
    with Served(root) as peer:
        peer.hello("2025-06-18")
        peer.call("read", path="a.txt")
        peer.call("write", path="b.txt", content="made")
        peer.call("bash", command="rm b.txt")
    folder = own_home / "data" / "kage" / "decisions"
    assert verify(folder) == []
    found = [(record.kind, record.fields) for record in read(folder)]
    assert [kind for kind, _ in found] == ["decision", "outcome", "decision"]
    written, ended, refused = (fields for _, fields in found)
    assert (written["tool"], written["verdict"], written["who"]) == ("write", "allow", "client")
    assert (ended["decision"], ended["outcome"]) == (written["id"], "ok")
    assert (refused["verdict"], refused["rule"]) == ("deny", "bash(rm *)")


def test_a_configuration_that_cannot_be_read_keeps_it_from_serving(
    root: Path, own_home: Path
) -> None:
    configure(own_home, '[permissions.tools.bash]\ndeny = "rm *"\n')
    with Served(root) as peer:
        assert peer.process.wait(60) == 2
        assert "config.toml:2" in peer.stderr()


def test_project_rules_only_add_friction(root: Path) -> None:
    (root / ".kage").mkdir()
    (root / ".kage/config.toml").write_text('[permissions.tools.bash]\ndeny = ["rm *"]\n')
    with Served(root) as peer:
        peer.hello()
        assert "bash(rm *)" in text_of(peer.call("bash", command="rm a.txt"))
    assert (root / "a.txt").exists()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_confirm_asks_the_person_before_each_write(root: Path, mode: str, action: str) -> None:
    asked: list[str] = []

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async def main() -> None:
        async with client(mode, root, "--confirm", elicitation_callback=person) as served:
            read = await served.call_tool("read", {"path": "a.txt"})
            assert not read.is_error and not asked
            for tool, arguments in (
                ("write", {"path": "b.txt", "content": "x"}),
                ("edit", {"path": "a.txt", "old_string": "hello", "new_string": "bye"}),
                ("bash", {"command": "touch c.txt"}),
            ):
                result = await served.call_tool(tool, arguments)
                assert result.is_error == (action != "accept"), result

    asyncio.run(main())
    assert [message.split("?")[0] for message in asked] == [
        *("Allow write", "Allow edit", "Allow bash")
    ]
    done = action == "accept"
    assert (root / "b.txt").exists() == (root / "c.txt").exists() == done
    assert (root / "a.txt").read_text() == ("bye\n" if done else "hello\n")


@pytest.mark.parametrize("mode", MODES)
def test_confirm_refuses_where_nobody_can_be_asked(root: Path, mode: str) -> None:
    async def main() -> None:
        async with client(mode, root, "--confirm") as served:
            result = await served.call_tool("write", {"path": "b.txt", "content": "x"})
            assert result.is_error and "--confirm" in result.content[0].text
            assert not (await served.call_tool("read", {"path": "a.txt"})).is_error

    asyncio.run(main())
    assert not (root / "b.txt").exists()


# ------------------------------------------------------------------ ends


def test_requests_running_at_the_end_of_input_are_answered(root: Path) -> None:
    with Served(root) as peer:
        peer.hello()
        line = "echo begun; sleep 0.3; echo done"
        id_ = peer.post("tools/call", {"name": "bash", "arguments": {"command": line}})
        assert peer.finish() == 0
        answer = peer.receive()
        assert answer["id"] == id_ and text_of(answer["result"]) == "begun\ndone"
        assert peer.line() == b""


def test_messages_sent_in_one_go_with_the_end_are_all_answered(root: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    call = {"name": "bash", "arguments": {"command": "echo hi"}}
    messages = [("initialize", hello), ("tools/list", {}), ("tools/call", call), ("ping", {})]
    with Served(root) as peer:
        peer.raw(
            b"\n".join(
                json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}).encode()
                for n, (method, params) in enumerate(messages)
            )
        )
        assert peer.finish() == 0
        assert {peer.receive()["id"] for _ in messages} == {0, 1, 2, 3}
        assert peer.line() == b""


@linux
@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_its_commands_in_good_order(root: Path, signal_: int) -> None:
    with Served(root) as peer:
        peer.hello()
        line = "(trap '' TERM HUP INT; echo $BASHPID > pid; while :; do sleep 0.1; done) & wait"
        id_ = peer.post("tools/call", {"name": "bash", "arguments": {"command": line}})
        wait_for(lambda: number(root / "pid"))
        peer.process.send_signal(signal_)
        answer = peer.receive()
        assert answer["id"] == id_ and answer["result"]["isError"]
        assert peer.process.wait(60) == 0
        wait_for(lambda: not alive(number(root / "pid")))
        assert peer.stderr() == ""


@linux
@pytest.mark.parametrize("end", ["kill", "close"])
def test_nothing_a_command_started_outlives_the_server(root: Path, end: str) -> None:
    line = (
        "trap '' TERM; echo $$ > shell;"
        " (trap '' TERM HUP; echo $BASHPID > child; while :; do sleep 0.1; done) &"
        " setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; while :; do sleep 0.1; done' &"
        " wait"
    )
    with Served(root) as peer:
        peer.hello()
        peer.post("tools/call", {"name": "bash", "arguments": {"command": line}})
        files = [root / name for name in ("shell", "child", "daemon")]
        wait_for(lambda: all(map(number, files)))
        if end == "kill":
            peer.process.kill()
        else:
            assert peer.process.stdin is not None
            peer.process.stdin.close()
        assert peer.process.wait(60) == (-signal.SIGKILL if end == "kill" else 0)
        for file in files:
            wait_for(lambda file=file: not alive(number(file)), what=file.name)


# ------------------------------------------------------------------ what the tools see


def test_stdout_and_stdin_of_the_protocol_are_out_of_reach_for_commands(root: Path) -> None:
    with Served(root) as peer:
        peer.hello()
        line = "cat; echo stray > /dev/stderr; ls /proc/self/fd | wc -l; echo out"
        result = peer.call("bash", command=line)
        assert text_of(result).endswith("out") and not result["isError"]
        assert text_of(peer.call("bash", command="echo x >&2; echo y > /proc/$PPID/fd/1; echo z"))
        assert peer.finish() == 0
        assert peer.line() == b""


def test_commands_carry_the_agents_mark_and_no_secret(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    with Served(root) as peer:
        peer.hello()
        seen = text_of(peer.call("bash", command="env"))
        assert "KAGE_AGENT=1" in seen.splitlines() and "canary" not in seen


@linux
def test_a_command_inherits_no_descriptor_but_the_three(root: Path) -> None:
    with Served(root) as peer:
        peer.hello()
        seen = text_of(peer.call("bash", command="ls /proc/$$/fd; true"))
        assert set(seen.split()) <= {"0", "1", "2", "255"}


# ------------------------------------------------------------------ where it is started


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-", ">&- 2>&-"])
def test_closed_descriptors_end_it_without_a_traceback(root: Path, closed: str) -> None:
    line = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "kage", "mcp", "serve"],
        cwd=root,
        input=b"",
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert "2>&-" in closed or b"stdin and stdout" in done.stderr


def test_a_folder_that_is_gone_is_told(root: Path) -> None:
    line = 'cd "$1" && rm -r "$1" && exec "$2" -m kage mcp serve'
    done = subprocess.run(
        ["sh", "-c", line, "sh", str(root), sys.executable],
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr and b"--root" in done.stderr


@pytest.mark.parametrize("flag", ["", "loop", "loop/x", "x" * 5000])
def test_a_root_that_cannot_be_is_refused(root: Path, flag: str) -> None:
    (root / "loop").symlink_to("loop")
    with Served(root, "--root", flag) as peer:
        assert peer.process.wait(60) == 2
        assert "Traceback" not in peer.stderr()


def test_what_an_absent_stderr_would_have_said_stays_off_the_protocol(root: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "kage", "mcp", "serve", "--no"],
        cwd=root,
        capture_output=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == b""


@pytest.mark.parametrize("name", [".mcp.json", ".kage/config.toml"])
@pytest.mark.parametrize("kind", ["fifo", "endless", "broken"])
def test_odd_files_of_a_project_neither_hang_nor_pass_for_rules(
    root: Path, name: str, kind: str
) -> None:
    file = root / name
    file.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "endless":
        file.symlink_to("/dev/zero")
    else:
        file.write_text("{")
    with Served(root) as peer:
        if name == ".mcp.json":  # declares servers, which serving never starts
            assert peer.hello() and peer.finish() == 0
        else:
            assert peer.process.wait(60) == 2
        told = peer.stderr()
        assert file.name in told and "Traceback" not in told


# ------------------------------------------------------------------ kage's own files


@pytest.mark.parametrize(
    "path",
    [
        *("config/kage/config.toml", "data/kage/grants.toml", "config/kage/init.lua"),
        *("p/.kage/config.toml", "p/.mcp.json", "alias", "config/kage/new/file"),
    ],
)
def test_kages_own_files_are_only_changed_when_a_person_agrees(own_home: Path, path: str) -> None:
    configure(own_home, "# mine\n")
    (own_home / "alias").symlink_to("config/kage/config.toml")
    with Served(own_home, "--root", str(own_home)) as peer:
        peer.hello("2024-11-05")
        result = peer.call("write", path=path, content="# theirs\n")
        assert result["isError"] and "kage's own files" in text_of(result)
        edit = peer.call("edit", path=path, old_string="mine", new_string="theirs")
        assert edit["isError"] and "kage's own files" in text_of(edit)
        assert not peer.call("write", path="other/config.toml", content="x")["isError"]
        peer.hello("2025-06-18", elicitation={})
        peer.post("tools/call", {"name": "write", "arguments": {"path": path, "content": "new"}})
        asked = peer.receive()
        assert "kage's own files" in asked["params"]["message"]
        assert (own_home / "config/kage/config.toml").read_text() == "# mine\n"
        peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
        assert not peer.receive()["result"]["isError"]
        assert (own_home / path).read_text() == "new"


# ------------------------------------------------------------------ what it leaves behind


def test_full_outputs_can_be_read_on_but_not_written_and_go_with_the_server(
    root: Path, own_home: Path
) -> None:
    kept = own_home / "data/kage/served"
    old = kept / "999999999"  # of a server that was killed; no process has this number
    old.mkdir(parents=True)
    (old / "s1.txt").write_text("left")
    (kept / "888888888").symlink_to(root)
    with Served(root) as peer:
        peer.hello()
        shown = text_of(peer.call("bash", command="seq 100000"))
        path = shown.partition("the whole output is in ")[2].split(" …")[0]
        assert str(kept) in path
        assert "50000" in text_of(peer.call("read", path=path, offset=50000, limit=1))
        assert "77777" in text_of(peer.call("grep", path=path, pattern="^77777$"))
        assert peer.call("write", path=path, content="x")["isError"]
        assert peer.call("edit", path=path, old_string="7", new_string="x")["isError"]
        assert peer.finish() == 0
    assert not Path(path).exists() and not old.exists()
    assert (root / "a.txt").exists()

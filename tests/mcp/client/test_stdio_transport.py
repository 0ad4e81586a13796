"""The stdio transport under the SDK's own client, against stubs that behave and misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import JSONRPCRequest, JSONRPCResponse

from kage.core.errors import ServerError
from kage.mcp.client.transport.launch import Launch, StderrMode
from kage.mcp.client.transport.parse import ANSWER_TOO_LONG
from kage.mcp.client.transport.stdio import StdioTransport
from kage.mcp.client.watchdog import Watchdog
from tests.processes import alive, carrying, linux
from tests.stubs import stub
from tests.waiting import DEADLINE, until

ROOT = Path(__file__).parents[3]


class Bench:
    """A watchdog and the transports of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watchdog = Watchdog()
        self.errors: list[str] = []
        self.strays: list[str] = []

    def transport(
        self,
        argv: list[str],
        *,
        stderr: StderrMode = "pipe",
        limit: int = 32 << 20,
        cwd: Path | None = None,
        path: str | None = None,
    ) -> StdioTransport:
        env = {"PATH": os.environ["PATH"] if path is None else path, "HOME": str(self.folder)}
        return StdioTransport(
            Launch(argv=tuple(argv), cwd=cwd or self.folder, env=env, server="test"),
            spawner=self.watchdog,
            stderr=stderr,
            on_stderr=self.errors.append,
            on_stray=self.strays.append,
            max_message_bytes=limit,
        )

    async def start(self, name: str, *options: object, limit: int = 32 << 20) -> StdioTransport:
        transport = self.transport(stub(name, *options), limit=limit)
        await transport.spawn()
        return transport

    @asynccontextmanager
    async def client(
        self, name: str, *options: object, mode: str = "auto", limit: int = 32 << 20
    ) -> AsyncIterator[tuple[Client, StdioTransport]]:
        transport = await self.start(name, *options, limit=limit)
        async with Client(
            transport.streams(),
            mode=mode,
            cache=None,
            read_timeout_seconds=90,
        ) as client:
            await client.list_tools()
            yield client, transport


def run(folder: Path, test: Callable[[Bench], Awaitable[None]]) -> None:
    """Run a test and check that nothing stays behind."""

    async def main() -> str:
        bench = Bench(folder)
        try:
            await test(bench)
        finally:
            await bench.watchdog.close()
        return bench.watchdog.tag

    tag = asyncio.run(main())
    if sys.platform == "linux":
        assert carrying(tag) == set()


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return "".join(getattr(part, "text", "") for part in result.content)


# ---------------------------------------------------------------------- ordinary work


@pytest.mark.parametrize(
    ("name", "options", "mode", "revision"),
    [
        ("echo", (), "auto", "2026-07-28"),
        ("modern", (), "auto", "2026-07-28"),
        ("modern", (), "2026-07-28", "2026-07-28"),
        ("legacy24", (), "auto", "2024-11-05"),
        ("probe_deaf", (), "legacy", "2025-11-25"),
        *(
            ("echo", ("--revisions", revision), "auto", revision)
            for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
        ),
    ],
)
def test_every_revision_is_spoken(
    name: str, options: tuple[str, ...], mode: str, revision: str, tmp_path: Path
) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client(name, *options, mode=mode) as (client, transport):
            assert client.protocol_version == revision
            assert await text_of(client, "echo", text="hällo\n🎈") == "hällo\n🎈"
            assert transport.pid is not None
        assert await transport.wait() == 0

    run(tmp_path, test)


def test_the_server_gets_its_arguments_folder_and_whole_environment(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("echo", "--version", "a b") as (client, transport):
            folder, pid, *argv = json.loads(await text_of(client, "where"))
            assert os.path.realpath(folder) == os.path.realpath(tmp_path)
            assert pid == transport.pid
            assert argv[1:] == ["--version", "a b"]
            names = {line.split("=")[0] for line in (await text_of(client, "env")).splitlines()}
            assert names <= {"PATH", "HOME", "KAGE_TAG", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}

    run(tmp_path, test)


def test_calls_run_side_by_side_and_progress_arrives_in_order(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        seen: list[float] = []

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        async with bench.client("echo") as (client, _):
            slow = asyncio.create_task(client.call_tool("sleep", {"seconds": 0.3}))
            done = await asyncio.gather(*(text_of(client, "echo", text=str(n)) for n in range(50)))
            assert done == [str(n) for n in range(50)]
            await client.call_tool("progress", {"steps": 20}, progress_callback=progress)
            assert seen == [float(n) for n in range(1, 21)]
            await slow

    run(tmp_path, test)


def test_a_large_answer_and_a_large_argument_pass(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("echo") as (client, transport):
            assert len(await text_of(client, "long", size=16_000_000)) == 16_000_000
            text = "y" * 8_000_000
            assert await text_of(client, "echo", text=text) == text
            assert transport.stalled_since is None
            assert transport.traffic is not None
            assert transport.traffic.bytes_in > 24_000_000
            assert transport.traffic.bytes_out > 8_000_000

    run(tmp_path, test)


def test_half_a_surrogate_can_be_written(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        record = tmp_path / "record"
        transport = await bench.start("echo", "--record", record)
        async with transport.streams() as (_, write):
            request = JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params={"x": "\ud800"})
            await write.send(SessionMessage(request))
            await until(lambda: record.exists() and record.read_bytes().endswith(b"\n"))
        assert json.loads(record.read_bytes())["params"] == {"x": "\ud800"}

    run(tmp_path, test)


def test_starting_a_server_needs_no_sdk(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, sys
from pathlib import Path
from kage.mcp.client.transport.stdio import Launch, StdioTransport
from kage.mcp.client.servers.journal import Journal
from kage.mcp.client.watchdog import Watchdog
async def main():
    watchdog, journal = Watchdog(), Journal("x")
    argv = {tuple(stub("exits", "--lines", 2))!r}
    launch = Launch(argv=argv, cwd=Path("/"), env=dict(os.environ))
    transport = StdioTransport(launch, spawner=watchdog, stderr="pipe", on_stderr=journal.stderr,
                               on_stray=journal.stray, max_message_bytes=1000)
    await transport.spawn()
    print(await transport.wait(), len(journal.lines()))
    await transport.close()
    await watchdog.close()
    print(sorted({{"mcp", "mcp_types", "anyio", "pydantic", "httpx2"}} & set(sys.modules)))
asyncio.run(main())
"""
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, check=False
    )
    assert out.stdout.decode().split("\n") == ["1 2", "[]", ""], out.stderr.decode()
    assert out.stderr == b""


# ---------------------------------------------------------------------- starting fails


@pytest.mark.parametrize(
    ("argv", "what", "why", "fix"),
    [
        (["no-such-tool"], "Cannot find no-such-tool", "on its PATH (/no/bin)", "full path"),
        (["npx", "-y", "x"], "Cannot find npx", "no program of that name", "Node.js"),
        (["/no/such/tool"], "Cannot start /no/such/tool", "does not exist", "Correct `command`"),
        (["./text"], "Cannot start ./text", "is not executable", "chmod +x"),
        (["./script"], "Cannot start", "asks for /nowhere/python", "Install /nowhere/python"),
        (["."], "Cannot find .", "", ""),
        (["./"], "Cannot start ./", "is a folder", "Correct `command`"),
        (["/bin/sh", "\0"], "Cannot start /bin/sh", "NUL", "Correct"),
        (["/bin/sh", "x" * (1 << 22)], "Cannot start /bin/sh", "too long", "Shorten"),
    ],
)
def test_a_server_that_cannot_start_says_why_and_what_to_do(
    argv: list[str], what: str, why: str, fix: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "script").write_text("#!/nowhere/python\n")
    (tmp_path / "script").chmod(0o755)

    async def test(bench: Bench) -> None:
        transport = bench.transport(argv, path="/no/bin")
        with pytest.raises(ServerError) as caught:
            await transport.spawn()
        assert (caught.value.server, caught.value.stage) == ("test", "spawn")
        assert what in caught.value.what
        assert why in caught.value.why
        assert fix in caught.value.fix
        assert transport.pid is None
        await transport.close()

    run(tmp_path, test)


@pytest.mark.parametrize(("name", "why"), [("missing", "does not exist"), ("file", "not a folder")])
def test_a_bad_folder_is_told_as_such(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def test(bench: Bench) -> None:
        with pytest.raises(ServerError) as caught:
            await bench.transport(["sh"], cwd=tmp_path / name).spawn()
        assert str(tmp_path / name) in caught.value.what
        assert why in caught.value.why
        assert "cwd" in caught.value.fix

    run(tmp_path, test)


# ---------------------------------------------------------------------- it ends


@pytest.mark.parametrize(
    ("options", "code"), [((), 1), (("--code", 42), 42), (("--signal", 11), -11)]
)
def test_an_exit_is_noticed_without_any_call(
    options: tuple[object, ...], code: int, tmp_path: Path
) -> None:
    async def test(bench: Bench) -> None:
        transport = await bench.start("exits", *options)
        async with asyncio.timeout(DEADLINE):
            assert await transport.wait() == code
        assert bench.errors == [f"line {n}: cannot find module" for n in (1, 2, 3)]
        assert transport.exit_code == code
        await transport.close()

    run(tmp_path, test)


def test_an_exit_is_noticed_although_a_grandchild_holds_stdout(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("grandchild", "--setsid", "--deaf") as (client, transport):
            begun = time.monotonic()
            with pytest.raises(MCPError):
                await client.call_tool("leave", {})
            assert time.monotonic() - begun < DEADLINE
            assert await transport.wait() == 0
            assert transport.ended == ""

    run(tmp_path, test)


def test_what_was_written_before_the_exit_still_arrives(tmp_path: Path) -> None:
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    script = f"(sleep 300 &) ; echo '{answer}'; echo last words >&2; exit 3"

    async def test(bench: Bench) -> None:
        transport = bench.transport(["/bin/sh", "-c", script])
        await transport.spawn()
        assert await transport.wait() == 3
        async with transport.streams() as (read, _):
            got = [item async for item in read]
        [item] = got
        assert isinstance(item, SessionMessage)
        assert isinstance(item.message, JSONRPCResponse)
        assert bench.errors == ["last words"]

    run(tmp_path, test)


@pytest.mark.parametrize("when", ["after", "half", "before"])
def test_a_crash_around_a_call_fails_the_call(when: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("crash", "--when", when) as (client, transport):
            with pytest.raises(MCPError):
                await client.call_tool("crash", {})
            assert await transport.wait() == 7
        assert bench.errors == ["fatal: the index is corrupt"]

    run(tmp_path, test)


def test_a_server_that_closes_its_output_is_told(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = bench.transport(["/bin/sh", "-c", "exec >&-; sleep 300"])
        await transport.spawn()
        async with transport.streams() as (read, _):
            assert [item async for item in read] == []
            assert transport.ended == "it closed its output"

    run(tmp_path, test)


def test_a_server_that_closes_its_input_is_told(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = bench.transport(["/bin/sh", "-c", "exec <&-; echo {}; sleep 300"])
        await transport.spawn()
        async with transport.streams() as (read, write):
            await until(lambda: bench.strays)
            with contextlib.suppress(Exception):
                for _ in range(100):
                    message = JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
                    await write.send(SessionMessage(message))
                    await asyncio.sleep(0)
            assert [item async for item in read] == []
            assert transport.ended == "it closed its input"

    run(tmp_path, test)


# ---------------------------------------------------------------------- closing


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("echo", (), 0),
        ("deaf", (), -signal.SIGKILL),
        ("silent", (), 0),
        ("stops_reading", (), -signal.SIGTERM),
        ("noisy", ("--lines", 200_000), 0),
    ],
)
def test_close_ends_the_server_in_bounded_time(
    name: str, options: tuple[object, ...], code: int, tmp_path: Path
) -> None:
    async def test(bench: Bench) -> None:
        transport = await bench.start(name, *options)
        async with transport.streams() as (read, write):
            for method in ("initialize", "tools/list"):
                request = JSONRPCRequest(jsonrpc="2.0", id=method, method=method, params={})
                await write.send(SessionMessage(request))
                if name != "silent":
                    await read.receive()
            begun = time.monotonic()
        assert time.monotonic() - begun < DEADLINE
        assert await transport.wait() == code
        await transport.close()

    run(tmp_path, test)


@linux
@pytest.mark.parametrize("options", [(), ("--deaf",)])
def test_close_ends_the_group_although_the_leader_left_at_eof(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    pids = tmp_path / "pids"

    async def test(bench: Bench) -> None:
        async with bench.client("grandchild", "--pids", pids, *options):
            leader, child = map(int, pids.read_text().split())
            assert alive(leader)
            assert alive(child)
        assert not alive(leader)
        assert not alive(child)

    run(tmp_path, test)


def test_close_before_streams_lets_a_talkative_server_leave(tmp_path: Path) -> None:
    script = (
        "i=0; while [ $i -lt 20000 ]; do echo 'some banner line'; i=$((i+1)); done; cat; exit 5"
    )

    async def test(bench: Bench) -> None:
        transport = bench.transport(["/bin/sh", "-c", script])
        await transport.spawn()
        await transport.close()
        assert await transport.wait() == 5

    run(tmp_path, test)


def test_closing_twice_cancelled_does_not_hang_and_goes_on(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = await bench.start("deaf")
        waiting = asyncio.create_task(transport.close())
        for _ in range(2):
            await asyncio.sleep(0.02)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, DEADLINE)
        async with asyncio.timeout(DEADLINE):
            await transport.close()
            await transport.close()
        assert transport.exit_code is not None

    run(tmp_path, test)


def test_leaving_the_streams_twice_cancelled_does_not_hang(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = await bench.start("deaf")
        inside = asyncio.Event()

        async def own() -> None:
            async with Client(transport.streams(), cache=None):
                inside.set()
                await asyncio.Event().wait()

        owner = asyncio.create_task(own())
        await inside.wait()
        for _ in range(3):
            owner.cancel()
            await asyncio.sleep(0.02)
        done, _ = await asyncio.wait({owner}, timeout=DEADLINE)
        assert done
        await transport.close()

    run(tmp_path, test)


def test_a_loop_that_ends_without_close_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> str:
        bench = Bench(tmp_path)
        transport = await bench.start("deaf")
        task = asyncio.create_task(transport.close())
        await asyncio.sleep(0.05)
        assert not task.done()
        # the watchdog process has to do without a close() of its owner as well
        reaper = bench.watchdog._reaper
        assert reaper is not None
        assert reaper.stdin is not None
        reaper.stdin.close()
        reaper.wait(DEADLINE)
        return bench.watchdog.tag

    tag = asyncio.run(main())
    if sys.platform == "linux":
        assert carrying(tag) == set()


def test_close_while_starting_stops_the_start(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = bench.transport(stub("echo"))
        starting = asyncio.create_task(transport.spawn())
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(ServerError):
            await starting
        assert transport.exit_code is not None

    run(tmp_path, test)


# ---------------------------------------------------------------------- misbehaviour on stdout


def test_text_on_stdout_is_counted_and_skipped(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("banner") as (client, transport):
            assert await text_of(client, "echo", text="through") == "through"
        assert bench.strays == [
            "Welcome to the banner server!",
            "\x1b]0;owned\x07\x1b[2J  v1.0",
            "debug: echo was called",
            "{not json either}",
            "[1, 2",
        ]
        assert transport.traffic is not None
        assert transport.traffic.strays == 5

    run(tmp_path, test)


def test_bad_bytes_cost_only_themselves(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("bad_utf8") as (client, _):
            assert await text_of(client, "send", kind="raw") == "caf\ufffd \ufffd\ufffd\ufffd"
            assert await text_of(client, "send", kind="surrogate") == "half \ufffd pair"
            assert await text_of(client, "send", kind="nul") == "a \0 b"
            assert await text_of(client, "echo", text="still here") == "still here"
        assert len(bench.strays) == 1

    run(tmp_path, test)


@pytest.mark.parametrize("how", ["first", "last"])
def test_a_line_of_100_mb_costs_that_call_only(how: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("huge_line", limit=1 << 20) as (client, _):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("huge", {"size": 100_000_000, "how": how})
            assert caught.value.code == ANSWER_TOO_LONG
            assert await text_of(client, "echo", text="next") == "next"

    run(tmp_path, test)


def test_a_long_line_without_an_id_ends_the_connection_with_the_reason(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("huge_line", limit=1 << 20) as (client, transport):
            with pytest.raises(MCPError):
                await client.call_tool("huge", {"size": 5_000_000, "how": "none"})
            assert "max_message_bytes" in transport.ended
            assert transport.exit_code is None

    run(tmp_path, test)


def test_an_endless_line_fails_its_call_before_it_ends(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("huge_line", limit=1 << 20) as (client, _):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("huge", {"size": 3_000_000, "how": "endless"})
            assert caught.value.code == ANSWER_TOO_LONG

    run(tmp_path, test)


@pytest.mark.parametrize(
    "how", ["null", "list", "text", "number", "bad_error", "no_jsonrpc", "cut", "error"]
)
def test_a_broken_answer_fails_its_call_at_once(how: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("odd_results") as (client, _):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("odd", {"how": how}, read_timeout_seconds=60)
            assert caught.value.code != -32001  # not by its timeout
            assert await text_of(client, "echo", text="next") == "next"

    run(tmp_path, test)


@pytest.mark.parametrize("how", ["nan", "twice", "batch"])
def test_odd_answers_that_can_be_understood_are(how: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("odd_results") as (client, _):
            assert await text_of(client, "odd", how=how) == "ok"
            assert await text_of(client, "echo", text="next") == "next"

    run(tmp_path, test)


@pytest.mark.parametrize("how", ["unknown_content", "bad_content", "no_content", "deep"])
def test_an_answer_of_the_wrong_shape_does_not_end_the_connection(how: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("odd_results") as (client, _):
            with pytest.raises((MCPError, ValueError)):
                await client.call_tool("odd", {"how": how})
            assert await text_of(client, "echo", text="next") == "next"

    run(tmp_path, test)


# ---------------------------------------------------------------------- pressure


@pytest.mark.parametrize("kind", ["log", "changed", "unknown"])
def test_a_flood_is_thinned_and_the_answer_still_comes(kind: str, tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        seen = 0

        async def handler(message: object) -> None:
            nonlocal seen
            seen += 1

        transport = await bench.start("flood")
        async with Client(transport.streams(), cache=None, message_handler=handler) as client:
            await client.list_tools()
            begun = time.monotonic()
            text = await text_of(client, "flood", count=40_000, kind=kind)
            assert text == f"flooded with {kind}"
            assert transport.traffic is not None
            passed = 40_000 - transport.traffic.dropped
            assert passed < 1_100 + 500 * (time.monotonic() - begun)
            if kind == "changed":
                await until(lambda: seen > 0)
                assert seen < 1000

    run(tmp_path, test)


def test_the_loop_stays_awake_during_floods(tmp_path: Path) -> None:
    """Compare the longest turn of the loop with the length of the flood, in time it computes."""

    async def test(bench: Bench) -> None:
        gaps: list[float] = []

        async def tick() -> None:
            last = time.thread_time()
            while True:
                await asyncio.sleep(0)
                now = time.thread_time()
                gaps.append(now - last)
                last = now

        async with bench.client("flood") as (client, _):
            ticker = asyncio.create_task(tick())
            begun = time.thread_time()
            await text_of(client, "flood", count=40_000, kind="log")
            length = time.thread_time() - begun
            ticker.cancel()
            assert len(gaps) > 50
            assert max(gaps) < length / 3

    run(tmp_path, test)


def test_a_consumer_that_does_not_read_makes_the_server_wait(tmp_path: Path) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"x": "y" * 1000}})
    script = f"import sys\nfor n in range(20000): sys.stdout.write({line!r} + chr(10))"

    async def test(bench: Bench) -> None:
        transport = bench.transport([sys.executable, "-I", "-S", "-c", script])
        await transport.spawn()
        async with transport.streams() as (read, _):
            await read.receive()
            await asyncio.sleep(0.3)  # time in which it would read on, if it did
            assert transport.traffic is not None
            assert transport.traffic.bytes_in < 2_000_000
            assert transport.exit_code is None
            count = 1
            async for _ in read:
                count += 1
            assert count == 20_000

    run(tmp_path, test)


def test_a_stalled_write_is_seen_and_blocks_nothing_else(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = await bench.start("stops_reading")
        async with transport.streams() as (read, write):
            for method in ("initialize", "tools/list"):
                request = JSONRPCRequest(jsonrpc="2.0", id=method, method=method, params={})
                await write.send(SessionMessage(request))
                await read.receive()
            big = JSONRPCRequest(jsonrpc="2.0", id=3, method="x", params={"x": "y" * 4_000_000})
            await write.send(SessionMessage(big))
            await until(lambda: transport.stalled_since is not None)
            since = transport.stalled_since
            with pytest.raises(TimeoutError):  # the next message has to wait, its sender need not
                async with asyncio.timeout(0.1):
                    await write.send(SessionMessage(big))
            assert transport.stalled_since is not None
            assert since is not None
            assert transport.stalled_since >= since
        assert transport.exit_code == -signal.SIGTERM

    run(tmp_path, test)


# ---------------------------------------------------------------------- stderr


def test_a_million_lines_on_stderr_are_drained_and_the_last_ones_kept(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("noisy", "--lines", 0) as (client, _):
            shouting = asyncio.create_task(client.call_tool("shout", {"lines": 1_000_000}))
            await shouting
            assert await text_of(client, "echo", text="meanwhile") == "meanwhile"
            await until(lambda: bench.errors and bench.errors[-1] == "noise 999999")
        assert bench.errors[0] == "noise 0"
        notes = [line for line in bench.errors if line.endswith(" lines left out]")]
        lost = sum(int(note[1:].split()[0]) for note in notes)
        assert notes
        assert len(bench.errors) - len(notes) + lost == 1_000_000
        assert bench.errors[-200:] == [f"noise {n}" for n in range(999_800, 1_000_000)]

    run(tmp_path, test)


def test_long_lines_and_bad_bytes_on_stderr_are_cut_and_mended(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        async with bench.client("noisy", "--lines", 1, "--long", "--bytes"):
            await until(lambda: len(bench.errors) == 3)
        assert len(bench.errors[0]) < 9000
        assert bench.errors[0].endswith("x [991808 bytes left out]")
        assert bench.errors[1] == "\ufffd\ufffd\x1b[31mred\x1b[0m"
        assert bench.errors[2] == "noise 0"

    run(tmp_path, test)


def test_a_last_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        transport = bench.transport(["/bin/sh", "-c", "printf 'Password: ' >&2; cat"])
        await transport.spawn()
        await until(lambda: bench.errors == ["Password: "])
        await transport.close()
        assert bench.errors == ["Password: "]

    run(tmp_path, test)


@pytest.mark.parametrize("mode", ["inherit", "null"])
def test_stderr_is_inherited_or_thrown_away(mode: str, tmp_path: Path) -> None:
    code = f"""
import asyncio, os
from pathlib import Path
from kage.mcp.client.transport.stdio import Launch, StdioTransport
from kage.mcp.client.watchdog import Watchdog
async def main():
    watchdog = Watchdog()
    argv = {tuple(stub("exits", "--lines", 1))!r}
    launch = Launch(argv=argv, cwd=Path("/"), env=dict(os.environ))
    transport = StdioTransport(launch, spawner=watchdog, stderr={mode!r}, on_stderr=print,
                               on_stray=print, max_message_bytes=1000)
    await transport.spawn()
    await transport.wait()
    await transport.close()
    await watchdog.close()
asyncio.run(main())
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert out.stdout == b""
    assert out.stderr == (b"line 1: cannot find module\n" if mode == "inherit" else b"")


# ---------------------------------------------------------------------- the stubs themselves


STUBS = sorted(path.stem for path in (ROOT / "tests" / "stubs").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", [name for name in STUBS if name != "base"])
def test_every_stub_starts_from_anywhere_and_leaves_at_eof_or_as_it_says(
    name: str, tmp_path: Path
) -> None:
    options = {"restart_breaks": ["--counter", str(tmp_path / "n")], "slow": ["--delay", "0.1"]}
    argv = stub(name, *options.get(name, []))
    env = {"PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        argv, cwd=tmp_path, env=env, stdin=-1, stdout=-1, stderr=-1, start_new_session=True
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if name == "deaf":
                request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["result"] == {}
            process.stdin.close()
            if name == "deaf":
                process.terminate()
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.3)
            else:
                assert process.wait(DEADLINE) == (1 if name == "exits" else 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert name in (ROOT / "tests" / "stubs" / "__init__.py").read_text()

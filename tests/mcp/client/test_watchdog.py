"""No process kage starts outlives kage, however kage ends."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kage.mcp.client.watchdog import TAG_VARIABLE, Child, Watchdog
from tests.processes import alive, carrying, linux, state
from tests.stubs import stub
from tests.waiting import DEADLINE, until, wait_for

ROOT = Path(__file__).parents[3]
# each says "up" when it runs
PLAIN = ["/bin/sh", "-c", "echo up; sleep 300"]
DEAF = ["/bin/sh", "-c", "trap '' TERM HUP INT; echo up; while :; do sleep 1; done"]
WRAPPED = ["/bin/sh", "-c", "trap '' TERM; (trap '' TERM; sleep 300) & echo up; wait; sleep 300"]
DAEMON = [
    sys.executable,
    "-c",
    "import os,signal,time\nif not os.fork():\n os.setsid()\n"
    " if os.fork(): os._exit(0)\n signal.signal(15,1); print('up',flush=True); time.sleep(300)\n"
    "time.sleep(300)",
]


def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}


def run(test: Callable[[Watchdog], Awaitable[None]]) -> None:
    """Run a test with a watchdog of its own and check that nothing stays behind."""

    async def main() -> str:
        watchdog = Watchdog()
        try:
            await test(watchdog)
        finally:
            await watchdog.close()
        return watchdog.tag

    tag = asyncio.run(main())
    if sys.platform == "linux":
        assert carrying(tag) == set()


async def start(watchdog: Watchdog, argv: list[str], folder: Path) -> Child:
    child = await watchdog.spawn(argv, cwd=folder, env=environment())
    assert child.stdout is not None
    assert await child.stdout.readline() == b"up\n"
    return child


# ---------------------------------------------------------------------- starting


def test_a_child_leads_its_own_session_and_carries_the_tag(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        argv = [sys.executable, "-c", "import os;print(os.getsid(0), os.getpid(), os.environ)"]
        child = await watchdog.spawn(argv, cwd=tmp_path, env={**environment(), "MINE": "ä"})
        assert child.stdout is not None
        text = (await child.stdout.read()).decode()
        session, pid = text.split()[:2]
        assert session == pid == str(child.pid)
        assert f"'{TAG_VARIABLE}': '{watchdog.tag}.1'" in text
        assert "'MINE': 'ä'" in text
        assert await child.wait() == 0

    run(test)


@linux
def test_a_child_gets_no_descriptor_but_the_three(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        held = os.open(tmp_path, os.O_RDONLY)
        os.set_inheritable(held, True)
        try:
            argv = [
                sys.executable,
                "-I",
                "-S",
                "-c",
                "import os;print(os.listdir('/proc/self/fd'))",
            ]
            child = await watchdog.spawn(argv, cwd=tmp_path, env=environment())
            assert child.stdout is not None
            assert await child.stdout.read() == b"['0', '1', '2', '3']\n"  # 3 is the listing itself
        finally:
            os.close(held)

    run(test)


def test_arguments_arrive_as_they_are(tmp_path: Path) -> None:
    words = ["", " a  b ", "$(touch x)", "'\"`", "--", "-c", "a\nb", "*", "\\", "ünï", "\udcff"]

    async def test(watchdog: Watchdog) -> None:
        argv = [sys.executable, "-c", "import sys;print(ascii(sys.argv[1:]))", *words]
        child = await watchdog.spawn(argv, cwd=tmp_path, env=environment())
        assert child.stdout is not None
        assert (await child.stdout.read()).decode().strip() == ascii(words)

    run(test)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["spring.datasource.url", "a-b", "SHELLOPTS", "1x", "ü"])
def test_variables_a_shell_cannot_spell_arrive_too(name: str, tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        argv = [sys.executable, "-c", "import os;print(ascii(dict(os.environ)))"]
        env = {**environment(), name: "x", "LC_ALL": "C.UTF-8"}
        child = await watchdog.spawn(argv, cwd=tmp_path, env=env)
        assert child.stdout is not None
        text = (await child.stdout.read()).decode()
        assert f"{name!a}: 'x'" in text
        assert await child.wait() == 0

    run(test)


def test_input_written_at_once_is_not_eaten_by_the_gate(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await watchdog.spawn(["cat"], cwd=tmp_path, env=environment())
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"first\nsecond\n")
        child.stdin.close()
        assert await child.stdout.read() == b"first\nsecond\n"

    run(test)


def _link_loop(folder: Path) -> str:
    (folder / "loop").symlink_to("loop")
    return str(folder / "loop")


def _plain_file(folder: Path) -> str:
    (folder / "text").write_text("hello")
    return str(folder / "text")


def _lost_interpreter(folder: Path) -> str:
    script = folder / "script"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (lambda folder: "no-such-program-here", errno.ENOENT),
        (lambda folder: str(folder / "missing"), errno.ENOENT),
        (lambda folder: "./missing", errno.ENOENT),
        (lambda folder: "", errno.ENOENT),
        (str, errno.EISDIR),
        (_plain_file, errno.EACCES),
        (_link_loop, errno.ELOOP),
        (_lost_interpreter, errno.ENOENT),
        (lambda folder: "/bin/sh/x", errno.ENOTDIR),
        (lambda folder: "x" * 5000, errno.ENOENT),
        (lambda folder: "/" + "x" * 5000, errno.ENAMETOOLONG),
        (lambda folder: "a\0b", errno.EINVAL),
        (lambda folder: "a\ud800b", errno.EINVAL),
    ],
)
def test_a_program_that_cannot_run_is_an_os_error_that_names_it(
    command: Callable[[Path], str], number: int, tmp_path: Path
) -> None:
    async def test(watchdog: Watchdog) -> None:
        name = command(tmp_path)
        with pytest.raises(OSError) as caught:
            await watchdog.spawn([name], cwd=tmp_path, env=environment())
        assert caught.value.errno == number
        assert isinstance(caught.value.filename, str)
        assert os.path.basename(caught.value.filename) == os.path.basename(name)
        assert watchdog.pid is None  # nothing was started for it

    run(test)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_folder_that_cannot_be_used_is_an_os_error_that_names_it(
    kind: str, tmp_path: Path
) -> None:
    folder = tmp_path / kind
    if kind == "file":
        folder.write_text("")

    async def test(watchdog: Watchdog) -> None:
        with pytest.raises(OSError) as caught:
            await watchdog.spawn(["true"], cwd=folder, env=environment())
        assert caught.value.errno == (errno.ENOTDIR if kind == "file" else errno.ENOENT)
        assert caught.value.filename == str(folder) or caught.value.filename == folder

    run(test)


@pytest.mark.parametrize(
    ("argument", "env"), [("a\0b", {}), ("a", {"A": "\0"}), ("a", {"": "x"}), ("a", {"A=B": "x"})]
)
def test_what_no_process_can_be_given_is_refused(
    argument: str, env: dict[str, str], tmp_path: Path
) -> None:
    async def test(watchdog: Watchdog) -> None:
        with pytest.raises(OSError) as caught:
            await watchdog.spawn(["true", argument], cwd=tmp_path, env={**environment(), **env})
        assert caught.value.errno == errno.EINVAL

    run(test)


def test_too_long_arguments_are_an_os_error_that_names_the_program(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        with pytest.raises(OSError) as caught:
            await watchdog.spawn(["true", "x" * (1 << 22)], cwd=tmp_path, env=environment())
        assert caught.value.errno == errno.E2BIG
        assert os.path.basename(caught.value.filename) == "true"

    run(test)


def test_the_command_is_looked_up_on_the_childs_own_path(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "mytool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)

    async def test(watchdog: Watchdog) -> None:
        for path in (str(tool.parent), "bin"):
            child = await watchdog.spawn(["mytool"], cwd=tmp_path, env={"PATH": path})
            assert child.stdout is not None
            assert await child.stdout.read() == b"found\n"

    run(test)


def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        for turns in range(12):
            argv = ["/bin/sh", "-c", "touch ran; sleep 300"]
            task = asyncio.create_task(
                watchdog.spawn(argv, cwd=tmp_path, env={**environment(), "ROUND": str(turns)})
            )
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await watchdog.end(await task, grace=0)
            except asyncio.CancelledError:
                assert not (tmp_path / "ran").exists()

    run(test)


# ---------------------------------------------------------------------- ending


def test_end_terminates_the_group_politely(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        argv = [
            "/bin/sh",
            "-c",
            "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep .05; done",
        ]
        child = await start(watchdog, argv, tmp_path)
        await watchdog.end(child)
        assert child.stdout is not None
        assert await child.stdout.read() == b"bye\n"
        assert await child.wait() == 3

    run(test)


def test_end_kills_what_ignores_the_signal(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await start(watchdog, DEAF, tmp_path)
        await watchdog.end(child, grace=0.2)
        assert await child.wait() == -signal.SIGKILL

    run(test)


@linux
def test_the_group_is_ended_although_its_leader_left_by_itself(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        argv = ["/bin/sh", "-c", "(trap '' TERM; sleep 300) & echo $!"]
        child = await watchdog.spawn(argv, cwd=tmp_path, env=environment())
        assert child.stdout is not None
        orphan = int(await child.stdout.readline())
        assert await child.wait() == 0  # although the orphan holds its stdout
        assert alive(orphan)
        await watchdog.end(child, grace=0.2)
        assert not alive(orphan)

    run(test)


def test_end_twice_cancelled_goes_on_and_does_not_hang(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await start(watchdog, DEAF, tmp_path)
        waiting = asyncio.create_task(watchdog.end(child, grace=0.3))
        for _ in range(2):
            await asyncio.sleep(0.02)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, DEADLINE)
        async with asyncio.timeout(DEADLINE):
            assert await child.wait() == -signal.SIGKILL
        await watchdog.end(child)  # and asking again is fine

    run(test)


def test_ending_something_that_is_gone_touches_nobody(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await watchdog.spawn(["true"], cwd=tmp_path, env=environment())
        assert await child.wait() == 0
        await watchdog.end(child)
        await watchdog.end(child)

    run(test)


@linux
def test_a_group_is_forgotten_once_it_is_empty(tmp_path: Path) -> None:
    """Its number may soon belong to somebody else."""

    async def test(watchdog: Watchdog) -> None:
        child = await watchdog.spawn(["true"], cwd=tmp_path, env=environment())
        await child.wait()
        await until(lambda: child.pid not in watchdog.groups)
        held = await watchdog.spawn(
            ["/bin/sh", "-c", "sleep 300 &"], cwd=tmp_path, env=environment()
        )
        await held.wait()
        assert held.pid in watchdog.groups
        await watchdog.end(held)
        assert held.pid not in watchdog.groups

    run(test)


@linux
@pytest.mark.parametrize("argv", [PLAIN, DEAF, WRAPPED, DAEMON])
def test_close_ends_everything_within_six_seconds(argv: list[str], tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        for _ in range(3):
            await start(watchdog, argv, tmp_path)
        begun = time.monotonic()
        await watchdog.close()
        assert time.monotonic() - begun < DEADLINE
        assert carrying(watchdog.tag) == set()
        assert watchdog.pid is None
        await watchdog.close()
        with pytest.raises(OSError):
            await watchdog.spawn(["true"], cwd=tmp_path, env=environment())

    run(test)


@linux
def test_a_daemon_that_left_the_session_of_an_ended_server_goes_at_close(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await start(watchdog, DAEMON, tmp_path)
        await watchdog.end(child)
        assert carrying(watchdog.tag)
        await watchdog.close()
        assert carrying(watchdog.tag) == set()

    run(test)


@linux
def test_close_works_although_the_watchdog_process_is_dead(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        child = await start(watchdog, DEAF, tmp_path)
        assert watchdog.pid is not None
        os.kill(watchdog.pid, signal.SIGKILL)
        await watchdog.close()
        assert not alive(child.pid)

    run(test)


# ---------------------------------------------------------------------- the watchdog process


def test_no_process_is_started_before_the_first_child() -> None:
    async def test(watchdog: Watchdog) -> None:
        assert watchdog.pid is None

    run(test)


@linux
def test_the_terminal_and_stray_signals_do_not_reach_the_watchdog(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        await start(watchdog, PLAIN, tmp_path)
        pid = watchdog.pid
        assert pid is not None
        assert os.getsid(pid) == pid  # a terminal's signals go to its own session only
        caught = f"/proc/{pid}/status"

        def ignores() -> bool:
            lines = dict(line.split(":\t", 1) for line in Path(caught).read_text().splitlines())
            mask = int(lines["SigIgn"], 16)
            return all(mask >> (n - 1) & 1 for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM))

        await until(ignores)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            os.kill(pid, number)
        await start(watchdog, PLAIN, tmp_path)
        assert watchdog.pid == pid
        assert alive(pid)
        held = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        assert all(name == "/dev/null" or name.startswith("pipe:") for name in held), held
        assert os.readlink(f"/proc/{pid}/cwd") == "/"

    run(test)


@linux
def test_a_dead_watchdog_is_replaced_with_the_next_child(tmp_path: Path) -> None:
    async def test(watchdog: Watchdog) -> None:
        await start(watchdog, PLAIN, tmp_path)
        first = watchdog.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: state(first) == "Z")
        await start(watchdog, PLAIN, tmp_path)
        assert watchdog.pid not in {None, first}

    run(test)


# ---------------------------------------------------------------------- sudden death


def die_at(moment: str, argv: list[str], folder: Path) -> str:
    """Let a host live until ``moment``; gives its tag."""
    command = [sys.executable, "-m", "tests.mcp.client.doomed_host", moment, str(folder), *argv]
    host = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=90, check=False)
    assert host.returncode == -signal.SIGKILL, host.stdout
    return host.stdout.split()[0].decode()


MOMENTS = ["registered", "starting", "connected", "closing", "respawned"]
FAMILIES = {"deaf": DEAF, "wrapped": WRAPPED, "daemon": DAEMON}
DEATHS = [
    (moment, family)
    for moment in MOMENTS
    for family in FAMILIES
    if (moment, family) != ("closing", "daemon")  # its leader obeys: no closing to die in
]


@linux
@pytest.mark.parametrize(("moment", "family"), DEATHS)
def test_nothing_survives_a_killed_host(moment: str, family: str, tmp_path: Path) -> None:
    tag = die_at(moment, FAMILIES[family], tmp_path)
    wait_for(lambda: not carrying(tag), what=f"{carrying(tag)} are gone")


@linux
def test_a_child_whose_host_dies_before_the_go_line_never_runs(tmp_path: Path) -> None:
    tag = die_at("registered", ["/bin/sh", "-c", "touch ran; sleep 300"], tmp_path)
    wait_for(lambda: not carrying(tag))
    assert not (tmp_path / "ran").exists()


@linux
def test_a_stub_server_and_its_family_do_not_survive_either(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    options = ["--setsid", "--deaf", "--pids", str(pids), "--leader-exits", "0.1"]
    argv = ["/bin/sh", "-c", 'echo up; exec "$@"', "sh", *stub("grandchild", *options)]
    tag = die_at("connected", argv, tmp_path)
    wait_for(lambda: not carrying(tag))

"""The shell: output, exit codes, limits, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from kage.core.messages import Outcome
from kage.core.tools import Invocation
from kage.tools import programs
from kage.tools.bash import Bash, shell_environment
from tests.tools.helpers import Bench, text_of
from tests.waiting import until, wait_for


def gone(pid: int) -> bool:
    """Say whether a process is no more, or only waits to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_output_of_both_streams_comes_in_order_with_the_exit_code(bench: Bench) -> None:
    result = bench.run("bash", command="echo one; echo two >&2; echo three; exit 3")
    assert text_of(result) == "one\ntwo\nthree\n[exit code 3]"
    assert result.outcome is Outcome.TOOL_ERROR
    assert result.summary == "exit code 3"


def test_success_is_plain_output(bench: Bench) -> None:
    result = bench.run("bash", command="echo hi")
    assert (text_of(result), result.outcome) == ("hi", Outcome.OK)
    assert bench.text("bash", command="true") == "(no output)"


def test_it_runs_in_the_workspace_with_no_input(bench: Bench) -> None:
    assert bench.text("bash", command="pwd; cat; echo end").split("\n") == [
        str(bench.workspace),
        "end",
    ]


def test_a_signal_is_named(bench: Bench) -> None:
    assert "[ended by signal SIGSEGV]" in bench.text("bash", command="kill -SEGV $$")


def test_secrets_of_the_environment_do_not_reach_the_shell(bench: Bench) -> None:
    environ = {**os.environ, "ANTHROPIC_API_KEY": "sk-canary", "MY_TOKEN": "canary", "LC_ALL": "C"}
    tool = Bash(spawner=programs.Groups(), environ=environ, max_output_chars=10_000)
    call = Invocation(
        call_id="c",
        arguments={"command": "env"},
        workspace=bench.workspace,
        roots=(bench.workspace,),
        scratch=bench.base / "scratch",
        environment={"KAGE_AGENT": "1"},
    )
    text = text_of(asyncio.run(tool.run(call)))
    assert "canary" not in text
    assert "KAGE_AGENT=1" in text
    assert "LC_ALL=C" in text
    assert "HOME=" in text
    assert "TERM=dumb" in text
    assert "PATH" in shell_environment(environ)


def test_a_timeout_ends_the_whole_group(bench: Bench) -> None:
    started = time.monotonic()
    result = bench.run("bash", command="echo begin; sleep 300 & echo $!; sleep 300", timeout=1)
    assert time.monotonic() - started < 20
    assert result.outcome is Outcome.TOOL_ERROR
    assert "begin" in text_of(result)
    assert "timed out after 1 second" in text_of(result)
    child = int(text_of(result).split("\n")[1])
    wait_for(lambda: gone(child))


def test_a_command_that_ignores_term_is_killed(bench: Bench) -> None:
    result = bench.run(
        "bash", command="trap '' TERM; echo $$; while :; do sleep 1; done", timeout=1
    )
    wait_for(lambda: gone(int(text_of(result).split("\n")[0])))


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_a_background_child_neither_hangs_the_call_nor_survives_it(
    bench: Bench, redirect: str
) -> None:
    started = time.monotonic()
    text = bench.text("bash", command=f"sleep 300 {redirect} & echo $!")
    assert time.monotonic() - started < 20
    assert "left in the background were ended" in text
    wait_for(lambda: gone(int(text.split("\n")[0])))


def test_cancelling_ends_the_group(bench: Bench) -> None:
    printed: list[str] = []

    async def main() -> int:
        call = Invocation(
            call_id="c",
            arguments={"command": "sleep 300 & echo $!; wait"},
            workspace=bench.workspace,
            roots=(bench.workspace,),
            scratch=bench.base / "scratch",
            output=printed.append,
        )
        task = asyncio.ensure_future(bench.tools["bash"].run(call))
        await until(lambda: printed)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(printed[0])

    child = asyncio.run(main())
    wait_for(lambda: gone(child))


def test_output_is_shown_live_before_the_end(bench: Bench) -> None:
    printed: list[str] = []

    async def main() -> None:
        go = bench.workspace / "go"
        call = Invocation(
            call_id="c",
            arguments={
                "command": "echo a; sleep 0.01; echo b; while [ ! -e go ]; do sleep 0.05; done"
            },
            workspace=bench.workspace,
            roots=(bench.workspace,),
            scratch=bench.base / "scratch",
            output=printed.append,
        )
        task = asyncio.ensure_future(bench.tools["bash"].run(call))
        await until(lambda: "".join(printed) == "a\nb\n")
        assert not task.done()
        go.touch()
        await task

    asyncio.run(main())


def test_long_output_keeps_head_and_tail_and_all_of_it_in_a_file(bench: Bench) -> None:
    text = bench.text("bash", command="seq 1 100000")
    assert len(text) <= 100_000
    assert text.startswith("1\n2\n")
    assert text.endswith("99999\n100000")
    path = Path(text.partition("the whole output is in ")[2].partition(" …]")[0])
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 100_001))
    assert path.stat().st_mode & 0o777 == 0o600


def test_endless_output_is_bounded_in_memory_and_on_disk(bench: Bench) -> None:
    text = bench.text("bash", command="head -c 300000000 /dev/zero | tr '\\0' 'x'; echo; echo END")
    assert "300.0 MB" in text
    assert text.endswith("END")
    kept = list((bench.base / "scratch").iterdir())
    assert [path.stat().st_size for path in kept] == [64 << 20]


def test_a_full_disk_costs_the_file_not_the_command(bench: Bench) -> None:
    (bench.base / "scratch").write_text("no folder")
    text = bench.text("bash", command="seq 1 100000")
    assert "could not be kept" in text
    assert text.endswith("100000")


def test_bytes_that_are_no_text_are_replaced(bench: Bench) -> None:
    assert bench.text("bash", command="printf 'a\\xffb'") == "a\ufffdb"


@pytest.mark.parametrize("command", ["echo \0", "x" * 200_000, "echo \ud800"])
def test_impossible_commands_are_refused(bench: Bench, command: str) -> None:
    assert "The command" in bench.refusal("bash", command=command)


def test_a_workspace_that_is_gone_is_told(bench: Bench) -> None:
    bench.workspace.rmdir()
    assert "could not be started" in bench.refusal("bash", command="true")

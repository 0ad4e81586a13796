"""Sandboxes around what kage starts: servers, the shell, and their ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kage.core.errors import ToolError
from kage.core.messages import Outcome
from kage.core.sandbox import Cage
from kage.core.servers import ServerState
from kage.core.tools import Invocation
from kage.mcp.client.servers.identity import identify
from kage.mcp.client.watchdog import Watchdog
from kage.sandbox.mechanism import Mechanism
from kage.sandbox.sandboxes import Sandboxes
from kage.tools.bash import Bash
from kage.tui.widgets.question import facts
from tests.mcp.client.harness import bench, run, spec, text
from tests.processes import carrying, linux
from tests.sandbox.systems import ANY, EACH
from tests.stubs import stub
from tests.tools.helpers import invocation, refused, text_of
from tests.tui.fake_host import question
from tests.waiting import wait_for

NONE = Mechanism(kind="", why="bubblewrap is not installed", fix="Install bubblewrap")
ROOT = Path(__file__).parents[2]


@linux
@pytest.mark.parametrize("mechanism", EACH)
def test_a_server_works_in_its_sandbox_and_ends_with_kage(
    tmp_path: Path, mechanism: Mechanism
) -> None:
    async def main() -> None:
        sandboxes = Sandboxes(environ={}, mechanism=mechanism)
        with contextlib.closing(sandboxes):
            async with bench(tmp_path, sandbox=sandboxes) as b:
                await b.up(spec("echo", sandbox="no-network"))
                assert b.status("echo").state is ServerState.CONNECTED, b.status("echo")
                assert text(await b.call("echo__echo", {"text": "hi"})) == "hi"
                assert b.tools["echo__echo"].spec.sandbox == "no-network"
                shown = text(await b.call("echo__env", {"names": ["TMPDIR", "KAGE_TAG"]}))
                assert b.watchdog.tag in shown
                assert carrying(b.watchdog.tag)  # seen from outside, whatever namespace it is in
                tag = b.watchdog.tag
        assert not carrying(tag)

    run(main)


@pytest.mark.parametrize("given", [True, False])
def test_a_server_whose_sandbox_is_missing_fails_and_never_runs(
    tmp_path: Path, given: bool
) -> None:
    seen = tmp_path / "seen"

    async def main() -> None:
        sandbox = Sandboxes(environ={}, mechanism=NONE) if given else None
        async with bench(tmp_path, sandbox=sandbox) as b:
            entry = spec("echo", sandbox="workspace")
            await b.up(dataclasses.replace(entry, command="/usr/bin/touch", args=(str(seen),)))
            status = b.status("echo")
            assert status.state is ServerState.FAILED
            assert status.fault is not None and "sandbox" in status.fault.what
            assert not given or "not installed" in status.fault.why
            assert b.states("echo").count("connecting") == 1  # trying again would not help

    run(main)
    assert not seen.exists()


@linux
@pytest.mark.parametrize("mechanism", EACH)
@pytest.mark.parametrize("family", ["deaf", "daemon"])
def test_nothing_in_a_sandbox_survives_a_killed_host(
    tmp_path: Path, mechanism: Mechanism, family: str
) -> None:
    sandboxes = Sandboxes(environ={}, mechanism=mechanism)
    detach = "setsid -f sleep 300 > /dev/null 2>&1; " if family == "daemon" else "trap '' TERM; "
    argv = ("/bin/sh", "-c", detach + "echo up; while :; do sleep 1; done")
    with contextlib.closing(sandboxes):
        cage = Cage(sandbox=sandboxes, level="workspace")
        wrapped = asyncio.run(cage.around(argv, os.environ, workspace=tmp_path, name="s"))
        host = (sys.executable, "-m", "tests.mcp.client.doomed_host", "connected", str(tmp_path))
        died = subprocess.run((*host, *wrapped.argv), cwd=ROOT, capture_output=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
        tag = died.stdout.split()[0].decode()
        wait_for(lambda: not carrying(tag), what=f"{carrying(tag)} are gone")


@ANY
def test_the_shell_runs_in_its_sandbox_and_says_so(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "bash-1").write_text("the rest")
    sandboxes = Sandboxes(environ={}, own=(tmp_path,))

    async def main() -> None:
        watchdog = Watchdog()
        tool = Bash(
            spawner=watchdog,
            environ=os.environ,
            max_output_chars=10_000,
            cage=Cage(sandbox=sandboxes, level="workspace"),
        )
        assert "sandbox" in tool.spec.description
        line = f"echo a > a && cat a && cat {tmp_path}/scratch/bash-1 && echo x > /etc/x"
        result = await tool.run(invocation(workspace, command=line))
        await watchdog.close()
        assert text_of(result).startswith("a\nthe rest")
        assert "background" not in text_of(result)
        assert result.outcome is Outcome.TOOL_ERROR

    with contextlib.closing(sandboxes):
        asyncio.run(main())
    assert not Path("/etc/x").exists()
    assert (workspace / "a").read_text() == "a\n"


def test_a_shell_whose_sandbox_is_missing_is_refused(tmp_path: Path) -> None:
    cage = Cage(sandbox=Sandboxes(environ={}, mechanism=NONE), level="workspace")

    async def main(call: Invocation) -> object:
        tool = Bash(spawner=Watchdog(), environ=os.environ, max_output_chars=9_999, cage=cage)
        return await tool.run(call)

    said = refused(lambda: main(invocation(tmp_path, command="touch ran")))
    assert "not installed" in said and issubclass(ToolError, Exception)
    assert not (tmp_path / "ran").exists()


def test_the_question_names_the_sandbox() -> None:
    asked = question()
    tool = dataclasses.replace(asked.request.tool, sandbox="no-network")
    caged = dataclasses.replace(asked, request=dataclasses.replace(asked.request, tool=tool))
    assert "sandbox: no-network" in facts(caged).plain
    assert "sandbox" not in facts(asked).plain


def test_an_entry_is_another_one_in_another_sandbox(tmp_path: Path) -> None:
    command, *args = stub("echo")
    plain = spec("echo")
    assert (plain.command, plain.args) == (command, tuple(args))
    found = [
        identify(entry, os.environ, workspace=tmp_path)
        for entry in (
            plain,
            dataclasses.replace(plain, sandbox="workspace"),
            dataclasses.replace(plain, sandbox="no-network"),
            dataclasses.replace(plain, sandbox="no-network", sandbox_write=("/srv",)),
        )
    ]
    assert len({identity.entry_hash for identity in found}) == 4
    assert "sandbox" not in found[0].seen
    assert found[2].seen["sandbox"].startswith("no-network: no network; may write only")
    assert found[3].seen["sandbox_write"] == "/srv"

"""What a program tries in its sandbox: nothing gets out, and what is allowed works."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kage.core.sandbox import Cage, SandboxLevel, Wrapped
from kage.sandbox.mechanism import Mechanism
from kage.sandbox.sandboxes import Sandboxes
from tests.sandbox.systems import EACH

SCRIPT = Path(__file__).with_name("escapes.py")
ALLOWED = {"own file", "own folder", "rename own", "temporary", "null", "pair", "read", "run"}


@contextlib.contextmanager
def listening(folder: Path) -> Iterator[tuple[int, socket.socket]]:
    """Listen in ``folder`` and on this machine: a TCP port and a socket for datagrams."""
    with contextlib.ExitStack() as stack:
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        with contextlib.chdir(folder):  # the path of a socket may only be short
            local.bind("listens")
        local.listen()
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        yield tcp.getsockname()[1], udp


def started(wrapped: Wrapped, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        wrapped.argv,
        env=dict(wrapped.env),
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("level", ["workspace", "no-network"])
@pytest.mark.parametrize("mechanism", EACH)
def test_no_way_leads_out_and_everything_allowed_works(
    tmp_path: Path, mechanism: Mechanism, level: SandboxLevel
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    (outside / "secret").mkdir(parents=True)
    (outside / "victim").write_text("whole")
    (outside / "secret" / "key").write_text("KEY")
    sandboxes = Sandboxes(
        environ={"HOME": str(tmp_path)}, hide=(outside / "secret",), mechanism=mechanism
    )
    cage = Cage(sandbox=sandboxes, level=level)
    with (
        contextlib.closing(sandboxes),
        listening(outside / "secret") as (tcp, udp),
        subprocess.Popen(["sleep", "300"], env={"HOST_CANARY": "1"}) as host,
    ):
        try:
            words = (str(SCRIPT), str(outside), *map(str, (host.pid, tcp, udp.getsockname()[1])))
            wrapped = asyncio.run(
                cage.around(
                    (sys.executable, *words),
                    {"PATH": os.environ["PATH"]},
                    workspace=workspace,
                    name="try",
                    show=(outside,),
                )
            )
            done = started(wrapped, workspace)
        finally:
            host.kill()
        with contextlib.suppress(BlockingIOError):
            assert udp.recv(10) == b"" or level == "workspace"
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)
    network = {"tcp", "udp"}
    worked = {name for name, why in tried.items() if not why}
    assert worked - network == ALLOWED, tried
    assert ("tcp" in worked) is (level == "workspace")
    assert (outside / "victim").read_text() == "whole"
    assert sorted(path.name for path in outside.iterdir()) == ["secret", "victim"]
    assert (workspace / "folder" / "own").read_text() == "x"
    assert not Path(wrapped.env["TMPDIR"], "t").exists()  # the temporary folder went, too


@pytest.mark.parametrize("mechanism", EACH)
def test_a_program_gets_its_arguments_environment_and_exit_code_unchanged(
    tmp_path: Path, mechanism: Mechanism
) -> None:
    sandboxes = Sandboxes(environ={}, mechanism=mechanism)
    cage = Cage(sandbox=sandboxes, level="workspace")
    odd = ("", "--", "-x", "a b\n'\"", "ünï", "--bind")
    env = {"PATH": os.environ["PATH"], "ODD": "a=b\n", "spring.url": "x"}
    code = "import json, os, sys; print(json.dumps(dict(os.environ))); sys.exit(7)"
    argv = ("/usr/bin/env", "printf", "%s|", *odd)
    with contextlib.closing(sandboxes):
        first = asyncio.run(cage.around(argv, env, workspace=tmp_path, name="a"))
        done = started(first, tmp_path)
        assert done.stdout == "".join(f"{word}|" for word in odd), done.stderr
        argv = (sys.executable, "-X", "utf8", "-c", code)
        second = asyncio.run(cage.around(argv, env, workspace=tmp_path, name="a"))
        done = started(second, tmp_path)
    assert done.returncode == 7, done.stderr
    seen = json.loads(done.stdout)
    assert {name: seen[name] for name in env} == env
    assert set(seen) <= {*env, "TMPDIR", "TMP", "TEMP", "LC_CTYPE", "PWD"}

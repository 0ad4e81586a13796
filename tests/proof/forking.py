"""Many ``kage`` commands for the price of one start: each runs in a fork of a loaded kage.

Run as a program it reads jobs (JSON) on stdin and writes what each left behind; ``kages`` does so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AT_ONCE = 3
TIME = 80  # seconds one command may take


@dataclass(frozen=True, kw_only=True)
class Job:
    """One command line; a variable that is None is taken away."""

    words: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str | None] = field(default_factory=dict)


def kages(jobs: Iterable[Job], environ: Mapping[str, str], cwd: Path) -> list[dict[str, Any]]:
    """Run every job; give ``code``, ``out`` and ``err`` of each, in order."""
    told = [{"words": j.words, "cwd": str(j.cwd), "environ": dict(j.environ)} for j in jobs]
    done = subprocess.run(
        [sys.executable, "-P", __file__],
        input=json.dumps(told),
        capture_output=True,
        cwd=cwd,
        env=dict(environ),
        text=True,
        timeout=TIME * 4,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    for job, ended in zip(told, found, strict=True):
        assert "Traceback" not in ended["err"], (job["words"], ended["err"])
    return found


def _main() -> None:
    import importlib

    jobs = json.load(sys.stdin)
    for name in ("kage.cli.wiring", "kage.cli.commands", "kage.plain.text", "mcp"):
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        waiting, running = list(enumerate(jobs)), {}
        codes: dict[int, int] = {}
        while waiting or running:
            while waiting and len(running) < AT_ONCE:
                number, job = waiting.pop(0)
                running[_fork(job, f"{folder}/{number}")] = number
            pid, status = os.wait()
            codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)
        ended = [
            {
                "code": codes[number],
                "out": Path(f"{folder}/{number}.out").read_text(errors="replace"),
                "err": Path(f"{folder}/{number}.err").read_text(errors="replace"),
            }
            for number in range(len(jobs))
        ]
    json.dump(ended, sys.stdout)


def _fork(job: dict[str, Any], place: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    import signal

    from kage.cli.main import main

    os.setsid()
    signal.alarm(TIME)
    os.chdir(job["cwd"])
    for name, value in job["environ"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    flags = os.O_WRONLY | os.O_CREAT
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(f"{place}.out", flags, 0o600), 1)
    os.dup2(os.open(f"{place}.err", flags, 0o600), 2)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.argv = ["kage", *job["words"]]
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:  # as the interpreter would: told on stderr, and the code is 1
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


if __name__ == "__main__":
    _main()

"""A home, a workspace and real ``kage`` processes in them, for proofs about the whole product."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.llm import ScriptedModel
from tests.processes import carrying
from tests.stubs import stub
from tests.tui.terminal import Terminal
from tests.waiting import DEADLINE, wait_for

KAGE = (sys.executable, "-m", "kage")
TIME = 80.0  # seconds one command may take before the test gives up


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What one command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every line of stdout as JSON; a line that is none is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Give the events of one type."""
        return [event for event in self.events if event["type"] == kind]

    def lines(self, *words: str) -> list[str]:
        """Give the lines of stderr that hold all ``words``."""
        return [line for line in self.err.splitlines() if all(word in line for word in words)]


@dataclass
class House:
    """Where kage lives in one test; every process of it carries this home in its environment."""

    home: Path
    workspace: Path
    extra: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = KAGE

    @property
    def config(self) -> Path:
        return self.home / "config" / "kage" / "config.toml"

    @property
    def data(self) -> Path:
        return self.home / "data" / "kage"

    def write(self, *parts: str) -> None:
        """Write config.toml."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text("\n".join(parts) + "\n")

    def use(self, model: ScriptedModel, wire: str = "anthropic") -> None:
        """Let kage ask ``model`` from now on."""
        self.extra.update(model.environ(wire))

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, **self.extra}

    def start(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start kage with pipes; whoever starts it ends it."""
        return subprocess.Popen(
            [*self.command, *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.workspace,
            env=self.environ,
            text=True,
            start_new_session=True,
        )

    def kage(
        self, *words: str, stdin: str | None = None, environ: Mapping[str, str] | None = None
    ) -> Ended:
        """Run kage to its end; without ``stdin`` there is nothing to read."""
        done = subprocess.run(
            [*self.command, *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=self.workspace,
            env={**self.environ, **(environ or {})},
            text=True,
            timeout=TIME,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(code=done.returncode, out=done.stdout, err=done.stderr)

    @contextlib.contextmanager
    def terminal(self, *words: str, columns: int = 100, lines: int = 30) -> Iterator[Terminal]:
        """Run kage on a terminal of its own."""
        terminal = Terminal(
            [*self.command, *words],
            columns=columns,
            lines=lines,
            cwd=self.workspace,
            environ=self.extra,
        )
        try:
            yield terminal
        finally:
            terminal.close()

    def processes(self) -> set[int]:
        """Give every living process that belongs to this house."""
        return carrying(f"HOME={self.home}\0")

    def empty(self, *, within: float = DEADLINE) -> None:
        """Wait until no process is left."""
        wait_for(lambda: not self.processes(), deadline=within, what="every process is gone")

    def records(self) -> list[dict[str, Any]]:
        """Read the decision log."""
        found: list[dict[str, Any]] = []
        for file in sorted((self.data / "decisions").glob("*.jsonl")):
            found += [json.loads(line) for line in file.read_text().splitlines()]
        return found


def server(name: str, of: str, *options: object, **keys: object) -> str:
    """Give the table of a stub server for config.toml; ``keys`` are TOML values as text."""
    command, *args = stub(of, *options)
    lines = [f"[mcp.servers.{name}]"]
    if "command" not in keys and "url" not in keys:
        lines += [f"command = {json.dumps(command)}", f"args = {json.dumps(args)}"]
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in keys.items())]) + "\n"


@contextlib.contextmanager
def running(
    house: House, *words: str, stdin: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[str]]:
    """Run kage in the background, and end it whatever happens."""
    process = house.start(*words, stdin=stdin)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def house(own_home: Path, tmp_path: Path) -> Iterator[House]:
    """Give a house with an empty workspace; afterwards nothing of it may run."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    made = House(own_home, workspace)
    yield made
    made.empty()


Script = Callable[..., ScriptedModel]

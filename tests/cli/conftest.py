"""Every command runs in a house of its own, and in this process, many times cheaper."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.proof.house import Ended, House

__all__ = ["House", "Kage"]

Kage = Callable[..., Ended]


class Inside(House):
    """Runs commands in this process; ``outside`` and ``start`` run them in one of their own."""

    capsys: pytest.CaptureFixture[str]

    def kage(
        self, *words: str, stdin: str | None = None, environ: Mapping[str, str] | None = None
    ) -> Ended:
        """Run kage to its end; without ``stdin`` there is nothing to read."""
        from kage.cli.commands import run
        from kage.cli.main import guarded

        self.capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(self.workspace):
            for name, value in {**self.extra, **(environ or {})}.items():
                patch.setenv(name, value)
            if stdin is not None or not isinstance(sys.stdin, io.StringIO):
                patch.setattr(sys, "stdin", io.StringIO(stdin or ""))
            try:
                code = guarded(lambda: run(list(words)))
            except SystemExit as stop:
                code = int(stop.code or 0)
        out, err = self.capsys.readouterr()
        assert "Traceback" not in err, err
        return Ended(code=code, out=out, err=err)

    def outside(self, *words: str, environ: Mapping[str, str] | None = None) -> Ended:
        """Run kage in a process of its own."""
        return super().kage(*words, environ=environ)


@pytest.fixture
def house(own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Inside]:
    """Give a house with an empty workspace; afterwards nothing of it may run."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    made = Inside(own_home, workspace)
    made.capsys = capsys
    yield made
    made.empty()


@pytest.fixture
def kage(house: Inside, monkeypatch: pytest.MonkeyPatch) -> Kage:
    """Run a command in the workspace of the house."""
    monkeypatch.chdir(house.workspace)
    return house.kage

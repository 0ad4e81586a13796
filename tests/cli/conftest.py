"""Every command runs in a house of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.proof.house import Ended, House, house

__all__ = ["house", "kage"]

Kage = Callable[..., Ended]


@pytest.fixture
def kage(house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kage:
    """Run a command in this process, which is many times cheaper than in one of its own."""
    from kage.cli.commands import run
    from kage.cli.main import guarded

    monkeypatch.chdir(house.workspace)

    def call(*words: str) -> Ended:
        capsys.readouterr()
        try:
            code = guarded(lambda: run(list(words)))
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Ended(code=code, out=out, err=err)

    return call

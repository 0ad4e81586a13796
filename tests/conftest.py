"""What every test needs: a home of its own, so that nothing real is read or written."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "kage-hypothesis")  # nothing in the tree

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes under test get ctrl+c

gc.set_threshold(50_000, 20, 50)  # a look at all of 5,000 tests takes 0.3 s: seldom, then

_COMMON = {"database": None, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("here", settings(**_COMMON))
settings.register_profile("ci", settings(**_COMMON, derandomize=True))
settings.load_profile("ci" if os.environ.get("CI") else "here")

_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", help="write the names of the tests that failed to this file")


def pytest_collection_finish() -> None:
    """Look at what stays for the whole run no more."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Keep the names of what failed for a second run, see ``tests/__main__.py``."""
    kept = config.getoption("--failures")
    if kept:
        reports = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
        names = dict.fromkeys(report.nodeid for report in reports)
        Path(kept).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every folder kage uses into a temporary one and hide real keys."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    runtime = home / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    for key in _KEYS:
        monkeypatch.delenv(key, raising=False)
    for name in ("KAGE_AGENT", "KAGE_LOG", "NO_COLOR", "ACCESSIBLE"):
        monkeypatch.delenv(name, raising=False)
    return home

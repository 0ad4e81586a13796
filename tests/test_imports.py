"""Each entry point loads only what it needs: what a start costs is what it imports."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable
from pathlib import Path

SDK = ("mcp", "mcp_types", "pydantic")
HEAVY = (*SDK, "anyio", "click", "httpx2", "jsonschema", "lupa", "textual")
DEADLINE = 40.0

_TELL = """
import atexit, sys
atexit.register(lambda: sys.stderr.write("LOADED " + " ".join(sys.modules)))
"""


def _run(code: str, *, stdin: bytes = b"") -> tuple[set[str], bytes]:
    """Run ``code`` in a Python of its own; gives the modules it had at its end, and its stdout."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_TELL}\n{code}"],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )
    said = done.stderr.decode()
    assert "LOADED " in said, said
    assert done.returncode == 0, said
    return set(said.rpartition("LOADED ")[2].split()), done.stdout


def _kage(*arguments: str) -> str:
    return f"sys.argv = ['kage', *{arguments!r}]\nfrom kage.cli.main import main\nmain()"


def _roots(modules: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def _foreign(modules: set[str]) -> set[str]:
    """Pick what belongs neither to Python nor to kage nor to the way kage is installed."""
    return {
        root
        for root in _roots(modules) - {"kage", "__main__"} - sys.stdlib_module_names
        if not root.startswith(("_", "sitecustomize", "usercustomize"))
    }


def test_the_version_is_told_before_anything_is_imported() -> None:
    modules, told = _run(_kage("--version"))
    assert told.startswith(b"kage ")
    assert not _foreign(modules)
    assert not _roots(modules) & {"asyncio", "json", "typing_extensions", "dataclasses"}


def test_the_core_is_the_standard_library() -> None:
    modules, _ = _run(
        "import importlib, pkgutil, kage.core\n"
        "for one in pkgutil.iter_modules(kage.core.__path__, 'kage.core.'):\n"
        "    importlib.import_module(one.name)"
    )
    assert "kage.core.events" in modules
    assert not _foreign(modules)
    assert not {name for name in modules if name.startswith("kage.")} - {
        name for name in modules if name.startswith("kage.core")
    }


def test_the_catalog_of_models_loads_no_http_library() -> None:
    modules, _ = _run("import kage.providers.catalog")
    assert not _roots(modules) & {*SDK, "httpx2", "httpcore2", "anyio", "textual"}


def test_reading_the_configuration_loads_no_library() -> None:
    modules, _ = _run(_kage("config", "check"))
    assert not _roots(modules) & (set(HEAVY) - {"click"})


def _served(tool: str, arguments: dict[str, object]) -> tuple[set[str], dict[str, object]]:
    """Shake hands with ``kage mcp serve``, list its tools, call one, hang up."""
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    asked: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in asked)
    modules, out = _run(_kage("mcp", "serve", "--root", "."), stdin=lines)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert len(answers[2]["result"]["tools"]) == 8
    result: dict[str, object] = answers[3]["result"]
    return modules, result


def test_serving_loads_no_library(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("a note\n")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        modules, result = _served("read", {"path": str(file)})
    finally:
        os.chdir(here)
    assert "a note" in str(result)
    assert not _roots(modules) & {*HEAVY, "starlette", "rich", "markdownify", "bs4", "tree_sitter"}
    assert not _foreign(modules)


class _Screen:
    """Runs ``code`` on a terminal of 80 × 24."""

    def __init__(self, code: str, folder: Path) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def ended(self) -> str:
        """Read until the process ended, and give what it wrote."""
        heard = bytearray()
        end = time.monotonic() + DEADLINE
        try:
            while time.monotonic() < end:
                if select.select([self._master], [], [], 0.05)[0]:
                    try:
                        heard += os.read(self._master, 1 << 16)
                    except OSError:  # nobody holds the other side any more
                        break
                elif self._process.poll() is not None:
                    break
            self._process.wait(DEADLINE)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            os.close(self._master)
        return heard.decode(errors="replace")


_FIRST_FRAME = """
import os, sys
sys.argv = ["kage"]
from kage.tui.controllers.link import HostLink

async def start(self):
    with open(FILE, "w") as file:  # the first frame is on the screen
        file.write(" ".join(sys.modules))
    os._exit(0)

HostLink.start = start
from kage.cli.main import main
main()
"""


def test_the_first_frame_waits_for_no_library_but_its_own(tmp_path: Path) -> None:
    told = tmp_path / "modules"
    screen = _Screen(_FIRST_FRAME.replace("FILE", repr(str(told))), tmp_path)
    seen = screen.ended()
    assert told.exists(), seen
    modules = set(told.read_text().split())
    roots = _roots(modules)
    assert "textual" in roots
    assert "\x1b[?1049h" in seen
    unwanted = {*SDK, "httpx2", "httpcore2", "lupa", "jsonschema", "anyio", "click", "tomlkit"}
    assert not roots & unwanted
    assert "kage.cli.wiring" not in modules
    later = {"events", "messages", "requests", "tools", "trust", "offers", "forms", "attachments"}
    assert not {name.removeprefix("kage.core.") for name in modules} & later
    heard = {"hearing", "events", "inquiries", "signing", "trusting", "servers", "wishes"}
    assert not {name.removeprefix("kage.tui.controllers.") for name in modules} & heard
    assert not any(name.startswith(("kage.tui.screens.form", "kage.providers")) for name in modules)
    assert not any(name.startswith("kage.mcp.client") for name in modules)

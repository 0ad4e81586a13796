"""kage beside the official Node packages: their clients use its server, it uses their servers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kage.tools.builtin import NAMES
from tests.processes import alive

HERE = Path(__file__).parent
SERVE = (sys.executable, "-m", "kage", "mcp", "serve")
CLIENTS = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/client")
INSPECTOR = "@modelcontextprotocol/inspector"
SERVERS = {
    "filesystem": "@modelcontextprotocol/server-filesystem",
    "everything": "@modelcontextprotocol/server-everything",
}

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(600),  # the first test installs the packages
    pytest.mark.skipif(
        not (shutil.which("node") and shutil.which("npm")), reason="needs node and npm on PATH"
    ),
]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def packages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """Install the packages; gives their folder and the environment for npm's programs.

    Where the registry cannot be reached the tests are skipped, unless it was this set that was
    asked for.
    """
    folder = tmp_path_factory.mktemp("node")
    environ = {**os.environ, "npm_config_cache": str(folder / "cache")}
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    names = (*CLIENTS, INSPECTOR, *SERVERS.values())
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", *names],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if done.returncode:
        words = f"npm install failed: {done.stderr[-1500:]}"
        pytest.fail(words) if request.config.option.markexpr == "node" else pytest.skip(words)
    shutil.copy(HERE / "client.mjs", folder)
    return folder, environ


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    return folder


@pytest.fixture
def run(packages: tuple[Path, dict[str, str]]) -> Run:
    """Run a program of the packages' folder, with the home of the test."""
    folder, environ = packages

    def go(*words: str, check: bool = True, cwd: Path = folder) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, "npm_config_cache": environ["npm_config_cache"]},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    return go


# ------------------------------------------------------------------ kage serves


@pytest.mark.parametrize("mode", ["OLD", "auto", "2026-07-28"])
def test_the_official_node_clients_work_with_what_is_served(
    run: Run, root: Path, mode: str
) -> None:
    done = run("node", "client.mjs", mode, str(root), *SERVE, "--confirm")
    seen: dict[str, Any] = json.loads(done.stdout)
    assert seen["version"] == (None if mode == "OLD" else "2026-07-28")
    assert tuple(seen["tools"]) == NAMES
    assert seen["read"] == {"failed": False, "text": "     1\thello"}
    assert seen["missing"]["failed"] and "does not exist" in seen["missing"]["text"]
    assert seen["bash"] == {"failed": True, "text": "hello\n[exit code 3]"}
    assert seen["wrong"]["failed"] and "path must be text" in seen["wrong"]["text"]
    assert seen["unknown"] == -32602
    assert seen["stopped"] == "aborted" and not (root / "ended").exists()
    assert seen["many"] == 50
    # where the call is sent again with the person's answer, the client itself says so first
    assert seen["progress"][-3:] == ["one", "two", "three"]
    assert len(seen["asked"]) == 3 and all("Allow bash?" in text for text in seen["asked"])
    assert done.stderr == ""


def test_the_inspector_lists_the_tools_and_calls_one(run: Run, root: Path) -> None:
    inspect = ("npx", INSPECTOR, "--cli", *SERVE, "--root", str(root), "--method")
    listed = json.loads(run(*inspect, "tools/list").stdout)
    assert tuple(tool["name"] for tool in listed["tools"]) == NAMES
    done = run(*inspect, "tools/call", "--tool-name", "read", "--tool-arg", "path=a.txt")
    assert json.loads(done.stdout) == {
        "content": [{"type": "text", "text": "     1\thello"}],
        "isError": False,
    }


# ------------------------------------------------------------------ kage is the client


@pytest.fixture
def kage(packages: tuple[Path, dict[str, str]], run: Run, root: Path) -> Run:
    """Run kage with both servers configured, in the project."""
    scripts = packages[0] / "node_modules" / ".bin"
    servers = {
        "filesystem": {"command": str(scripts / "mcp-server-filesystem"), "args": [str(root)]},
        "everything": {"command": str(scripts / "mcp-server-everything")},
    }
    config = root.parent / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}))

    def go(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "kage", "--mcp-config", str(config), "mcp", *words)
        return run(*command, check=check, cwd=root)

    return go


@pytest.mark.parametrize("server", SERVERS)
def test_kage_connects_to_the_reference_servers(kage: Run, server: str) -> None:
    status = json.loads(kage("test", server, "--json").stdout)
    assert status["state"] == "connected" and status["tools"] >= 10, status
    tools = json.loads(kage("tools", server, "--json").stdout)
    assert {tool["name"].split("__")[0] for tool in tools} == {server}
    assert not alive(status["pid"])


def test_kage_calls_the_reference_filesystem_server(kage: Run, root: Path) -> None:
    path = str(root / "a.txt")
    assert kage("call", "filesystem__read_text_file", f"path={path}").stdout == "hello\n\n"
    wrote = kage("call", "filesystem__write_file", f"path={root}/b.txt", "content=new")
    assert "Successfully" in wrote.stdout and (root / "b.txt").read_text() == "new"
    outside = kage("call", "filesystem__read_text_file", "path=/etc/passwd", check=False)
    assert outside.returncode == 1 and "denied" in outside.stdout + outside.stderr


def test_kage_calls_the_reference_server_of_everything(kage: Run) -> None:
    assert kage("call", "everything__echo", "message=hi").stdout == "Echo: hi\n"
    total = kage("call", "everything__get-sum", "a=2", "b=40").stdout
    assert "42" in total
    structured = kage("call", "everything__get-structured-content", "location=New York", "--json")
    assert json.loads(structured.stdout)
    bad = kage("call", "everything__get-sum", "a=x", "b=1", check=False)
    assert bad.returncode != 0 and "Traceback" not in bad.stderr

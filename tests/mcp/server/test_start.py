"""Starting: light imports, a root that is meant, tools that exist, sockets as well as pipes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kage.core.errors import UsageError
from kage.mcp.server.expose import check_root
from tests.mcp.server.peer import Peer, Served, text_of

HEAVY = ("mcp", "mcp_types", "pydantic", "textual", "anyio", "click", "jsonschema", "httpx2", "ssl")


def test_serving_imports_nothing_heavy(tmp_path: Path) -> None:
    names = tmp_path / "modules"
    with Peer(root=tmp_path, modules=str(names)) as peer:
        peer.hello()
        (tmp_path / "a").write_text("x\n")
        for tool, arguments in (
            ("read", {"path": "a"}),
            ("ls", {}),
            ("find", {"pattern": "*"}),
            ("grep", {"pattern": "x"}),
            ("write", {"path": "b", "content": "y"}),
            ("edit", {"path": "b", "old_string": "y", "new_string": "z"}),
            ("bash", {"command": "true"}),
        ):
            result = peer.result("tools/call", {"name": tool, "arguments": arguments})
            assert "Bad arguments" not in text_of(result), text_of(result)
        assert peer.finish() == 0
    loaded = set(names.read_text().split())
    assert loaded.isdisjoint(HEAVY), loaded.intersection(HEAVY)


def test_the_command_itself_imports_nothing_heavy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with Served(tmp_path) as peer:
        peer.hello()
        peer.call("write", path="b", content="y")
        peer.call("bash", command="true")
        assert text_of(peer.call("read", path="b")) == "     1\ty"
        monkeypatch.delenv("PYTHONPROFILEIMPORTTIME")
        assert peer.finish() == 0
        lines = peer.stderr().splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time")}
    assert "kage.mcp.server.wire" in loaded
    heavy = {*HEAVY, "_ssl", "tree_sitter", "platformdirs"} - {"ssl"}  # asyncio asks for it in vain
    assert loaded.isdisjoint(heavy), loaded.intersection(heavy)


def test_tls_can_be_loaded_after_the_light_start() -> None:
    code = (
        "from kage.mcp.server import lean\n"
        "import ssl, asyncio, hashlib\n"
        "ssl.create_default_context()\n"
        "assert hashlib.sha256(b'').hexdigest().startswith('e3b0c442')\n"
        "import httpx2, anyio\n"
        "httpx2.AsyncClient()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=90)


@pytest.mark.parametrize("place", ["/", "home", "above home"])
def test_the_disk_and_the_home_folder_are_only_served_when_named(
    place: str, tmp_path: Path
) -> None:
    home = tmp_path / "home" / "me"
    home.mkdir(parents=True)
    root = {"/": Path("/"), "home": home, "above home": home.parent}[place]
    with pytest.raises(UsageError, match="--root"):
        check_root(root, named=False, home=home)
    assert check_root(root, named=True, home=home) == root
    link = tmp_path / "link"
    link.symlink_to(root)
    with pytest.raises(UsageError):
        check_root(link, named=False, home=home)


def test_a_project_folder_is_served_and_a_file_is_not(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    assert check_root(project, named=False, home=tmp_path / "home") == project
    (tmp_path / "file").touch()
    for bad in ("file", "missing"):
        with pytest.raises(UsageError):
            check_root(tmp_path / bad, named=True, home=tmp_path)


def test_tools_that_cannot_be_made_end_serving_with_the_reason(tmp_path: Path) -> None:
    with Peer(root=tmp_path, tools=["nothing"]) as peer:
        peer.hello()
        assert peer.process.wait(60) != 0
        assert "There is no built-in tool 'nothing'" in peer.stderr()


def test_it_speaks_over_sockets_as_well(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    options = json.dumps({"stub": True, "root": str(tmp_path)})
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mcp.server.launcher", options], stdin=theirs, stdout=theirs
    )
    theirs.close()
    with ours, ours.makefile("rwb") as stream:
        ours.settimeout(60)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        call = {"name": "big", "arguments": {"size": 3_000_000}}
        for id_, (method, params) in enumerate((("initialize", hello), ("tools/call", call))):
            message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
            stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()
        assert json.loads(stream.readline())["id"] == 0
        assert len(text_of(json.loads(stream.readline())["result"])) == 3_000_000
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(15) == 0

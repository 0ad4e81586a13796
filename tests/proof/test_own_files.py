"""Whatever becomes of the files kage keeps, it starts, says what it lost, and goes on."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kage.permissions.decisions.log import verify
from kage.sessions.store import SessionStore
from tests.llm import ScriptedModel, call, say
from tests.proof.house import KAGE, Ended, House, server
from tests.stubs.http_server import serving

RULES = ("--allow", "good__*", "--allow", "old__*", "--allow", "late__*", "--allow", "bash")
SPOKEN = ("trust.toml", "grants.toml")  # a person's answers: losing one is told
Damage = Callable[[Path], None]


def _cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])


def _noise(file: Path) -> None:
    file.write_bytes(random.Random(len(file.name)).randbytes(4096))


def _newer(file: Path) -> None:
    """Make it one of a kage that does not exist yet, with another shape."""
    if file.suffix == ".toml":
        file.write_text('version = 99\nfuture = { a = [1, "x"] }\n')
    else:
        file.write_text('{"version": 99, "kind": "future", "entries": [[1]], "seq": 1e999}\n')


def _deep(file: Path) -> None:
    file.write_text("[" * 200_000)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _endless(file: Path) -> None:
    """Put a pipe nobody writes to in its place."""
    file.unlink()
    os.mkfifo(file)


DAMAGES: tuple[Damage, ...] = (_cut, _noise, _newer, _deep, _folder, _endless)


def _files(house: House) -> list[Path]:
    """Give every file kage keeps but locks, which hold nothing."""
    roots = (house.data, house.home / "cache" / "kage")
    return sorted(
        file
        for root in roots
        for file in root.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    )


def _run(house: House, *words: str) -> Ended:
    turns = [[call("good__echo", text="one"), call("old__echo", text="two"),
              call("late__echo", text="three"), call("bash", command="seq 40000")],
             say("done")]  # fmt: skip
    with ScriptedModel(turns) as model:
        house.use(model)
        return house.kage("-p", "hello", "--json", *RULES, *words)


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give the house of a kage that has met every kind of server and kept every kind of file."""
    home, workspace = tmp_path_factory.mktemp("lived"), tmp_path_factory.mktemp("work")
    with serving("--old") as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        house = House(home, workspace)
        house.write(
            server("good", "echo"),
            server("old", "", url=f'"{stub.url}"'),
            server("late", "echo", start='"lazy"'),
        )
        (workspace / ".mcp.json").write_text('{"mcpServers": {"p": {"command": "true"}}}')
        entry_hash = house.kage("mcp", "trust", "p", "--show", "--json").json["hash"]
        house.kage("mcp", "trust", "p", "--yes", "--hash", entry_hash)
        (house.data / "grants.toml").write_text("version = 1\n")
        ended = _run(house)
        assert ended.code == 0, ended.err
        kept = {file.name for file in _files(house)}
        assert kept >= {"session.jsonl", "history.jsonl", *SPOKEN}, kept
        assert any(file.parent.name == "manifests" for file in _files(house))
        yield house


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_no_damage_to_its_files_keeps_kage_from_running(
    house: House, lived_in: House, damage: Damage
) -> None:
    for name in ("config", "data", "cache"):
        shutil.copytree(lived_in.home / name, house.home / name, dirs_exist_ok=True)
    shutil.copy(lived_in.workspace / ".mcp.json", house.workspace)
    damaged = _files(house)
    for file in damaged:
        damage(file)
    ended = _run(house)
    assert ended.code == 0, ended
    results = {
        event["message"]["name"]: event["message"]["outcome"]
        for event in ended.of("message_appended")
        if event["message"]["kind"] == "tool_message"
    }
    assert results == dict.fromkeys(("good__echo", "old__echo", "late__echo", "bash"), "ok")
    lines = [line for line in ended.err.splitlines() if line.startswith("kage:")]
    assert len(lines) == len(set(lines)), ended.err
    for file in damaged:
        if file.name in SPOKEN:
            assert ended.lines(file.name), (file.name, ended.err)
    SessionStore(house.data / "sessions").list(house.workspace)  # whatever it holds
    with pytest.raises((AssertionError, OSError)):  # said by whoever asked, as a fault or a problem
        assert not verify(house.data / "decisions")


def _limited(limit: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", f'{limit}; exec "$@"', "sh", *KAGE)


def test_a_full_disk_costs_no_call_and_is_said_without_end(house: House) -> None:
    """A file can take nothing more: what the kernel says then differs from a full disk in name."""
    house.write(server("good", "echo"))
    house.command = _limited("ulimit -f 0")
    with ScriptedModel([[call("good__echo", text="x")] * 5, say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello", *RULES)
    assert (ended.code, ended.out) == (0, "done\n"), ended
    lines = ended.err.strip().splitlines()
    assert lines and len(lines) == len(set(lines)), ended.err
    for file in house.data.rglob("*.jsonl"):
        assert not file.read_bytes(), f"half a record in {file}"


def test_too_few_descriptors_fail_servers_and_not_kage(house: House) -> None:
    house.write(*(server(f"s{number}", "echo") for number in range(12)))
    house.command = _limited("ulimit -n 32")
    with ScriptedModel([say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "hello")
    assert (ended.code, ended.out) == (0, "done\n"), ended
    failed = [line for line in ended.err.splitlines() if " failed (" in line]
    assert failed and len(failed) == len(set(failed)), ended.err
    with contextlib.suppress(FileNotFoundError):
        assert "Traceback" not in (house.data / "kage.log").read_text()

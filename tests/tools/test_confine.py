"""Nothing outside the roots is read or written, whatever the path and whatever moves."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.core.errors import ToolError
from kage.core.tools import Invocation
from kage.tools import confine
from tests.tools.helpers import Bench, invocation, text_of

SECRET = "TOP-SECRET"
READERS = ("read", "ls", "find", "grep", "write", "edit")


def arguments_for(tool: str, path: str) -> dict[str, str]:
    extra = {
        "find": {"pattern": "*"},
        "grep": {"pattern": "SECRET"},
        "write": {"content": "overwritten"},
        "edit": {"old_string": "TOP", "new_string": "LOW"},
    }
    return {"path": path, **extra.get(tool, {})}


@pytest.mark.parametrize("tool", READERS)
@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "link",
        "folder-link/secret.txt",
        "chain/secret.txt",
        "../workspace-twin/secret.txt",
        "{outside}/secret.txt",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/etc/passwd",
        "~/x",
        "//etc/passwd",
    ],
)
def test_no_path_leads_outside(bench: Bench, tool: str, path: str) -> None:
    (bench.workspace / "sub").mkdir()
    (bench.workspace / "link").symlink_to(bench.outside / "secret.txt")
    (bench.workspace / "folder-link").symlink_to(bench.outside)
    (bench.workspace / "chain").symlink_to("folder-link")
    twin = bench.base / "workspace-twin"  # shares the beginning of the name
    twin.mkdir()
    (twin / "secret.txt").write_text(SECRET)
    said = bench.refusal(tool, **arguments_for(tool, path.format(outside=bench.outside)))
    assert SECRET not in said
    assert "outside the folders" in said
    assert (bench.outside / "secret.txt").read_text() == f"{SECRET}\n"
    assert (twin / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("tool", READERS)
@pytest.mark.parametrize(
    ("path", "word"),
    [("a\0b", "NUL"), ("x" * 5000, "longer"), ("n" * 300, "name is too long|does not exist")],
)
def test_impossible_paths_are_named(bench: Bench, tool: str, path: str, word: str) -> None:
    import re

    assert re.search(word, bench.refusal(tool, **arguments_for(tool, path)))


@pytest.mark.parametrize("tool", ["read", "ls", "write", "edit"])
def test_a_loop_of_links_is_an_error(bench: Bench, tool: str) -> None:
    (bench.workspace / "a").symlink_to("b")
    (bench.workspace / "b").symlink_to("a")
    assert bench.refusal(tool, **arguments_for(tool, "a/x"))


@pytest.mark.parametrize("tool", ["read", "write", "edit", "grep"])
def test_pipes_sockets_and_devices_are_refused_at_once(bench: Bench, tool: str) -> None:
    os.mkfifo(bench.workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(bench.workspace)  # socket names are short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        assert "named pipe" in bench.refusal(tool, **arguments_for(tool, "pipe"))
        assert "socket" in bench.refusal(tool, **arguments_for(tool, "socket"))
    assert not (bench.workspace / "pipe").is_file()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/environ", "/proc/self/mem"])
@pytest.mark.parametrize("tool", ["read", "write", "edit"])
def test_a_root_of_everything_still_opens_no_device_and_no_kernel_file(
    bench: Bench, tool: str, path: str
) -> None:
    call = Invocation(
        call_id="c",
        arguments=arguments_for(tool, path),
        workspace=bench.workspace,
        roots=(Path("/"),),
        scratch=bench.base / "scratch",
    )
    with pytest.raises(ToolError) as caught:
        asyncio.run(bench.tools[tool].run(call))
    assert "not a regular file" in str(caught.value)


def test_a_folder_as_a_file_names_ls(bench: Bench) -> None:
    (bench.workspace / "sub").mkdir()
    assert "Use ls" in bench.refusal("read", path="sub")
    assert "a folder" in bench.refusal("write", path="sub", content="x")


def test_a_single_file_can_be_a_root(bench: Bench) -> None:
    allowed = bench.outside / "secret.txt"
    call = Invocation(
        call_id="c",
        arguments={"path": str(allowed)},
        workspace=bench.workspace,
        roots=(bench.workspace, allowed),
        scratch=bench.base / "scratch",
    )
    assert SECRET in text_of(asyncio.run(bench.tools["read"].run(call)))
    (bench.outside / "other.txt").write_text("other")
    beside = Invocation(
        call_id="c",
        arguments={"path": str(bench.outside / "other.txt")},
        workspace=bench.workspace,
        roots=(bench.workspace, allowed),
        scratch=bench.base / "scratch",
    )
    with pytest.raises(ToolError, match="outside"):
        asyncio.run(bench.tools["read"].run(beside))


def test_a_link_inside_to_a_place_inside_works(bench: Bench) -> None:
    (bench.workspace / "real").mkdir()
    (bench.workspace / "alias").symlink_to("real")
    bench.run("write", path="alias/new.txt", content="hello")
    assert (bench.workspace / "real" / "new.txt").read_text() == "hello"
    (bench.workspace / "name").symlink_to("real/new.txt")
    bench.run("edit", path="name", old_string="hello", new_string="bye")
    assert (bench.workspace / "name").is_symlink()
    assert (bench.workspace / "real" / "new.txt").read_text() == "bye"


def test_a_dangling_link_to_the_outside_is_not_written_through(bench: Bench) -> None:
    (bench.workspace / "dangling").symlink_to(bench.outside / "new.txt")
    assert "outside" in bench.refusal("write", path="dangling", content="x")
    assert not (bench.outside / "new.txt").exists()


def test_a_workspace_reached_through_a_link_works(bench: Bench) -> None:
    alias = bench.base / "alias"
    alias.symlink_to(bench.workspace)
    (bench.workspace / "a.txt").write_text("hello needle\n")
    for tool in ("read", "grep", "find", "ls"):
        arguments = {
            "read": {"path": "a.txt"},
            "grep": {"pattern": "needle"},
            "find": {"pattern": "*.txt"},
            "ls": {},
        }[tool]
        result = asyncio.run(bench.tools[tool].run(invocation(alias, **arguments)))
        assert "a.txt" in text_of(result) or "hello" in text_of(result)


@contextmanager
def swapping(folder: Path, target: Path) -> Iterator[threading.Event]:
    """Swap ``folder`` for a link to ``target`` and back, as fast as it goes."""
    stop = threading.Event()
    aside = folder.with_name("aside")
    link = folder.with_name("the-link")
    link.symlink_to(target)

    def move(source: Path, target: Path) -> None:
        while not stop.is_set():
            try:
                os.rename(source, target)
                return
            except OSError:  # a write made the target anew in between
                shutil.rmtree(target, ignore_errors=True)

    def swap() -> None:
        while not stop.is_set():
            move(folder, aside)
            move(link, folder)
            move(folder, link)
            move(aside, folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("tool", READERS)
def test_a_folder_swapped_for_a_link_leads_nowhere(bench: Bench, tool: str) -> None:
    inside = bench.workspace / "dir"
    inside.mkdir()
    (inside / "secret.txt").write_text("harmless TOP\n")
    (inside / "own.txt").write_text("own")
    (bench.outside / "only-outside.txt").write_text(f"{SECRET} ONLY-OUTSIDE")
    before = sorted(path.name for path in bench.outside.iterdir())
    path = "dir/secret.txt" if tool in ("read", "write", "edit") else "dir"
    deadline = time.monotonic() + 1.0

    async def attack() -> None:
        while time.monotonic() < deadline:
            try:
                result = await bench.go(tool, **arguments_for(tool, path))
            except ToolError as error:
                assert SECRET not in str(error)
                continue
            assert SECRET not in text_of(result)
            assert "only-outside" not in text_of(result)
            assert SECRET not in result.diff

    with swapping(inside, bench.outside):
        asyncio.run(attack())
    assert (bench.outside / "secret.txt").read_text() == f"{SECRET}\n"
    assert sorted(path.name for path in bench.outside.iterdir()) == before


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["..", ".", "sub", "link", "up", "secret.txt", "", "a\nb", "é", "~"]),
        max_size=8,
    )
)
def test_whatever_is_located_is_inside(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    base = tmp_path_factory.getbasetemp() / "located"
    workspace = base / "workspace"
    if not workspace.exists():
        (workspace / "sub").mkdir(parents=True)
        (base / "secret.txt").write_text(SECRET)
        (workspace / "link").symlink_to(base)
        (workspace / "sub" / "up").symlink_to("..")
    try:
        place = confine.locate(invocation(workspace), "/".join(pieces))
    except ToolError:
        return
    assert place.path == workspace or workspace in place.path.parents
    assert "\n" not in place.shown

"""Looking with git: exact bytes, and nothing the person's repository says is carried out."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from kage.core.undo import ABSENT, Kind
from kage.tools.effects import looking
from kage.tools.effects.looking import Before, NotSeen
from kage.tools.effects.program import Git, find
from kage.tools.effects.quick import Quick
from kage.tools.effects.repository import Repository

GIT = shutil.which("git")
TIME = 60.0

pytestmark = pytest.mark.skipif(GIT is None, reason="there is no git program here")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def eye(workspace: Path) -> Repository:
    assert GIT is not None
    folder = workspace.parent / "undo" / "snapshot.git"
    git = Git(program=GIT, workspace=workspace, folder=folder)
    return Repository(git=git, quick=Quick(workspace))


def git(workspace: Path, *words: str) -> None:
    """Be the person with their own repository."""
    assert GIT is not None
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    environ = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent)}
    subprocess.run([GIT, *names, *words], cwd=workspace, env=environ, check=True,
                   capture_output=True)  # fmt: skip


def looked(eye: Repository) -> dict[str, Before]:
    return {os.fsdecode(path): was for path, was in eye.refresh(seconds=TIME).items()}


def bytes_of(eye: Repository, was: Before) -> bytes:
    return eye.former((was.oid,))[was.oid]


def test_every_kind_of_change_is_seen_with_the_bytes_there_were(workspace: Path) -> None:
    odd = b"\xff\xfe\r\n\0 no text"
    (workspace / "bytes").write_bytes(odd)
    (workspace / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    (workspace / "id.txt").write_bytes(b"$Id$\n")
    (workspace / "gone").write_text("gone\n")
    (workspace / "mode").write_text("mode\n")
    (workspace / "mode").chmod(0o640)
    (workspace / "link").symlink_to("bytes")
    (workspace / "becomes_folder").write_text("file\n")
    (workspace / "same").write_text("same\n")
    (workspace / ".gitattributes").write_text(
        "* text eol=lf ident filter=evil working-tree-encoding=UTF-16\n"
    )
    watching = eye(workspace)
    assert looked(watching) == {}
    (workspace / "bytes").write_bytes(b"new")
    (workspace / "crlf.txt").write_bytes(b"one\ntwo\n")
    (workspace / "id.txt").write_bytes(b"$Id: x $\n")
    (workspace / "gone").unlink()
    (workspace / "mode").chmod(0o600)
    (workspace / "link").unlink()
    (workspace / "link").symlink_to("elsewhere")
    (workspace / "becomes_folder").unlink()
    (workspace / "becomes_folder").mkdir()
    (workspace / "becomes_folder" / "in it").write_text("x")
    (workspace / "new\nname \udcff").write_text("new")
    found = looked(watching)
    assert set(found) == {
        "bytes", "crlf.txt", "id.txt", "gone", "mode", "link", "becomes_folder",
        "becomes_folder/in it", "new\nname \udcff",
    }  # fmt: skip
    assert bytes_of(watching, found["bytes"]) == odd
    assert bytes_of(watching, found["crlf.txt"]) == b"one\r\ntwo\r\n"
    assert bytes_of(watching, found["id.txt"]) == b"$Id$\n"
    assert bytes_of(watching, found["gone"]) == b"gone\n"
    assert bytes_of(watching, found["link"]) == b"bytes"
    assert found["link"].state.kind is Kind.LINK
    assert found["mode"].state.mode == 0o640
    assert found["new\nname \udcff"].state == ABSENT
    assert looked(watching) == {}
    folders = (watching.git.folder.parent, watching.git.folder, watching.git.folder / "objects")
    assert [place.stat().st_mode & 0o777 for place in folders] == [0o700] * 3
    watching.close()
    assert not watching.git.folder.exists()


def test_nothing_of_a_hostile_repository_runs_or_is_changed(workspace: Path) -> None:
    marker = workspace.parent / "ran"
    git(workspace, "init", "-q")
    (workspace / "a.txt").write_text("a\n")
    (workspace / "ignored").write_text("tracked, though it is ignored\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    evil = f"touch {marker}; cat"
    for name, value in {
        "core.fsmonitor": f"touch {marker}", "core.hooksPath": str(workspace / "hooks"),
        "filter.evil.clean": evil, "filter.evil.smudge": evil, "filter.evil.process": evil,
        "diff.evil.textconv": evil, "diff.external": evil, "core.editor": evil,
        "core.pager": evil, "core.sshCommand": evil, "core.worktree": "/",
        "core.excludesFile": "/nowhere", "extensions.partialClone": "evil",
        "remote.evil.url": f"ext::sh -c touch% {marker}", "remote.evil.promisor": "true",
        "gc.auto": "1", "core.alternateRefsCommand": evil, "include.path": "/dev/zero",
    }.items():  # fmt: skip
        git(workspace, "config", "--file", ".git/config", name, value)
    hooks = (workspace / "hooks", workspace / ".git" / "hooks")
    for folder in hooks:
        folder.mkdir(exist_ok=True)
        for name in ("post-index-change", "pre-commit", "post-checkout", "pre-auto-gc"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
            (folder / name).chmod(0o755)
    (workspace / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (workspace / ".gitignore").write_text("ignored\nbuild\n")
    before = {path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()}
    watching = eye(workspace)
    assert looked(watching) == {}
    (workspace / "a.txt").write_text("b\n")
    (workspace / "ignored").write_text("changed\n")
    (workspace / "build").mkdir()
    (workspace / "build" / "out").write_text("not looked at\n")
    found = looked(watching)
    assert set(found) == {"a.txt", "ignored"}
    assert bytes_of(watching, found["a.txt"]) == b"a\n"
    assert not marker.exists()
    assert before == {
        path: path.read_bytes() for path in (workspace / ".git").rglob("*") if path.is_file()
    }


def test_repositories_inside_and_odd_files_break_nothing(workspace: Path) -> None:
    git(workspace, "init", "-q")
    inner = workspace / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "f").write_text("f\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "one")
    git(workspace, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "sub")
    (workspace / "a" / ".GIT").mkdir(parents=True)
    (workspace / "a" / ".GIT" / "x").write_text("x")
    (workspace / "git~1").write_text("x")
    (workspace / ".gitmodules2").symlink_to("/dev/zero")
    os.mkfifo(workspace / "pipe")
    closed = workspace / "closed"
    closed.write_text("x")
    closed.chmod(0)
    watching = eye(workspace)
    assert looked(watching) == {}
    assert looked(watching) == {}
    (workspace / "git~1").write_text("changed")
    (inner / "f").write_text("not looked at")
    (workspace / "a" / ".GIT" / "x").write_text("changed too")
    found = looked(watching)
    assert {"git~1"} <= set(found) <= {"git~1", "a/.GIT/x"}
    assert stat.S_ISFIFO((workspace / "pipe").stat().st_mode)


def test_what_is_too_large_is_watched_and_not_copied(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kage.tools.effects.repository.MAX_COPY", 100)
    (workspace / "large").write_bytes(b"x" * 101)
    (workspace / "grows").write_bytes(b"small")
    watching = eye(workspace)
    looked(watching)
    (workspace / "large").write_bytes(b"y" * 102)
    (workspace / "grows").write_bytes(b"z" * 500)
    found = looked(watching)
    assert found["large"].oid == ""
    assert found["large"].state.mark.startswith("stat:")
    assert bytes_of(watching, found["grows"]) == b"small"
    assert looked(watching) == {}
    (workspace / "large").unlink()
    (workspace / "grows").write_bytes(b"w" * 501)
    assert set(looked(watching)) == {"large", "grows"}


def _late(*_: object, **__: object) -> bytes:
    raise subprocess.TimeoutExpired("git", 1)


def test_a_look_that_fails_says_why_and_the_next_begins_anew(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a").write_text("a")
    watching = eye(workspace)
    looked(watching)
    with monkeypatch.context() as patch:
        patch.setattr(Git, "run", _late)
        with pytest.raises(NotSeen, match="took too long"):
            looked(watching)
    (workspace / "a").write_text("b")
    assert looked(watching) == {}  # what it was compared with counts no longer
    (workspace / "a").write_text("cc")
    assert set(looked(watching)) == {"a"}
    monkeypatch.setattr("kage.tools.effects.repository.MAX_FILES", 0)
    (workspace / "new").write_text("")
    with pytest.raises(NotSeen, match="more than 0 files"):
        looked(watching)
    watching.stop()
    with pytest.raises(NotSeen, match="closing"):
        looked(watching)
    assert looking.MAX_FILES


def test_a_git_inside_the_workspace_is_not_taken_for_git(workspace: Path) -> None:
    fake = workspace / "git"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert find({"PATH": f"{workspace}:.:"}, workspace) is None
    assert find({"PATH": f"{workspace}:{Path(GIT or '/').parent}"}, workspace) == GIT

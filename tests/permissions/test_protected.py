"""kage's own files are known by any name they go by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kage.config.paths import Paths
from kage.permissions.protected import Protected
from kage.permissions.rules.reading import Reading
from tests.permissions.calls import call, mcp


@pytest.fixture
def home(own_home):
    return own_home


@pytest.fixture
def paths(home):
    found = Paths.from_environ(os.environ)
    for folder in (found.config / "plugins", found.data / "decisions"):
        folder.mkdir(parents=True)
    found.config_file.write_text("model = ''\n")
    (found.data / "grants.toml").write_text("version = 1\n")
    return found


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "ws"
    (folder / ".kage").mkdir(parents=True)
    (folder / ".kage" / "config.toml").write_text("")
    (folder / ".mcp.json").write_text("{}")
    return folder


@pytest.fixture
def protected(paths, workspace):
    return Protected.of(paths, workspace)


def guarded(protected, tool, arguments, workspace):
    reading = Reading.of(call(tool, arguments, workspace=workspace))
    found = reading.guarded(protected)
    if found is None:
        found = next((place for place in reading.uprooted() if protected.uproots(place)), None)
    return found is not None


def test_kages_own_folders_are_protected_whole(protected, paths, workspace):
    for place in (
        paths.config,
        paths.config_file,
        paths.config / "plugins" / "x.lua",
        paths.data / "grants.toml",
        paths.data / "trust.toml",
        paths.data / "pins" / "x.v1.json",
        paths.data / "decisions" / "2026-01.jsonl",
        paths.data / "sessions" / "s1" / "session.jsonl",
        workspace / ".kage" / "config.toml",
        workspace / ".kage" / "new" / "file",
        workspace / ".mcp.json",
        workspace / "sub" / ".kage" / "config.toml",
        workspace / "sub" / ".mcp.json",
        workspace / ".KAGE" / "config.toml",
        workspace / ".MCP.json",
    ):
        assert protected(place), place


def test_other_places_are_not(protected, paths, workspace):
    for place in (
        workspace / "a.py",
        workspace / "kage" / "config.toml",
        workspace / "mcp.json",
        paths.config.parent / "kagex" / "config.toml",
        paths.data / "sessions" / "s1" / "artifacts" / "out.txt",
        Path("/etc/passwd"),
    ):
        assert not protected(place), place


def test_a_link_to_kages_own_file_is_protected(protected, paths, workspace):
    (workspace / "notes").symlink_to(paths.config)
    (workspace / "one").symlink_to(paths.config_file)
    assert guarded(protected, "write", {"path": "notes/config.toml"}, workspace)
    assert guarded(protected, "edit", {"path": "one"}, workspace)
    assert guarded(protected, "write", {"path": "notes/new.lua"}, workspace)


def test_a_linked_project_folder_is_protected_at_both_ends(paths, tmp_path):
    workspace, real = tmp_path / "ws", tmp_path / "real"
    workspace.mkdir()
    real.mkdir()
    (workspace / ".kage").symlink_to(real)
    protected = Protected.of(paths, workspace)
    assert guarded(protected, "write", {"path": ".kage/config.toml"}, workspace)
    assert guarded(protected, "write", {"path": str(real / "config.toml")}, workspace)


def test_a_hard_link_to_kages_own_file_is_protected(protected, paths, workspace):
    os.link(paths.data / "grants.toml", workspace / "innocent.txt")
    os.link(workspace / "other", workspace / "twin") if (workspace / "other").exists() else None
    assert guarded(protected, "write", {"path": "innocent.txt"}, workspace)
    (workspace / "a").write_text("")
    os.link(workspace / "a", workspace / "b")
    assert not guarded(protected, "write", {"path": "b"}, workspace)


def test_a_configuration_folder_that_is_a_link_is_protected_at_both_ends(home, tmp_path):
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    found = Paths.from_environ(os.environ)
    found.config.parent.mkdir(parents=True)
    found.config.symlink_to(dotfiles)
    protected = Protected.of(found, tmp_path)
    assert protected(dotfiles / "config.toml")
    assert protected(found.config / "config.toml")


def test_reading_kages_files_is_no_change(protected, workspace):
    assert not guarded(protected, "read", {"path": ".kage/config.toml"}, workspace)


@pytest.mark.parametrize(
    "line",
    [
        "echo x > .mcp.json",
        "echo x >> ./.kage/config.toml",
        "echo x > {config}/config.toml",
        "tee {config}/config.toml < x",
        "cp evil.toml $XDG_CONFIG_HOME/kage/config.toml",
        "cp evil.toml ${{XDG_CONFIG_HOME}}/kage/config.toml",
        "dd if=x of={config}/config.toml",
        "sed -i s/a/b/ .kage/config.toml",
        "cd {config} && echo x > config.toml",
        "cd .kage; echo x > config.toml",
        "cd {config}/.. && echo > kage/config.toml",
        "sh -c 'echo x > .mcp.json'",
        "x={config}/config.toml; echo > $x",
        "rm -rf {data}/decisions",
        "rm -rf {data}",
        "rm -rf {data}/..",
        "mv {config}/.. /tmp/x",
        "rm -rf .",
        "echo x > {data}/gran*.toml",
        "echo x > {config}/../k*/config.toml",
        "cat <(tee .mcp.json)",
        "echo $(echo > .mcp.json)",
        "git checkout -- .mcp.json",
        "ln -s x .kage/y",
        "echo 'unfinished > .mcp.json",
        "curl -o.mcp.json x",
        "curl --output=.mcp.json x",
        "D=.mcp; echo x > $D.json",
        "D=.mcp; tee ${{D}}.json",
        "for d in .kage; do echo x > $d/config.toml; done",
        'echo x > ".mcp"\\.json',
        'echo x > ".mcp""".json',
        'tee ".mcp"\\.json < x',
        "python3 -c \"open('.mcp.json', 'w')\"",
        "python3 -c \"open('{config}/config.toml', 'w')\"",
        "perl -e 'unlink \".mcp.json\"'",
    ],
)
def test_a_line_that_names_kages_own_files_is_found(protected, paths, workspace, line):
    command = line.format(config=paths.config, data=paths.data)
    assert guarded(protected, "bash", {"command": command}, workspace)


@pytest.mark.parametrize(
    "line",
    ["ls", "ls -la .", "rm -rf build", "mv a.py .", "echo x > out.txt", "rm *", "cat README.md"],
)
def test_an_ordinary_line_is_not(protected, workspace, line):
    assert not guarded(protected, "bash", {"command": line}, workspace)


def test_a_servers_argument_that_names_kages_own_files_is_found(protected, paths, workspace):
    for arguments in (
        {"path": ".mcp.json"},
        {"path": str(paths.config_file)},
        {"files": [{"to": "./.kage/config.toml"}]},
        {"uri": f"file://{paths.config_file}"},
        {"path": "sub/../.kage/config.toml"},
    ):
        assert guarded(protected, mcp(), arguments, workspace), arguments
    assert not guarded(
        protected, mcp(), {"path": "a.txt", "text": "about .kage/ and so on"}, workspace
    )


def test_odd_places_do_not_make_it_fail(protected):
    for place in (Path("/\ud800"), Path("/" + "x" * 5000), Path("/")):
        protected(place)
        protected.uproots(place)


def test_a_lock_file_is_protected_once_it_is_there(paths: Paths, workspace: Path) -> None:
    lock = workspace / "mcp.lock"
    assert not Protected.of(paths, workspace)(lock)  # a new one can only add friction
    lock.write_text("{}")
    assert Protected.of(paths, workspace)(lock)
    assert not Protected.of(paths, workspace)(workspace / "uv.lock")

"""The sandbox in settings: read, kept at least as strict as the person has it, never lost."""

from __future__ import annotations

import pytest

from kage.core.sandbox import LEVELS
from tests.config.files import Files


def test_the_shell_and_each_server_have_a_level(files: Files) -> None:
    loaded = files.load(
        '[sandbox]\nbash = "no-network"\nwrite = ["~/w"]\nhide = ["~/h"]\n'
        '[mcp]\nsandbox = "workspace"\n[mcp.servers.a]\ncommand = "x"\n'
        '[mcp.servers.b]\ncommand = "x"\nsandbox = "none"\nargs = ["b"]\n'
        '[mcp.servers.c]\nurl = "https://example.com/mcp"\n'
    )
    assert loaded.faults == ()
    shell = loaded.settings.sandbox
    assert (shell.bash, shell.write, shell.hide) == ("no-network", ("~/w",), ("~/h",))
    levels = {name: spec.sandbox for name, spec in loaded.settings.servers.items()}
    assert levels == {"a": "workspace", "b": "none", "c": "none"}
    assert files.load("").settings.sandbox.bash == "none"


@pytest.mark.parametrize(
    "text", ['sandbox = "none"', "[sandbox]\nbash = 3", '[sandbox]\nbash="no"']
)
def test_a_level_that_cannot_be_read_is_the_strictest_one(files: Files, text: str) -> None:
    loaded = files.load(text)
    assert len(loaded.faults) == 1
    assert loaded.settings.sandbox.bash == "no-network"


def test_a_sandbox_does_not_fit_an_address(files: Files) -> None:
    loaded = files.load('[mcp.servers.a]\nurl = "https://example.com/mcp"\nsandbox = "workspace"\n')
    assert "does not fit url" in files.faults(loaded)[0]


@pytest.mark.parametrize("own", LEVELS)
@pytest.mark.parametrize("theirs", LEVELS)
def test_a_project_may_only_ask_for_a_stricter_one(files: Files, own: str, theirs: str) -> None:
    files.project_toml(f'[mcp.servers.a]\ncommand = "x"\nsandbox = "{theirs}"\n')
    loaded = files.load(f'[mcp]\nsandbox = "{own}"\n')
    if LEVELS.index(theirs) < LEVELS.index(own):
        assert "a project may only ask for a stricter one" in files.faults(loaded)[0]
        assert "a" not in loaded.settings.servers
    else:
        assert loaded.settings.servers["a"].sandbox == theirs


def test_a_project_that_replaces_a_server_keeps_its_sandbox(files: Files) -> None:
    files.project_toml('[mcp.servers.a]\ncommand = "theirs"\n')
    loaded = files.load('[mcp.servers.a]\ncommand = "mine"\nsandbox = "no-network"\n')
    (waiting,) = loaded.settings.project_servers
    assert (waiting.command, waiting.sandbox) == ("theirs", "no-network")
    counted = loaded.settled(lambda spec: True).settings.servers["a"]
    assert (counted.command, counted.sandbox) == ("theirs", "no-network")


def test_a_project_opens_no_folder_and_sets_no_shell(files: Files) -> None:
    files.project_toml(
        '[sandbox]\nbash = "none"\n[mcp.servers.a]\ncommand = "x"\nsandbox_write = ["/"]\n'
    )
    loaded = files.load('[sandbox]\nbash = "workspace"\n')
    assert loaded.settings.sandbox.bash == "workspace"
    assert "a" not in loaded.settings.servers
    assert len(loaded.faults) == 2

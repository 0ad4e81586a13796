"""What a server may ask and is told, by its entry: the model, folders, log messages."""

from __future__ import annotations

import pytest

from kage.config.schema import ServerSpec
from tests.config.files import Files


def entry(files: Files, text: str, top: str = "") -> ServerSpec:
    loaded = files.load(f'[mcp]\n{top}\n[mcp.servers.a]\ncommand = "a"\n{text}')
    assert loaded.faults == () and loaded.settings.notes == ()
    return loaded.settings.servers["a"]


def test_nothing_is_allowed_and_nothing_asked_for_unless_it_is_written(files: Files) -> None:
    spec = entry(files, "")
    assert (spec.allow_sampling, spec.roots, spec.log_level) == (False, (), "")
    assert spec.sampling_requests > 0 and spec.sampling_budget > 0


def test_the_word_of_the_server_beats_the_one_for_all(files: Files) -> None:
    top = 'allow_sampling = true\nroots = ["~/x"]\nlog_level = "error"'
    spec = entry(files, 'allow_sampling = "tools"\nroots = false\nlog_level = "debug"', top)
    assert (spec.allow_sampling, spec.roots, spec.log_level) == ("tools", None, "debug")
    spec = entry(files, "sampling_budget = 5", top)
    assert (spec.allow_sampling, spec.roots, spec.sampling_budget) == (True, ("~/x",), 5)


@pytest.mark.parametrize(
    "text",
    [
        'allow_sampling = "yes"',
        "allow_sampling = 1",
        "roots = true",
        'roots = "~/x"',
        'roots = [""]',
        'log_level = "loud"',
        "sampling_budget = -1",
    ],
)
def test_other_values_are_mistakes(files: Files, text: str) -> None:
    assert files.load(f'[mcp.servers.a]\ncommand = "a"\n{text}').faults


@pytest.mark.parametrize(
    "text",
    ["allow_sampling = true", 'allow_sampling = "tools"', 'roots = ["/"]', "sampling_budget = 9"],
)
def test_a_project_cannot_let_a_server_ask_more(files: Files, text: str) -> None:
    files.project_toml(f'[mcp.servers.a]\ncommand = "a"\n{text}\n')
    assert files.load("").faults


def test_a_default_for_the_persons_own_servers_is_not_the_projects(files: Files) -> None:
    files.project_toml('[mcp.servers.a]\ncommand = "a"\nroots = false\n')
    loaded = files.load("[mcp]\nallow_sampling = true")
    assert loaded.faults == ()
    (spec,) = loaded.settings.project_servers or tuple(loaded.settings.servers.values())
    assert spec.allow_sampling is False and spec.roots is None

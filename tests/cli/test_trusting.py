"""What trust is bound to is what is started, and what changes meanwhile is held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kage.cli.serve_rules import without_held
from kage.cli.trusting import TrustDesk
from kage.config.load import Loaded, load
from kage.config.paths import Paths
from kage.core.redact import Redactor
from kage.core.servers import Stage
from kage.core.trust import Standing, TrustAnswer
from kage.mcp.client.servers.recipe import prepare

ENTRIES: dict[str, dict[str, Any]] = {
    "plain": {"command": "sh", "args": ["-c", "true"]},
    "variables": {"command": "${SH}", "args": ["${A:-x}"], "env": {"T": "${TOKEN}"}},
    "relative": {"command": "./run", "cwd": "sub"},
    "path": {"command": "tool", "env": {"PATH": "${BIN}"}},
    "missing": {"command": "no-such-program"},
    "web": {"url": "https://h/${A:-x}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "sse": {"type": "sse", "url": "https://h/sse"},
}


class Place:
    """A project and a home, and what their files say."""

    def __init__(self, base: Path) -> None:
        self.project = base / "project"
        (self.project / "sub").mkdir(parents=True)
        self.bin = base / "bin"
        self.bin.mkdir()
        for tool in (self.bin / "tool", self.project / "run"):
            tool.write_text("#!/bin/sh\n")
            tool.chmod(0o755)
        self.environ = {
            "HOME": str(base),
            "PATH": "/usr/bin:/bin",
            "XDG_CONFIG_HOME": str(base / "config"),
            "XDG_DATA_HOME": str(base / "data"),
            "SH": "sh",
            "TOKEN": "t0ken-value",
            "BIN": str(self.bin),
        }
        self.paths = Paths.from_environ(self.environ)
        self.paths.config_file.parent.mkdir(parents=True)

    def project_has(self, entries: dict[str, Any]) -> None:
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))

    def read(self) -> Loaded:
        return load(paths=self.paths, workspace=self.project)

    def desk(self) -> TrustDesk:
        return TrustDesk(
            self.read(), data=self.paths.data, environ=self.environ, workspace=self.project
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", ENTRIES)
def test_trust_is_bound_to_the_hash_of_what_is_started(place: Place, name: str) -> None:
    place.project_has({name: ENTRIES[name]})
    desk = place.desk()
    spec = desk.entry(name)
    recipe = prepare(
        spec,
        place.environ,
        workspace=place.project,
        redactor=Redactor(),
        inherit_stderr=False,
    )
    assert desk.identity(spec).entry_hash == recipe.entry
    fault = desk.fault(spec, recipe.entry)
    assert fault is not None and fault.stage is Stage.CONFIG and name in fault.what
    assert desk.answer(name, recipe.entry, TrustAnswer.TRUST)
    assert desk.fault(spec, recipe.entry) is None
    assert desk.fault(spec, "another") is not None
    assert place.desk().fault(spec, recipe.entry) is None
    assert "t0ken-value" not in (place.paths.data / "trust.toml").read_text()


def test_a_value_of_a_variable_is_no_part_of_it_and_its_program_is(place: Place) -> None:
    place.project_has({"a": ENTRIES["path"] | {"env": {"PATH": "${BIN}", "T": "${TOKEN}"}}})
    desk = place.desk()
    before = desk.question("a")
    desk.answer("a", before.identity.entry_hash, TrustAnswer.TRUST)
    place.environ["TOKEN"] = "rotated"
    assert place.desk().question("a").standing is Standing.TRUSTED
    del place.environ["TOKEN"]
    assert place.desk().question("a").standing is Standing.TRUSTED
    other = place.bin.with_name("other")
    other.mkdir()
    (place.bin / "tool").rename(other / "tool")
    place.environ["BIN"] = str(other)
    changed = place.desk().question("a")
    assert changed.standing is Standing.CHANGED
    assert [change.part for change in changed.changes] == ["program"]


def test_an_answer_for_what_was_shown_does_not_count_for_something_else(place: Place) -> None:
    place.project_has({"a": ENTRIES["plain"]})
    desk = place.desk()
    shown = desk.question("a").identity.entry_hash
    place.project_has({"a": ENTRIES["plain"] | {"args": ["-c", "evil"]}})
    desk.reload(place.read())
    assert not desk.answer("a", shown, TrustAnswer.TRUST)
    assert desk.question("a").standing is Standing.NEW


def test_what_is_written_while_a_kage_runs_is_held_by_it_and_by_the_next(place: Place) -> None:
    place.paths.config_file.write_text('[mcp.servers.a]\ncommand = "x"\n')
    desk = place.desk()
    desk.accept()
    place.paths.config_file.write_text(
        '[mcp.servers.a]\ncommand = "evil"\n[mcp.servers.b]\nurl = "http://evil"\n'
        '[permissions.tools.bash]\nallow = ["*"]\n[permissions.mcp]\na = "allow"\n'
    )
    loaded, held = desk.reload(place.read())
    assert len(held) == 4 and "/mcp trust a" in held[0] and "trust --rules" in held[-1]
    assert desk.reload(place.read())[1] == ()
    for kage in (desk, place.desk()):
        assert {kage.fault(spec, "x") is None for spec in loaded.settings.servers.values()} == {
            False
        }
        permissions = kage.loaded.settings.permissions
        assert permissions.servers.get("a", "ask") == "ask"
        assert all(not rule.allow for rule in permissions.tools)
        served = without_held(loaded.own, place.paths.data)
        assert all(not rule.allow for rule in served.tools)
    later = place.desk()
    question = later.question("a")
    assert question.standing is Standing.HELD
    assert [(c.old, c.new) for c in question.changes] == [("x", "evil")]
    assert later.answer("a", question.identity.entry_hash, TrustAnswer.TRUST)
    later.book.allow_rules(later.book.held_rules())
    fresh = place.desk()
    assert fresh.fault(fresh.entry("a"), "x") is None
    assert fresh.loaded.settings.permissions.servers == {"a": "allow"}
    assert fresh.fault(fresh.entry("b"), "x") is not None


def test_an_entry_that_cannot_be_put_together_is_not_trusted(place: Place) -> None:
    place.project_has({"a": {"command": "${NOWHERE}"}})
    desk = place.desk()
    assert desk.standing(desk.entry("a")) is Standing.NEW
    assert desk.fault(desk.entry("a"), "") is not None

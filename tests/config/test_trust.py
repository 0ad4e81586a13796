"""Trust is for one entry as it stands, proven by the decision log; holds outlive the file."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import OAuthSpec, ServerSpec
from kage.config.seen import changes, seen, variables, warnings, written_hash
from kage.config.trust import TrustBook
from kage.core.trust import Change, Identity, Standing
from kage.permissions.decisions.log import DecisionLog, verify

REPO = "/home/me/shop"
TEAM = Identity(name="team", origin=REPO, entry_hash="a" * 64, seen={"command": "run it"})
OTHER = dataclasses.replace(TEAM, entry_hash="b" * 64, seen={"command": "run more"})
OWN = ServerSpec(name="own", command="x", args=("1",))


class Desk:
    """A book on disk; each ``book()`` is another kage."""

    def __init__(self, base: Path) -> None:
        self.path = base / "data" / "trust.toml"
        self.decisions = base / "data" / "decisions"
        self.said: list[str] = []

    def book(self) -> TrustBook:
        return TrustBook(self.path, log=DecisionLog(self.decisions), on_notice=self.said.append)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def of(spec: ServerSpec) -> Identity:
    return Identity(name=spec.name, origin=spec.origin, entry_hash=written_hash(spec))


def test_nothing_is_trusted_until_a_person_says_so_and_only_as_it_stands(desk: Desk) -> None:
    book = desk.book()
    assert book.standing(TEAM) is Standing.NEW
    assert book.trust(TEAM)
    for kage in (book, desk.book()):
        assert kage.standing(TEAM) is Standing.TRUSTED
        assert kage.standing(OTHER) is Standing.CHANGED
        assert kage.before(OTHER) == {"command": "run it"}
        moved = dataclasses.replace(TEAM, origin="/home/me/moved")
        assert kage.standing(moved) is Standing.NEW
        assert kage.standing(dataclasses.replace(TEAM, name="twin")) is Standing.NEW
    assert desk.said == [] and verify(desk.decisions) == []
    assert desk.path.stat().st_mode & 0o077 == 0


def test_trust_in_a_changed_entry_replaces_the_older_one(desk: Desk) -> None:
    book = desk.book()
    book.trust(TEAM)
    book.trust(OTHER)
    again = desk.book()
    assert again.standing(OTHER) is Standing.TRUSTED
    assert again.standing(TEAM) is Standing.CHANGED
    assert len(again.trusted()) == 1


def test_what_a_person_does_not_want_is_not_asked_again_in_any_form(desk: Desk) -> None:
    book = desk.book()
    book.trust(TEAM)
    book.never(TEAM)
    for kage in (book, desk.book()):
        assert kage.standing(TEAM) is kage.standing(OTHER) is Standing.NEVER
        assert kage.refused("team", REPO)
    assert book.trust(TEAM)  # a change of mind
    assert desk.book().standing(TEAM) is Standing.TRUSTED


def test_revoked_trust_does_not_come_back_with_an_old_file(desk: Desk) -> None:
    book = desk.book()
    book.trust(TEAM)
    kept = desk.path.read_bytes()
    assert book.revoke("team", REPO)
    assert not book.revoke("team", REPO)
    assert desk.book().standing(TEAM) is Standing.NEW
    desk.path.write_bytes(kept)
    assert desk.book().standing(TEAM) is Standing.NEW
    assert "no decision of yours made it" in desk.said[-1]


@pytest.mark.parametrize("field", ["hash", "origin", "name", "decision", "seen"])
def test_an_edited_record_counts_for_nothing(desk: Desk, field: str) -> None:
    desk.book().trust(TEAM)
    text = desk.path.read_text()
    old = {"seen": "run it"}.get(field) or tomllib.loads(text)["entry"][0][field]
    new = OTHER.entry_hash if field == "hash" else "other"
    desk.path.write_text(text.replace(old, new))
    book = desk.book()
    assert book.trusted() == ()
    assert book.standing(TEAM) is not Standing.TRUSTED
    assert book.standing(OTHER) is not Standing.TRUSTED
    assert len(desk.said) == 1


def test_a_record_somebody_else_wrote_is_dropped_and_said_once(desk: Desk) -> None:
    desk.path.parent.mkdir(parents=True)
    desk.path.write_text(
        f'version = 1\n[[entry]]\nname = "team"\norigin = "{REPO}"\nhash = "{"a" * 64}"\n'
        'decision = "d1"\n'
    )
    book = desk.book()
    assert book.standing(TEAM) is Standing.NEW
    assert book.standing(TEAM) is Standing.NEW
    assert len(desk.said) == 1 and "team: no decision of yours" in desk.said[0]


@pytest.mark.parametrize(
    "spoiled", ["no toml [", "version = 7\n", "entry = 3\n", "[[entry]]\nname = 1\n", "\0", ""]
)
def test_a_spoiled_file_trusts_nothing_and_is_kept_beside(desk: Desk, spoiled: str) -> None:
    desk.path.parent.mkdir(parents=True)
    desk.path.write_text(spoiled)
    book = desk.book()
    assert book.standing(TEAM) is Standing.NEW
    assert desk.said
    assert book.trust(TEAM)
    assert desk.book().standing(TEAM) is Standing.TRUSTED
    assert desk.path.with_name("trust.toml.bak").read_text() == spoiled


def test_two_kages_keep_what_the_other_wrote_and_see_it(desk: Desk) -> None:
    one, other = desk.book(), desk.book()
    assert one.standing(TEAM) is other.standing(TEAM) is Standing.NEW
    twin = dataclasses.replace(TEAM, name="twin")
    one.trust(TEAM)
    other.trust(twin)
    for kage in (one, other, desk.book()):
        assert kage.standing(TEAM) is kage.standing(twin) is Standing.TRUSTED


def test_without_a_log_nothing_is_kept_but_the_answer_counts_here(desk: Desk) -> None:
    desk.decisions.parent.mkdir(parents=True)
    desk.decisions.write_text("in the way")
    book = desk.book()
    assert not book.trust(TEAM)
    assert book.standing(TEAM) is Standing.TRUSTED
    assert any("counts for this session" in text for text in desk.said)
    assert desk.book().standing(TEAM) is not Standing.TRUSTED


def test_names_no_file_can_hold_are_trusted_like_others(desk: Desk) -> None:
    odd = Identity(
        name="team", origin="/odd/\udce9\n'\"", entry_hash="c" * 64, seen={"cwd": "\udce9"}
    )
    desk.book().trust(odd)
    assert desk.book().standing(odd) is Standing.TRUSTED


# -- changes seen while a kage runs


def test_an_entry_added_or_changed_meanwhile_is_held_also_after_a_restart(desk: Desk) -> None:
    book = desk.book()
    book.accept([OWN])
    changed = dataclasses.replace(OWN, args=("2",), env={"TOKEN": "s3cret", "B": "${B}"})
    added = ServerSpec(name="added", url="https://h/mcp")
    held = book.review([changed, added], [OWN])
    assert [record.name for record in held] == ["own", "added"]
    assert "s3cret" not in desk.path.read_text()
    assert book.review([changed, added], [OWN]) == ()  # once
    for kage in (book, desk.book()):
        assert kage.standing(of(changed)) is kage.standing(of(added)) is Standing.HELD
        assert kage.standing(of(OWN)) is Standing.TRUSTED
        assert kage.before(of(changed))["command"] == "x 1"
    assert book.review([OWN]) == ()  # the old form may come back


def test_a_hold_outlives_its_file_and_ends_with_an_answer(desk: Desk) -> None:
    book = desk.book()
    book.accept([])
    book.review([OWN])
    desk.path.unlink()
    assert desk.book().standing(of(OWN)) is Standing.HELD
    desk.path.write_text("version = 1\n")
    fresh = desk.book()
    assert fresh.standing(of(OWN)) is Standing.HELD
    assert fresh.trust(of(OWN))
    assert desk.book().standing(of(OWN)) is Standing.TRUSTED
    assert book.review([OWN]) == ()


@pytest.mark.parametrize("first", [True, False])
def test_what_the_persons_own_verb_wrote_is_not_held(desk: Desk, first: bool) -> None:
    book = desk.book()
    book.accept([])
    if first:
        desk.book().record_change(OWN)
        assert book.review([OWN]) == ()
    else:  # the running kage looked between the write and the record
        assert len(book.review([OWN])) == 1
        desk.book().record_change(OWN)
    assert book.standing(of(OWN)) is desk.book().standing(of(OWN)) is Standing.TRUSTED


def test_what_starts_nothing_new_is_not_held(desk: Desk) -> None:
    book = desk.book()
    book.accept([OWN])
    off = dataclasses.replace(OWN, name="off", disabled=True)
    slower = dataclasses.replace(OWN, timeout=1.0, required=True, place=None)
    theirs = dataclasses.replace(OWN, name="theirs", origin=REPO)
    assert book.review([off, slower, theirs]) == ()
    assert [r.name for r in book.review([dataclasses.replace(off, disabled=False)])] == ["off"]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "b"},
        {"command": "y"},
        {"args": ("2",)},
        {"cwd": "sub"},
        {"env": {"A": "1"}},
        {"env_pass": ("HOME",)},
        {"url": "https://h"},
        {"headers": {"A": "1"}},
        {"headers_command": ("x",)},
        {"transport": "sse"},
        {"auth": "none"},
        {"oauth": OAuthSpec(issuer="https://i")},
        {"pin": "off"},
        {"safety_level": "safe"},
    ],
)
def test_each_part_that_starts_connects_or_guards_is_in_the_digest(change: dict[str, Any]) -> None:
    assert written_hash(dataclasses.replace(OWN, **change)) != written_hash(OWN)


# -- what is shown


def test_everything_that_decides_what_happens_is_seen_as_it_is_written() -> None:
    spec = ServerSpec(
        name="a",
        command="${HOME}/run",
        args=("--flag", "two words", "${A:-x}"),
        env={"TOKEN": "${TOKEN}", "LD_PRELOAD": "evil.so"},
        cwd="sub",
    )
    assert seen(spec, program="/bin/run", folder="/repo/sub") == {
        "transport": "stdio",
        "command": "'${HOME}/run' --flag 'two words' '${A:-x}'",
        "program": "/bin/run",
        "cwd": "/repo/sub",
        "env TOKEN": "${TOKEN}",
        "env LD_PRELOAD": "evil.so",
    }
    assert variables(spec) == ("A", "HOME", "TOKEN")
    assert any("LD_PRELOAD" in text for text in warnings(spec))
    web = ServerSpec(
        name="w", transport="http", url="http://h/${B}", headers={"Authorization": "Bearer ${T}"}
    )
    assert seen(web)["header Authorization"] == "Bearer ${T}"
    assert variables(web) == ("B", "T")
    assert any("not encrypted" in text for text in warnings(web))


def test_a_program_inside_the_project_is_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    spec = ServerSpec(name="a", command="./run", origin=os.path.realpath(tmp_path))
    assert "inside the project" in warnings(spec, program=str(tmp_path / "run"))[0]
    assert warnings(spec, program="/bin/sh") == ()


def test_the_difference_names_each_part_once() -> None:
    found = changes({"a": "1", "b": "2", "gone": "x"}, {"a": "1", "b": "3", "new": "y"})
    assert found == (
        Change(part="b", old="2", new="3"),
        Change(part="new", old="", new="y"),
        Change(part="gone", old="x", new=""),
    )

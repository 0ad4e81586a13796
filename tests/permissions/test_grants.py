"""Grants: bound to what was seen, proven by the log, and never silently lost."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kage.permissions.decisions.log import DecisionLog
from kage.permissions.grants import Grant, Grants
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import parse_rule
from tests.permissions.calls import call, mcp

WS = Path("/ws")


@pytest.fixture
def log(tmp_path):
    return DecisionLog(tmp_path / "decisions")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "grants.toml"


def reading(tool, arguments=None, workspace=WS):
    return Reading.of(call(tool, arguments, workspace=workspace))


def granted(log, rule, about, *, exact=False, decision="d1"):
    """Make a grant the way the gate does: its record first."""
    grant = Grant.of(parse_rule(rule), about, exact=exact, decision=decision)
    log.append(
        "decision",
        {"id": decision, "verdict": "allow", "scope": "always", "grant": grant.identity},
    )
    return grant


def fresh(path, log):
    said: list[str] = []
    return Grants(path, log=log, on_notice=said.append), said


def test_a_saved_grant_counts_in_the_next_kage(path, log):
    about = reading(mcp(), {"path": "a"})
    Grants(path, log=log).save(granted(log, "filesystem__read_file", about))
    grants, said = fresh(path, log)
    found, void = grants.find(reading(mcp(), {"path": "b"}), "s")
    assert found is not None
    assert str(found.rule) == "filesystem__read_file"
    assert (void, said) == ("", [])
    assert found.since
    assert grants.since(mcp()) == found.since[:10]


@pytest.mark.parametrize(
    ("tool", "word"),
    [
        (mcp(pin="pin-2"), "definition"),
        (mcp(entry_hash="entry-2"), "started differently"),
    ],
)
def test_a_grant_is_void_when_what_was_seen_changes(path, log, tool, word):
    Grants(path, log=log).save(granted(log, "filesystem__read_file", reading(mcp())))
    grants, _ = fresh(path, log)
    found, void = grants.find(reading(tool), "s")
    assert found is None
    assert word in void
    assert grants.since(tool) == ""


@pytest.mark.parametrize("tool", [mcp("github"), mcp(origin="/repo"), mcp(original="write_file")])
def test_a_grant_says_nothing_about_another_tool_or_server(path, log, tool):
    Grants(path, log=log).save(granted(log, "filesystem__read_file", reading(mcp())))
    grants, _ = fresh(path, log)
    assert grants.find(reading(tool), "s") == (None, "")


def test_a_grant_for_exact_arguments_covers_no_others(path, log):
    about = reading(mcp(), {"path": "a", "n": [1]})
    grants = Grants(path, log=log)
    grants.save(granted(log, "filesystem__read_file(n=[1],path=a)", about, exact=True))
    assert grants.find(reading(mcp(), {"n": [1], "path": "a"}), "s")[0] is not None
    for other in (
        {"path": "a"},
        {"path": "a", "n": [1], "force": True},
        {"path": "a", "n": [1.0]},
        {"path": "b", "n": [1]},
    ):
        assert grants.find(reading(mcp(), other), "s")[0] is None


def test_a_shell_line_grants_itself_and_nothing_that_contains_it(path, log):
    grants = Grants(path, log=log)
    about = reading("bash", {"command": "make test && ls"})
    grants.save(granted(log, "bash(make test && ls)", about, exact=True))
    assert grants.find(reading("bash", {"command": "make test && ls"}), "s")[0] is not None
    assert grants.find(reading("bash", {"command": "make test && ls", "timeout": 5}), "s")[0]
    for line in ("make test", "ls", "make test && ls; rm x", "cd evil && make test && ls"):
        assert grants.find(reading("bash", {"command": line}), "s")[0] is None


def test_a_shell_line_and_a_path_are_granted_for_one_workspace(path, log):
    grants = Grants(path, log=log)
    grants.save(granted(log, "write(docs/*)", reading("write", {"path": "docs/a"})))
    assert grants.find(reading("write", {"path": "docs/b"}), "s")[0] is not None
    elsewhere = reading("write", {"path": "docs/b"}, workspace=Path("/other"))
    assert grants.find(elsewhere, "s")[0] is None


def test_a_session_grant_ends_with_its_session(path, log):
    grants = Grants(path, log=log)
    grants.add(granted(log, "filesystem__read_file", reading(mcp())), "s1")
    assert grants.find(reading(mcp()), "s1")[0] is not None
    assert grants.find(reading(mcp()), "s2")[0] is None
    assert not path.exists()


def test_a_grant_nobody_gave_is_dropped_with_a_notice(path, log):
    grants = Grants(path, log=log)
    grants.save(granted(log, "filesystem__read_file", reading(mcp())))
    forged = Grant.of(parse_rule("bash"), reading("bash"), exact=False, decision="d9")
    grants.save(forged)
    again, said = fresh(path, log)
    assert [str(grant.rule) for grant in again.saved] == ["filesystem__read_file"]
    assert "no decision of yours" in said[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rule", "filesystem__*"),
        ("pin", "pin-2"),
        ("entry_hash", "entry-2"),
        ("server", "github"),
        ("origin", "/repo"),
        ("exact", "00"),
        ("decision", "d2"),
    ],
)
def test_an_edited_grant_is_dropped(path, log, field, value):
    Grants(path, log=log).save(granted(log, "filesystem__read_file", reading(mcp())))
    log.append("decision", {"id": "d2", "verdict": "allow"})
    text = path.read_text()
    data = tomllib.loads(text)["grant"][0]
    old = f'{field} = "{data[field]}"' if field in data else f'since = "{data["since"]}"'
    new = f'{field} = "{value}"' + ("" if field in data else f"\n{old}")
    path.write_text(text.replace(old, new))
    grants, said = fresh(path, log)
    assert grants.saved == ()
    assert said


def test_a_decision_for_one_session_makes_no_saved_grant(path, log):
    grant = Grant.of(parse_rule("bash(ls)"), reading("bash"), exact=False, decision="d1")
    fields = {"id": "d1", "verdict": "allow", "grant": grant.identity}
    log.append("decision", {**fields, "scope": "session"})
    Grants(path, log=log).save(grant)
    assert fresh(path, log)[0].saved == ()


def test_two_kages_keep_each_others_grants(path, log):
    one, other = Grants(path, log=log), Grants(path, log=log)
    one.load()
    other.load()
    one.save(granted(log, "filesystem__read_file", reading(mcp()), decision="d1"))
    other.save(granted(log, "github__search", reading(mcp("github", "search")), decision="d2"))
    names = {str(grant.rule) for grant in fresh(path, log)[0].saved}
    assert names == {"filesystem__read_file", "github__search"}


@pytest.mark.parametrize(
    "spoiled",
    [
        "this is no toml [",
        "version = 2\n",
        "version = 1\ngrant = 3\n",
        'version = 1\n[[grant]]\nrule = "bash("\ndecision = "x"\n',
        'version = 1\n[[grant]]\nrule = "bash"\n',
        'version = 1\n[[grant]]\nrule = "bash"\ndecision = 7\n',
        'version = 1\n[[grant]]\nrule = "bash"\ndecision = "x"\nnew = "y"\n',
        "version = 1\nextra = 1\n",
        "\x00",
    ],
)
def test_a_file_that_cannot_be_read_in_full_is_said_and_kept_beside(path, log, spoiled):
    path.write_text(spoiled)
    grants, said = fresh(path, log)
    assert grants.saved == ()
    assert said
    assert "left out" in said[0]
    grants.save(granted(log, "filesystem__read_file", reading(mcp())))
    assert path.with_name("grants.toml.bak").read_text() == spoiled
    assert len(fresh(path, log)[0].saved) == 1


def test_the_sound_grants_of_a_half_spoiled_file_stay(path, log):
    Grants(path, log=log).save(granted(log, "filesystem__read_file", reading(mcp())))
    path.write_text(path.read_text() + '\n[[grant]]\nrule = "nonsense("\ndecision = "x"\n')
    grants, said = fresh(path, log)
    assert len(grants.saved) == 1
    assert "grant 2" in said[0]


def test_an_earlier_copy_is_never_overwritten(path, log):
    path.write_text("first [")
    Grants(path, log=log).save(granted(log, "a__b", reading(mcp("a", "b"))))
    path.write_text("second [")
    Grants(path, log=log).save(granted(log, "a__b", reading(mcp("a", "b")), decision="d2"))
    assert path.with_name("grants.toml.bak").read_text() == "first ["
    assert path.with_name("grants.toml.bak1").read_text() == "second ["


def test_bytes_that_are_no_text_are_a_spoiled_file(path, log):
    path.write_bytes(b"\xff\xfe")
    grants, said = fresh(path, log)
    assert grants.saved == ()
    assert said


def test_a_place_that_cannot_be_written_is_said(tmp_path, log):
    (tmp_path / "file").write_text("")
    grants, said = fresh(tmp_path / "file" / "grants.toml", log)
    assert not grants.save(granted(log, "a__b", reading(mcp("a", "b"))))
    assert "for this session" in said[-1]


def test_saving_leaves_no_other_files(path, log):
    grants = Grants(path, log=log)
    grants.save(granted(log, "a__b", reading(mcp("a", "b"))))
    grants.save(granted(log, "a__b", reading(mcp("a", "b"))))
    names = {item.name for item in path.parent.iterdir()}
    assert names == {"grants.toml", "grants.toml.lock", "decisions"}
    assert len(tomllib.loads(path.read_text())["grant"]) == 1
    assert path.stat().st_mode & 0o077 == 0

"""The language of ``kage log``: what fits, what is a mistake, and that nothing typed crashes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.errors import UsageError
from kage.permissions.decisions.cases import Case
from kage.permissions.decisions.query import FIELDS, parse_query, stamp

NOW = 1_770_000_000.0  # 2026-02-02T02:40Z


def case(**fields: Any) -> Case:
    ended = {"outcome": fields.pop("outcome")} if "outcome" in fields else None
    given = {"kind": "decision", "time": "2026-02-02T02:00:00.000Z", "verdict": "allow", **fields}
    return Case(fields=given, ended=ended)


ISSUE = case(
    server="github",
    tool="github__list_issues",
    original="list issues",
    who="person",
    rule="github__list_issues(repo=kage)",
    session="s1",
    call="toolu_1",
    id="d1",
    outcome="ok",
    arguments={"repo": "kage", "text": "über rm -rf"},
)
LINE = case(tool="bash", server="", verdict="deny", who="rule", rule="bash(rm *)", id="d2")


@pytest.mark.parametrize(
    ("query", "issue", "line"),
    [
        ("", True, True),
        ("server=github", True, False),
        ("server!=github", False, True),
        ("server=git*", True, False),
        ("server~HUB", True, False),
        ("tool=github__list_issues", True, False),
        ('tool="github__list issues"', True, False),  # as it is on the wire
        ("verdict=denied", False, True),
        ("verdict=DENY", False, True),
        ("verdict!=deny", True, False),
        ("who=person outcome=ok", True, False),
        ("outcome!=ok", False, True),
        ("outcome=none", False, False),
        ("rule=bash(rm *)", False, True),
        ("rule=github__*", True, False),
        ("call=toolu_1", True, False),
        ("call=d1", True, False),
        ("session=s1 server=github", True, False),
        ("session=s1 tool=bash", False, False),
        ('text~"rm -rf"', True, False),
        ("text~ÜBER", True, False),
        ("über", True, False),
        ("'rm -rf'", True, False),
        ("since=1d", True, True),
        ("since=10m", False, False),
        ("until=2026-02-01", False, False),
        ("since=2026-02-01T00:00+00:00 until=2026-02-03", True, True),
        ("until=30m", True, True),
    ],
)
def test_a_query_says_what_fits(query: str, issue: bool, line: bool) -> None:
    for words in ([query], query.split() if '"' not in query and "(" not in query else [query]):
        if "'" in query and len(words) > 1:
            continue
        found = parse_query(words, now=NOW)
        assert (found.fits(ISSUE), found.fits(LINE)) == (issue, line), found


def test_an_allowed_call_nobody_heard_of_again_is_found() -> None:
    assert parse_query(["outcome=none"]).fits(case())
    assert not parse_query(["outcome=none"]).fits(case(outcome="ok"))


def test_days_are_those_of_this_machine() -> None:
    today = datetime.fromtimestamp(NOW).astimezone().replace(hour=0, minute=0, second=0)
    assert parse_query(["since=today"], now=NOW).since == stamp(today)
    query = parse_query(["since=2026-02-01 until=2026-02-01"], now=NOW)
    day = datetime.fromisoformat("2026-02-01").astimezone()
    assert query.since == stamp(day)
    assert query.until == stamp(datetime.fromisoformat("2026-02-02").astimezone())


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("srver=github", "Did you mean server?"),
        ("verdict=denyed", "Did you mean deny?"),
        ("who=persn", "Did you mean person?"),
        ("outcome=oky", "Did you mean ok?"),
        ("since=soon", "Write since=7d"),
        ("since=99999999999w", "Write since=7d"),
        ("since~7d", "since takes ="),
        ("until!=7d", "until takes ="),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(query: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_query([query])
    assert hint in str(error.value)


@given(
    st.lists(st.text(max_size=30) | st.sampled_from([f"{name}=" for name in FIELDS]), max_size=4)
)
def test_whatever_is_typed_is_a_query_or_a_mistake(words: list[str]) -> None:
    try:
        query = parse_query(words)
    except UsageError:
        return
    query.fits(ISSUE)
    query.fits(Case(fields={"n": 1}))


def test_what_was_done_to_an_entry_is_asked_for_by_its_act() -> None:
    trusted = Case(fields={"kind": "trust", "act": "trusted", "who": "person"})
    assert parse_query(["act=trusted who=person"]).fits(trusted)
    assert not parse_query(["verdict=allow"]).fits(trusted)

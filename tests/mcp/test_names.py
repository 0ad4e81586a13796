"""Exposed names: legal, different, stable, and found from what a person types."""

from __future__ import annotations

import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from kage.config.schema import SERVER_NAME
from kage.mcp.names import (
    EXPOSED,
    LIMIT,
    canonical_spelling,
    did_you_mean,
    exposed_name,
    exposed_names,
    nearest,
    owners,
    why_named,
)

parts = st.text(alphabet="abZ09.-", min_size=1, max_size=6)
servers = st.lists(parts, min_size=1, max_size=3).map("_".join).filter(SERVER_NAME.fullmatch)
originals = st.text(min_size=1, max_size=220)


def test_a_legal_name_stays_as_it_is() -> None:
    assert exposed_name("filesystem", "read_file") == "filesystem__read_file"
    assert exposed_name("a", "b__c") == "a__b__c"


def test_an_illegal_character_becomes_an_underscore() -> None:
    assert exposed_name("my.server", "with/slash dot.") == "my_server__with_slash_dot_"


def test_an_overlong_name_is_cut_and_ends_in_eight_digits_of_server_and_original() -> None:
    original = "x" * 200
    name = exposed_name("names", original)
    digest = hashlib.sha256(b"names\0" + original.encode()).hexdigest()
    assert len(name) == LIMIT
    assert name == f"names__{'x' * 48}_{digest[:8]}"


def test_names_that_meet_are_told_apart_and_the_legal_one_keeps_its_spelling() -> None:
    names = exposed_names("s", ["a.b", "a_b", "a b"])
    assert names["a_b"] == "s__a_b"
    assert len(set(names.values())) == 3
    assert names["a.b"].startswith("s__a_b_")


def test_servers_whose_names_become_the_same_prefix_are_told_apart() -> None:
    both = ["a.b", "a_b"]
    dotted = exposed_names("a.b", ["c"], servers=both)["c"]
    plain = exposed_names("a_b", ["c"], servers=both)["c"]
    assert plain == "a_b__c"
    assert dotted != plain


def test_a_server_that_forges_a_suffix_still_gets_different_names() -> None:
    digest = hashlib.sha256(b"s\0a.b").hexdigest()[:8]
    names = exposed_names("s", ["a.b", "a_b", f"a_b_{digest}"])
    assert len(set(names.values())) == 3


@given(servers, st.sets(originals, min_size=1, max_size=8))
def test_every_name_is_legal_and_no_two_are_the_same(server: str, names: set[str]) -> None:
    given_names = exposed_names(server, names)
    assert given_names.keys() == names
    assert all(EXPOSED.fullmatch(name) for name in given_names.values())
    assert len(set(given_names.values())) == len(names)


@given(servers, st.lists(originals, min_size=1, max_size=8, unique=True), st.randoms())
def test_names_do_not_depend_on_the_order(
    server: str, names: list[str], order: random.Random
) -> None:
    shuffled = list(names)
    order.shuffle(shuffled)
    assert exposed_names(server, names) == exposed_names(server, shuffled)


@given(st.sets(servers, min_size=2, max_size=5), st.sets(originals, min_size=1, max_size=4))
def test_names_of_different_servers_never_meet(all_servers: set[str], names: set[str]) -> None:
    seen = [
        name
        for server in all_servers
        for name in exposed_names(server, names, servers=all_servers).values()
    ]
    assert len(set(seen)) == len(seen)


def test_other_spellings_of_a_tool_name_become_the_one() -> None:
    known = ["github", "my.server"]
    for typed in ("github__get_file", "mcp__github__get_file", "mcp:github:get_file"):
        assert canonical_spelling(typed, known) == "github__get_file"
    assert canonical_spelling("mcp__github__*", known) == "github__*"
    assert canonical_spelling("mcp:my.server:a.b", known) == "my_server__a_b"


def test_a_spelling_that_names_no_server_stays() -> None:
    assert canonical_spelling("mcp__other__tool", ["github"]) == "mcp__other__tool"
    assert canonical_spelling("mcp__tool", ["mcp"]) == "mcp__tool"
    assert canonical_spelling("bash", ["github"]) == "bash"


@given(servers, st.text(alphabet="abcXYZ019_-", min_size=1, max_size=20))
def test_both_long_forms_find_the_exposed_name(server: str, tool: str) -> None:
    name = exposed_name(server, tool)
    assert canonical_spelling(f"mcp__{server}__{tool}", [server]) == name
    assert canonical_spelling(f"mcp:{server}:{tool}", [server]) == name


def test_an_unknown_name_is_answered_with_the_nearest_or_with_all() -> None:
    assert nearest("Githb", ["github", "files"]) == "github"
    assert nearest("zzz", ["github"]) == ""
    assert "github" in did_you_mean("githb", ["github", "files"])
    assert "files, github" in did_you_mean("qqqq", ["github", "files"])
    assert did_you_mean("x", []) == "None is configured"


def test_the_server_a_name_is_about_is_found_in_any_spelling() -> None:
    known = ("git", "git.hub", "git_hub")
    for text in ("git__log", "mcp__git__log", "mcp:git:log", "git/log"):
        assert owners(text, known) == (("git", "log"),)
    assert owners("git_hub__log", known) == (("git.hub", "log"), ("git_hub", "log"))
    assert owners("git.hub__a__b", known) == (("git.hub", "a__b"),)
    assert owners("mcp:git.hub", known) == (("git.hub", ""),)
    assert owners("gitlog", known) == owners("", known) == ()


@given(server=servers, names=st.lists(originals, min_size=1, max_size=4), others=st.lists(servers))
def test_a_name_that_was_changed_has_a_reason_and_is_found_again(
    server: str, names: list[str], others: list[str]
) -> None:
    for original, exposed in exposed_names(server, names, servers=others).items():
        why = why_named(server, original, names, servers=others)
        assert bool(why) == (exposed != f"{server}__{original}")
        assert any(owner == server for owner, _ in owners(exposed, [server]))


def test_each_reason_for_another_name_is_told() -> None:
    assert why_named("git", "log", ["log"]) == ""
    assert "other characters become _" in why_named("git", "a b", ["a b"])
    assert "the server is my_srv there" in why_named("my.srv", "log", ["log"])
    assert "the server a_b has the same prefix" in why_named("a.b", "x", ["x"], servers=("a_b",))
    assert "64" in why_named("git", "x" * 99, ["x" * 99])
    assert "another tool" in why_named("git", "a b", ["a b", "a_b"])

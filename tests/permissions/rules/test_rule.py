"""A rule has one spelling, and is about the tools it names and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.errors import UsageError
from kage.permissions.rules import glob
from kage.permissions.rules.rule import Rule, parse_rule
from tests.permissions.calls import builtin, mcp

PATTERN = st.text(min_size=1).filter(lambda text: text.strip() not in ("", "*", "**"))


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("bash(git status *)", "bash(git status *)"),
        ("  bash(git status *)  ", "bash(git status *)"),
        ("bash(*)", "bash"),
        ("bash(echo (a) b)", "bash(echo (a) b)"),
        ("filesystem__read_file", "filesystem__read_file"),
        ("filesystem__*", "filesystem__*"),
        ("filesystem__read_file(path=docs/*)", "filesystem__read_file(path=docs/*)"),
        ("web_fetch(https://docs.*)", "web_fetch(https://docs.*)"),
        ("mcp__filesystem__read_file", "filesystem__read_file"),
        ("mcp:filesystem:read_file", "filesystem__read_file"),
        ("mcp:filesystem:*", "filesystem__*"),
        ("mcp__filesystem__read_file(path=a)", "filesystem__read_file(path=a)"),
        ("my.server__tool", "my.server__tool"),
        ("mcp__read", "mcp__read"),
    ],
)
def test_every_spelling_becomes_the_one(written, printed):
    assert str(parse_rule(written)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "()",
        "bash()",
        "bash( )",
        "bash(",
        "bash)",
        "bash(a",
        "bash a)",
        "ba sh",
        "*",
        "*(x)",
        "b*sh",
        "*__read_file",
        "file*__read_file",
        "__read",
        "server__",
        "mcp:server",
        "mcp::tool",
        "a b__c",
        "filesystem__read_file(docs/*)",
        "filesystem__read_file(=x)",
        "filesystem__read_file(a=1,b)",
        "read(a)(b",
        "-x__y",
    ],
)
def test_a_malformed_rule_is_an_error_that_shows_how_to_write_one(text):
    with pytest.raises(UsageError) as caught:
        parse_rule(text)
    assert caught.value.why
    assert "bash(git status *)" in caught.value.fix


@given(PATTERN)
def test_a_printed_rule_reads_back_as_itself(pattern):
    rule = Rule(tool="bash", pattern=pattern)
    assert parse_rule(str(rule)) == rule


@given(st.text())
def test_no_text_makes_the_parser_fail_in_another_way(text):
    try:
        rule = parse_rule(text)
    except UsageError:
        return
    assert parse_rule(str(rule)) == rule


@given(st.text(), st.text())
def test_an_escaped_text_matches_itself_and_nothing_else(text, other):
    pattern = glob.escape(text)
    assert glob.matches(pattern, text)
    assert glob.matches(pattern, other) == (text == other)
    assert glob.literal(pattern) == text


@given(st.text("ab*?\\", max_size=12), st.text("ab*?\\", max_size=12))
def test_globs_agree_with_the_plain_definition(pattern, text):
    def fits(items, rest):
        if not items:
            return not rest
        first, *more = items
        if isinstance(first, str):
            return rest[:1] == first and fits(more, rest[1:])
        if first.value == "?":
            return bool(rest) and fits(more, rest[1:])
        return any(fits(more, rest[index:]) for index in range(len(rest) + 1))

    assert glob.matches(pattern, text) == fits(glob.tokens(pattern), text)


def test_a_wildcard_crosses_slashes_and_line_ends():
    assert glob.matches("a*z", "a/b\nc z")
    assert glob.matches("a?z", "a\nz")


def test_many_stars_do_not_make_matching_slow():
    assert not glob.matches("*a" * 50 + "b", "a" * 50_000)


def test_a_rule_for_bash_never_matches_a_servers_bash():
    rule = parse_rule("bash")
    assert rule.names(builtin("bash"), (), strictly=False)
    assert not rule.names(mcp("x", "bash"), (), strictly=False)
    assert not rule.names(mcp("x", "bash", exposed="bash"), (), strictly=False)


def test_a_servers_rule_never_matches_a_tool_of_kage():
    assert not parse_rule("x__*").names(builtin("bash"), (), strictly=False)


@pytest.mark.parametrize("strictly", [True, False])
def test_a_wildcard_never_crosses_servers(strictly):
    rule = parse_rule("a__*")
    assert rule.names(mcp("a", "b__c"), ("a", "a_b"), strictly=strictly)
    for other in ("ab", "a_b", "b", "a.b"):
        assert not rule.names(mcp(other, "c"), ("a", other), strictly=strictly)


def test_three_spellings_of_a_rule_are_about_the_same_tool():
    tool = mcp("filesystem", "read_file")
    for text in (
        "filesystem__read_file",
        "mcp__filesystem__read_file",
        "mcp:filesystem:read_file",
    ):
        assert parse_rule(text).names(tool, ("filesystem",), strictly=True)


def test_the_name_on_the_wire_is_another_way_to_write_a_tool():
    tool = mcp("fs", "read.file", exposed="fs__read_file")
    assert parse_rule("fs__read_file").names(tool, ("fs",), strictly=True)
    assert parse_rule("fs__read.file").names(tool, ("fs",), strictly=True)


def test_of_two_tools_with_one_spelling_a_rule_allows_the_one_the_model_sees():
    taken = mcp("fs", "read.file", exposed="fs__read_file")
    renamed = mcp("fs", "read_file", exposed="fs__read_file_0badcafe")
    rule = parse_rule("fs__read_file")
    assert rule.names(taken, ("fs",), strictly=True)
    assert not rule.names(renamed, ("fs",), strictly=True)
    assert rule.names(renamed, ("fs",), strictly=False)  # deny and ask: both


def test_a_prefix_two_servers_share_allows_only_the_server_it_spells():
    dotted = mcp("a.b", "x", exposed="a_b__x_12345678")
    plain = mcp("a_b", "x", exposed="a_b__x")
    rule = parse_rule("a_b__*")
    assert rule.names(plain, ("a.b", "a_b"), strictly=True)
    assert not rule.names(dotted, ("a.b", "a_b"), strictly=True)
    assert rule.names(dotted, ("a.b", "a_b"), strictly=False)
    assert rule.names(dotted, ("a.b",), strictly=True)


def test_a_server_that_is_itself_called_mcp_can_be_named():
    rule = parse_rule("mcp__a__b", servers=("mcp",))
    assert rule.names(mcp("mcp", "a__b"), ("mcp",), strictly=True)
    with pytest.raises(UsageError, match="malformed"):
        parse_rule("mcp__a__b", servers=("mcp", "a"))


def test_an_error_about_a_rule_shows_no_control_characters():
    with pytest.raises(UsageError) as caught:
        parse_rule("\x1b[2J bash")
    assert "\x1b" not in str(caught.value)

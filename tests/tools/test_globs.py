"""Globs: what they match, and that no pattern takes for ever."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.core.errors import ToolError
from kage.tools.globs import MAX_ALTERNATIVES, expand, matcher


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/b/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/b/c/a.py", True),
        ("**/test_*", "x/test_a", True),
        ("**", "x/y", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("./a.txt", "a.txt", True),
        ("*.{ts,tsx}", "x/a.tsx", True),
        ("*.{ts,t{x,y}}", "a.ty", True),
        ("{a}", "{a}", True),
        ("?.txt", "a.txt", True),
        ("?.txt", "ab.txt", False),
        ("[abc].txt", "b.txt", True),
        ("[!abc].txt", "b.txt", False),
        ("[a-c]x", "bx", True),
        ("[]x]", "]", True),
        ("[", "[", True),
        (r"\*", "*", True),
        (r"\*", "a", False),
        ("*a*b*", "xxaxxbxx", True),
        ("*ab*ab", "abab", True),
        ("a*", "a\nb", True),
        ("é*", "été", True),
        ("**/a/**/b/*.c", "x/a/y/a/b/z.c", True),
    ],
)
def test_what_a_pattern_matches(pattern: str, path: str, expected: bool) -> None:
    assert matcher(pattern)(path) is expected


@given(
    st.text(alphabet="ab*", max_size=8),
    st.text(alphabet="ab", max_size=10),
)
def test_stars_match_as_the_definition_says(pattern: str, name: str) -> None:
    def by_definition(pattern: str, name: str) -> bool:
        if not pattern:
            return not name
        if pattern[0] == "*":
            return any(by_definition(pattern[1:], name[n:]) for n in range(len(name) + 1))
        return bool(name) and name[0] == pattern[0] and by_definition(pattern[1:], name[1:])

    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    assert matcher(pattern)(name) == by_definition(pattern, name)


@given(
    st.lists(st.sampled_from(["**", "a", "b", "*"]), min_size=2, max_size=6),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=7),
)
def test_double_stars_match_as_the_definition_says(pattern: list[str], path: list[str]) -> None:
    def by_definition(pattern: list[str], path: list[str]) -> bool:
        if not pattern:
            return not path
        if pattern[0] == "**":
            if len(pattern) == 1:
                return bool(path)
            return any(by_definition(pattern[1:], path[n:]) for n in range(len(path) + 1))
        return bool(path) and pattern[0] in ("*", path[0]) and by_definition(pattern[1:], path[1:])

    single = [
        name for n, name in enumerate(pattern) if name != "**" or pattern[n - 1 : n] != ["**"]
    ]
    if len(single) < 2:
        return
    assert matcher("/".join(single))("/".join(path)) == by_definition(single, path)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 200 + "b", "**/a/" * 60 + "b", "?*" * 150 + "z", "{*a,*aa}" * 5 + "b"],
)
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(ToolError):
        assert not matcher(pattern)("a/" * 1000 + "a" * 250)
    assert time.monotonic() - started < 5  # a careless matcher takes longer than the universe


def test_a_brace_bomb_is_refused() -> None:
    for pattern in (
        "{a,b}" * 30,
        "{" * 400 + "a,b" + "}" * 400 + "{c,d}" * 9,
        "{" + "," * 500 + "}",
    ):
        try:
            assert len(expand(pattern)) <= MAX_ALTERNATIVES
        except ToolError as error:
            assert "braces" in str(error)
    with pytest.raises(ToolError, match="longer"):
        expand("x" * 5000)

"""A call of a tool that is not there is answered with the names it may have meant, quickly."""

from __future__ import annotations

import difflib

import pytest

from kage.agent.missing import no_such_tool

MANY = [f"server_{number % 20}__get_the_thing_{number}_now" for number in range(10_000)]


@pytest.mark.parametrize(
    ("name", "tools", "meant"),
    [
        ("red", ["read", "write"], "Did you mean read?"),
        ("create_issue", ["github__create_issue", "git__create"], "Did you mean github__create_"),
        ("get_the_thing_250_now", MANY, "Did you mean server_10__get_the_thing_250_now?"),
        ("server_3__get_thing_23", MANY, "server_3__get_the_thing_23_now"),
        ("quantum", ["read", "write"], "so nothing was called."),
        ("x" * 5_000, MANY, "…' now"),
    ],
)
def test_near_names_are_told(name: str, tools: list[str], meant: str) -> None:
    told = no_such_tool(name, tools)
    assert meant in told and len(told) < 400


def test_only_some_of_very_many_names_are_compared_letter_by_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    real = difflib.get_close_matches

    def counting(name: str, tools: list[str], n: int) -> list[str]:
        compared.append(len(tools))
        return real(name, tools, n=n)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    no_such_tool("server_3__get_thing_23", MANY)
    assert compared and compared[0] <= 300

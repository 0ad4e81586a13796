"""Secrets in plain text are found, hidden and replaced; everything else is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.secrets import HIDDEN, everywhere, hidden, literals, shown, without


@pytest.mark.parametrize(
    ("entry", "where", "value", "variable"),
    [
        ({"env": {"GH_TOKEN": "abc"}}, "env.GH_TOKEN", "abc", "GH_TOKEN"),
        ({"env": {"X": "sk-" + "a1" * 12}}, "env.X", "sk-" + "a1" * 12, "X"),
        ({"headers": {"Authorization": "Bearer abc"}}, "headers.Authorization", "abc", "S_1_TOKEN"),
        ({"headers": {"X-Api-Key": "abc"}}, "headers.X-Api-Key", "abc", "S_1_TOKEN"),
        ({"args": ["--token", "abc"]}, "args.1", "abc", "TOKEN"),
        ({"args": ["--api-key=abc"]}, "args.0", "abc", "API_KEY"),
        ({"headers_command": ["x", "--password", "abc"]}, "headers_command.2", "abc", "PASSWORD"),
        (
            {"oauth": {"idp_id_token_command": ["x", "--secret=abc"]}},
            "oauth.idp_id_token_command.1",
            "abc",
            "SECRET",
        ),
        ({"url": "https://me:abc@h/"}, "url", "abc", "S_1_PASSWORD"),
        ({"url": "https://h/?a=b&api_key=abc"}, "url", "abc", "S_1_TOKEN"),
        ({"oauth": {"client_secret": "abc"}}, "oauth.client_secret", "abc", "S_1_CLIENT_SECRET"),
    ],
)
def test_a_secret_is_found_wherever_it_stands(
    entry: dict[str, Any], where: str, value: str, variable: str
) -> None:
    (found,) = literals("s.1", entry)
    assert (found.where, found.value, found.variable) == (where, value, variable)
    assert f"${{{variable}}}" in str(without(entry, [found]))
    assert value not in str(shown(entry, [found]))
    assert not literals("s.1", without(entry, [found]))


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"TOKEN": "${TOKEN}", "MODE": "fast", "TOKEN_FILE": ""}},
        {"headers": {"Authorization": "Bearer ${T}", "X-Team": "core"}},
        {"args": ["--token", "--verbose", "--max-tokens-file", "-y"], "url": "https://h/?q=1"},
        {"args": "x", "env": [], "headers": None, "url": 5, "oauth": "x"},
        {"url": "https://[h"},
    ],
)
def test_what_is_no_secret_is_left_alone(entry: dict[str, Any]) -> None:
    assert not literals("s", entry)


def test_only_the_secret_itself_is_hidden_in_a_text() -> None:
    data = {
        "mcp": {"servers": {"a": {"headers": {"Authorization": "Bearer example"}}, "b": 1}},
        "providers": {"p": {"headers": {"X-Token": 'q"uote'}}},
    }
    text = 'url = "http://ha.example.invalid"\nAuthorization = "Bearer example"\nX = "q\\"uote"\n'
    assert hidden(text, everywhere(data)) == (
        f'url = "http://ha.example.invalid"\nAuthorization = "Bearer {HIDDEN}"\nX = "{HIDDEN}"\n'
    )


@given(
    st.dictionaries(
        st.sampled_from(["env", "headers", "args", "url", "oauth", "headers_command"]),
        st.one_of(
            st.text(),
            st.lists(st.one_of(st.text(), st.sampled_from(["--token", "--key=x", "-y"]))),
            st.dictionaries(st.sampled_from(["A", "TOKEN", "client_secret"]), st.text()),
        ),
    )
)
def test_any_entry_can_be_looked_at(entry: dict[str, Any]) -> None:
    found = literals("s", entry)
    safe = without(entry, found)
    assert set(safe) == set(entry)
    for one in found:
        assert one.value

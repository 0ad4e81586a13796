"""What loosens the rules is found piece by piece, and taking the pieces back closes them again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.loosening import Loosening, held_back, loosenings
from kage.config.schema import PermissionSpec, ToolRules
from kage.config.trust import TrustBook
from kage.permissions.decisions.log import DecisionLog

BASH = ToolRules(tool="bash", deny=("rm *",), ask=("git *",), allow=("ls",), default="ask")
BASE = PermissionSpec(mode="default", servers={"s": "deny"}, tools=(BASH,))

_words = st.sampled_from([None, "ask", "allow", "deny"])
_patterns = st.lists(st.sampled_from(["a", "b", "c *"]), max_size=3, unique=True).map(tuple)
_rules = st.builds(
    ToolRules,
    tool=st.sampled_from(["bash", "s__*"]),
    deny=_patterns,
    ask=_patterns,
    allow=_patterns,
    default=_words,
)
_specs = st.builds(
    PermissionSpec,
    mode=st.sampled_from(["default", "ask", "deny"]),
    servers=st.dictionaries(
        st.sampled_from(["s", "t"]), st.sampled_from(["ask", "allow", "deny"]), max_size=2
    ),
    tools=st.lists(_rules, max_size=3).map(tuple),
)


@pytest.mark.parametrize(
    ("tools", "servers", "mode", "words"),
    [
        ({"allow": ("ls", "rm -rf /")}, {}, "default", "bash: allow 'rm -rf /' is new"),
        ({"deny": ()}, {}, "default", "bash: deny 'rm *' is gone"),
        ({"ask": ()}, {}, "default", "bash: ask 'git *' is gone"),
        ({"default": "allow"}, {}, "default", "bash: default is allow instead of ask"),
        ({"default": None}, {}, "default", "bash: default is gone instead of ask"),
        ({}, {"s": "ask"}, "default", "mcp.s is ask instead of deny"),
        ({}, {"s": "deny", "t": "allow"}, "default", "mcp.t is allow instead of nothing"),
    ],
)
def test_each_way_to_loosen_is_one_piece(
    tools: dict[str, Any], servers: dict[str, Any], mode: Any, words: str
) -> None:
    rule = ToolRules(**{**_fields(BASH), **tools})
    new = PermissionSpec(mode=mode, servers=servers or {"s": "deny"}, tools=(rule,))
    (piece,) = loosenings(BASE, new)
    assert piece.words == words
    assert Loosening.decode(piece.encode()) == piece
    assert loosenings(BASE, held_back(new, [piece])) == ()


def test_a_stricter_file_is_no_loosening_and_a_looser_mode_is() -> None:
    strict = PermissionSpec(mode="ask", servers={"s": "deny", "t": "deny"}, tools=(BASH, BASH))
    assert loosenings(BASE, strict) == ()
    (piece,) = loosenings(strict, PermissionSpec(servers=strict.servers, tools=(BASH,)))
    assert piece.words == "mode is default instead of ask"


@given(_specs, _specs)
def test_what_is_held_back_is_never_looser_than_before(
    old: PermissionSpec, new: PermissionSpec
) -> None:
    pieces = loosenings(old, new)
    assert loosenings(old, held_back(new, pieces)) == ()
    assert loosenings(old, old) == ()


@given(st.text())
def test_nonsense_is_no_piece(text: str) -> None:
    assert Loosening.decode(text) is None or text.startswith("{")


def test_held_rules_outlive_their_file_until_they_are_allowed(tmp_path: Any) -> None:
    path, log = tmp_path / "trust.toml", DecisionLog(tmp_path / "decisions")
    book = TrustBook(path, log=log)
    pieces = loosenings(BASE, PermissionSpec())
    assert book.review_rules(pieces) == pieces
    assert book.review_rules(pieces) == ()
    path.unlink()
    again = TrustBook(path, log=log)
    assert set(again.held_rules()) == set(pieces)
    again.allow_rules(pieces[:1])
    again.allow_rules(pieces[1:], verb=True)
    assert TrustBook(path, log=log).held_rules() == ()
    assert TrustBook(path, log=log).review_rules(pieces) == ()


def test_a_held_rule_nobody_can_read_asks_for_everything(tmp_path: Any) -> None:
    log = DecisionLog(tmp_path / "decisions")
    long = Loosening(clause="allow", tool="bash", value="x" * 5000)  # longer than the log keeps
    TrustBook(tmp_path / "a.toml", log=log).review_rules([long])
    (piece,) = TrustBook(tmp_path / "b.toml", log=log).held_rules()
    assert held_back(PermissionSpec(), [piece]).mode == "ask"


def _fields(rule: ToolRules) -> dict[str, Any]:
    return {name: getattr(rule, name) for name in ("tool", "deny", "ask", "allow", "default")}

"""The order of the gate, row by row, and rules that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kage.config.schema import PermissionSpec, Place, ToolRules
from kage.core.errors import UsageError
from kage.core.gate import Mode, Who
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rules import Case, Hook, Rules
from tests.permissions.calls import call, mcp, rules

GIT = {"command": "git push origin"}


def judge(found: Rules, tool, arguments=None, *, workspace=Path("/ws"), by_hand=False, **case):
    request = call(tool, arguments, workspace=workspace, by_hand=by_hand)
    return found.judge(Reading.of(request), Case(**case))


def bash(**lists) -> ToolRules:
    return ToolRules(tool="bash", **lists)


# Each row: what stands in the way of what. The first wins over the second.
EVERYTHING_LATER = {"ask": ("git *",), "allow": ("git *",), "default": "allow"}


def test_a_hold_comes_before_a_deny():
    verdict = judge(rules(bash(deny=("git *",))), "bash", GIT, held="the definition changed")
    assert (verdict.wish, verdict.who) == ("deny", Who.HOLD)
    assert "changed" in verdict.reason


@pytest.mark.parametrize("mode", list(Mode))
def test_a_deny_pattern_comes_before_the_mode_and_all_else(mode):
    found = rules(bash(deny=("git *",), **EVERYTHING_LATER), allow=("bash",))
    verdict = judge(found, "bash", GIT, mode=mode, grant="bash", guarded=Path("/x"))
    assert (verdict.wish, verdict.who, verdict.rule) == ("deny", Who.RULE, "bash(git *)")


@pytest.mark.parametrize("mode", list(Mode))
def test_a_server_wide_deny_comes_before_the_mode_and_all_else(mode):
    found = rules(
        ToolRules(tool="filesystem__*", ask=("*",), allow=("*",), default="allow"),
        servers={"filesystem": "deny"},
        allow=("filesystem__*",),
    )
    verdict = judge(found, mcp(), mode=mode, grant="filesystem__read_file")
    assert (verdict.wish, verdict.who, verdict.rule) == ("deny", Who.RULE, "filesystem__*")


def test_a_hooks_deny_comes_before_the_mode():
    hook = Hook(wish="deny", plugin="careful", why="not today")
    verdict = judge(rules(), "bash", GIT, hook=hook, mode=Mode.ASK, grant="bash")
    assert (verdict.wish, verdict.who) == ("deny", Who.HOOK)
    assert "not today" in verdict.reason


def test_in_ask_mode_every_call_asks_whatever_was_granted_or_allowed():
    found = rules(bash(allow=("*",), default="allow"), allow=("bash",))
    for tool, arguments in (("bash", GIT), ("read", {"path": "a"}), (mcp(), {})):
        verdict = judge(found, tool, arguments, mode=Mode.ASK, grant="bash")
        assert (verdict.wish, verdict.who, verdict.every_time) == ("ask", Who.MODE, True)


def test_in_deny_mode_only_what_is_free_by_itself_runs():
    found = rules(bash(allow=("*",), default="allow"), allow=("bash", "filesystem__*"))
    assert judge(found, "read", {"path": "a"}, mode=Mode.DENY).wish == "allow"
    for tool, arguments in (
        ("bash", GIT),
        ("read", {"path": "/etc/passwd"}),
        ("write", {"path": "a"}),
        (mcp(), {}),
    ):
        verdict = judge(found, tool, arguments, mode=Mode.DENY, grant="x")
        assert (verdict.wish, verdict.who) == ("deny", Who.MODE)


def test_in_deny_mode_what_must_be_asked_is_refused():
    found = rules(ToolRules(tool="read", ask=("a",)))
    assert judge(found, "read", {"path": "a"}, mode=Mode.DENY).wish == "deny"
    assert judge(found, "read", {"path": "b"}, mode=Mode.DENY).wish == "allow"
    stricter = rules(ToolRules(tool="read", default="ask"))
    assert judge(stricter, "read", {"path": "b"}, mode=Mode.DENY).wish == "deny"


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ASK])
def test_kages_own_files_ask_in_red_before_any_grant_or_rule(mode):
    found = rules(bash(allow=("*",), default="allow"), allow=("bash",))
    verdict = judge(found, "bash", GIT, guarded=Path("/cfg"), grant="bash", mode=mode)
    assert (verdict.wish, verdict.red, verdict.every_time) == ("ask", True, True)
    assert "/cfg" in verdict.reason


def test_an_ask_pattern_comes_before_a_grant():
    found = rules(bash(ask=("git push *",), allow=("git *",)), allow=("bash",))
    verdict = judge(found, "bash", GIT, grant="bash(git push origin)")
    assert (verdict.wish, verdict.who, verdict.every_time) == ("ask", Who.RULE, True)
    assert verdict.rule == "bash(git push *)"
    assert judge(found, "bash", {"command": "git status"}).wish == "allow"


def test_a_hooks_ask_comes_before_a_grant():
    hook = Hook(wish="ask", plugin="careful")
    verdict = judge(rules(allow=("bash",)), "bash", GIT, hook=hook, grant="bash")
    assert (verdict.wish, verdict.who, verdict.every_time) == ("ask", Who.HOOK, True)


def test_a_grant_comes_before_an_allow_pattern_and_the_defaults():
    found = rules(bash(allow=("git *",), default="deny"))
    verdict = judge(found, "bash", GIT, grant="bash(git push origin)")
    assert (verdict.wish, verdict.who) == ("allow", Who.GRANT)
    assert verdict.rule == "bash(git push origin)"


def test_a_server_wide_ask_never_outranks_a_grant_or_an_allow_pattern():
    found = rules(
        ToolRules(tool="filesystem__read_file", allow=("path=docs/*",)),
        servers={"filesystem": "ask"},
    )
    assert judge(found, mcp(), {}, grant="filesystem__read_file").who is Who.GRANT
    assert judge(found, mcp(), {"path": "docs/a"}).wish == "allow"
    verdict = judge(found, mcp(), {"path": "src/a"})
    assert (verdict.wish, verdict.who, verdict.every_time) == ("ask", Who.DEFAULT, False)


@pytest.mark.parametrize(
    "found",
    [
        rules(ToolRules(tool="filesystem__read_file", allow=("*",), default="deny")),
        rules(ToolRules(tool="filesystem__*", allow=("path=a",), default="deny")),
        rules(ToolRules(tool="filesystem__*", default="deny"), allow=("filesystem__read_file",)),
        rules(ToolRules(tool="filesystem__*", default="deny"), servers={"filesystem": "allow"}),
    ],
)
def test_every_kind_of_allow_comes_before_the_default(found):
    verdict = judge(found, mcp(), {"path": "a"})
    assert (verdict.wish, verdict.who) == ("allow", Who.RULE)


def test_the_tools_default_comes_before_the_servers_and_the_risks():
    found = rules(
        ToolRules(tool="filesystem__read_file", default="allow"),
        ToolRules(tool="filesystem__*", default="deny"),
        servers={"filesystem": "ask"},
    )
    assert judge(found, mcp(), {}).wish == "allow"
    assert judge(found, mcp("filesystem", "other"), {}).wish == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments", "wish"),
    [
        ("read", {"path": "a"}, "allow"),
        ("ls", {}, "allow"),
        ("grep", {"path": "src"}, "allow"),
        ("find", {"path": "."}, "allow"),
        ("read", {"path": "/etc/passwd"}, "ask"),
        ("read", {"path": "../x"}, "ask"),
        ("ls", {"path": "~"}, "ask"),
        ("write", {"path": "a"}, "ask"),
        ("edit", {"path": "a"}, "ask"),
        ("bash", GIT, "ask"),
        ("web_fetch", {"url": "https://x.org"}, "ask"),
        (mcp(), {}, "ask"),
    ],
)
def test_the_defaults_by_risk(tool, arguments, wish):
    verdict = judge(rules(), tool, arguments)
    assert (verdict.wish, verdict.who) == (wish, Who.DEFAULT)


def test_reading_through_a_link_out_of_the_workspace_asks(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to("/etc")
    assert judge(rules(), "read", {"path": "link/passwd"}, workspace=tmp_path / "ws").wish == "ask"


def test_a_default_of_allow_for_a_file_tool_ends_at_the_workspace():
    found = rules(ToolRules(tool="write", default="allow"))
    assert judge(found, "write", {"path": "a"}).wish == "allow"
    assert judge(found, "write", {"path": "/tmp/a"}).wish == "ask"


def test_the_most_specific_rule_is_the_one_named():
    found = rules(bash(deny=("*push*", "git push *", "git *")))
    assert judge(found, "bash", GIT).rule == "bash(git push *)"
    found = rules(
        ToolRules(tool="filesystem__*", deny=("*",)),
        ToolRules(tool="filesystem__read_*", deny=("*",)),
        ToolRules(tool="filesystem__read_file", deny=("*",)),
    )
    assert judge(found, mcp(), {}).rule == "filesystem__read_file"


def test_a_call_by_hand_is_its_own_answer_but_deny_and_holds_stand():
    assert judge(rules(), "bash", GIT, by_hand=True).who is Who.PERSON
    for mode in Mode:
        assert judge(rules(), "bash", GIT, by_hand=True, mode=mode).wish == "allow"
    assert judge(rules(bash(deny=("git *",))), "bash", GIT, by_hand=True).wish == "deny"
    assert judge(rules(bash(default="deny")), "bash", GIT, by_hand=True).wish == "deny"
    assert judge(rules(bash(ask=("git *",))), "bash", GIT, by_hand=True).wish == "allow"
    assert judge(rules(), "bash", GIT, by_hand=True, held="held").wish == "deny"
    denied = rules(servers={"filesystem": "deny"})
    assert judge(denied, mcp(), {}, by_hand=True).wish == "deny"


# -- who may loosen ------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["/repo", "plugin:revive"])
def test_what_the_persons_file_allows_is_about_their_own_server_of_that_name(origin):
    found = rules(
        ToolRules(tool="filesystem__*", allow=("*",), default="allow"),
        servers={"filesystem": "allow"},
    )
    assert judge(found, mcp(), {}).wish == "allow"
    assert judge(found, mcp(origin=origin), {}).wish == "ask"
    denied = rules(servers={"filesystem": "deny"})
    assert judge(denied, mcp(origin=origin), {}).wish == "deny"
    assert judge(rules(allow=("filesystem__*",)), mcp(origin=origin), {}).wish == "allow"


def test_three_spellings_of_a_table_give_the_same_verdict():
    for tool in ("filesystem__read_file", "mcp__filesystem__read_file", "mcp:filesystem:read_file"):
        assert judge(rules(ToolRules(tool=tool, deny=("*",))), mcp(), {}).wish == "deny"


def test_an_allow_rule_counts_only_for_the_tool_its_spelling_means():
    renamed = mcp("filesystem", "read_file", exposed="filesystem__read_file_0badcafe")
    found = rules(ToolRules(tool="filesystem__read_file", allow=("*",)))
    assert judge(found, renamed, {}).wish == "ask"
    denied = rules(ToolRules(tool="filesystem__read_file", deny=("*",)))
    assert judge(denied, renamed, {}).wish == "deny"


def test_a_rule_for_bash_says_nothing_about_a_servers_bash():
    found = rules(bash(allow=("*",)), known=("x",))
    assert judge(found, mcp("x", "bash"), {"command": "ls"}).wish == "ask"


# -- rules that cannot be read -------------------------------------------------------------------


def test_a_malformed_pattern_that_denies_denies_the_whole_tool():
    place = Place(file=Path("/c/config.toml"), line=7)
    found = rules(ToolRules(tool="filesystem__read_file", deny=("docs/*",), place=place))
    assert judge(found, mcp(), {"path": "a"}).wish == "deny"
    assert "config.toml:7" in str(found.faults[0])


def test_a_malformed_pattern_that_asks_asks_for_the_whole_tool():
    found = rules(ToolRules(tool="filesystem__read_file", ask=("x",)), allow=("filesystem__*",))
    assert judge(found, mcp(), {}).wish == "ask"
    assert found.faults


def test_a_malformed_pattern_that_allows_allows_nothing():
    found = rules(ToolRules(tool="filesystem__read_file", allow=("x", "")))
    assert judge(found, mcp(), {}).wish == "ask"
    assert len(found.faults) == 2


@pytest.mark.parametrize("tool", ["*__read", "bsh", "*", "a b", "", "mcp:x"])
def test_a_table_whose_tool_cannot_be_read_makes_every_call_ask(tool):
    found = rules(ToolRules(tool=tool, deny=("*",)), allow=("bash",))
    verdict = judge(found, "bash", GIT, grant="bash")
    assert (verdict.wish, verdict.every_time) == ("ask", True)
    assert found.faults
    loose = rules(ToolRules(tool=tool, allow=("*",)), allow=("bash",))
    assert judge(loose, "bash", GIT).wish == "allow"
    assert loose.faults


def test_a_misspelled_tool_is_told_with_the_nearest_one():
    found = rules(ToolRules(tool="bsh", deny=("rm *",)))
    assert "bash" in str(found.faults[0])


def test_a_malformed_allow_of_the_command_line_is_an_error():
    with pytest.raises(UsageError, match="malformed"):
        rules(allow=("bash(",))


def test_a_rule_about_a_server_nobody_configured_is_noted():
    found = rules(ToolRules(tool="nosuch__*", deny=("*",)), servers={"other": "allow"})
    assert any("nosuch" in note for note in found.notes)
    assert any("other" in note for note in found.notes)
    assert not found.faults


def test_friction_is_only_what_denies_or_asks():
    found = rules(
        bash(deny=("rm *",), ask=("git push *",), allow=("ls",), default="deny"), mode="ask"
    )
    where = {"workspace": Path("/ws")}
    assert found.friction(call("bash", {"command": "ls"}, **where)) is None
    assert found.friction(call("bash", {"command": "make"}, **where)) is None
    denied = found.friction(call("bash", {"command": "sudo rm x"}, **where))
    asked = found.friction(call("bash", GIT, **where))
    assert denied is not None
    assert denied.wish == "deny"
    assert asked is not None
    assert asked.wish == "ask"


def test_an_allowed_tool_that_cannot_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no tool bsh"):
        Rules.from_settings(PermissionSpec(), allow=["bsh(git status *)"])


def test_an_allowed_server_nobody_configured_is_noted() -> None:
    rules = Rules.from_settings(PermissionSpec(), allow=["ecko__echo"], servers=["echo"])
    assert any("ecko" in note for note in rules.notes)

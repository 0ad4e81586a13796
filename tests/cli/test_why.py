"""``kage mcp why``: each reason for a tool to be missing, hidden, asking or renamed is named."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from kage.core.ids import new_id
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.grants import Grant, Grants
from kage.permissions.rules.rule import parse_rule
from tests.cli.conftest import Kage
from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, running, server
from tests.stubs import stub
from tests.waiting import wait_for

LONG = "x" * 200
RULES = """
[permissions.mcp]
shut = "deny"
open = "allow"
[permissions.tools.echo__add]
deny = ["a=1"]
ask = ["b=2"]
allow = ["*"]
[permissions.tools.echo__fail]
deny = ["*"]
[permissions.tools.echo__where]
default = "allow"
[permissions.tools.bash]
deny = ["rm *"]
"""


def why(kage: Kage, name: str) -> dict[str, Any]:
    done = kage("mcp", "why", name, "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    text = kage("mcp", "why", name)
    assert found["why"] in text.out or found["verdict"] in ("ask", "allow", "hidden", "configured")
    return found


def said(found: dict[str, Any], step: str) -> str:
    return " | ".join(one["text"] for one in found["steps"] if one["name"] == step)


def place(house: House, line: str) -> str:
    """Give file and number of a line of the settings."""
    return f"{house.config}:{house.config.read_text().splitlines().index(line) + 1}"


def test_what_the_gate_would_say_is_told_with_its_rule(house: House, kage: Kage) -> None:
    house.write(server("echo", "echo"), server("shut", "echo"), server("open", "echo"), RULES)
    assert kage("mcp", "tools").code == 0
    asks = why(kage, "echo__echo")
    assert (asks["verdict"], asks["tool"]) == ("ask", "echo__echo")
    assert "every MCP tool asks" in said(asks, "gate")
    assert f"{house.config}:1 (user)" in said(asks, "declared")
    assert "no kage runs here" in said(asks, "state")
    ruled = why(kage, "echo__add")
    where = place(house, "[permissions.tools.echo__add]")
    assert ruled["verdict"] == "allow"
    assert f"the rule echo__add ({where}) allows it" in said(ruled, "gate")
    assert f"echo__add(a=1) ({where}) refuses calls like that" in said(ruled, "gate")
    assert f"echo__add(b=2) ({where}) asks for calls like that" in said(ruled, "gate")
    denied = why(kage, "echo__fail")
    assert (denied["verdict"], "the rule echo__fail" in denied["why"]) == ("deny", True)
    assert "is allow" in said(why(kage, "echo__where"), "gate")
    assert "[permissions.mcp] says deny" in why(kage, "shut__echo")["why"]
    assert "[permissions.mcp] says allow" in said(why(kage, "open__echo"), "gate")
    own = why(kage, "bash")
    assert (own["verdict"], own["server"]) == ("ask", "")
    assert "running commands asks" in said(own, "gate") and "bash(rm *)" in said(own, "gate")
    assert why(kage, "read")["verdict"] == "allow"


def test_what_leaves_a_tool_out_is_named(house: House, kage: Kage) -> None:
    entries = (
        server("echo", "echo"),
        server("few", "echo", disabled_tools='["e*", "sleep"]', max_tools="2"),
        server("only", "echo", enabled_tools='["add"]', start='"lazy"'),
        server("odd", "badschema"),
        server("off", "echo", disabled="true"),
        server("gone", "echo", command='"/nonexistent/server"'),
    )
    house.write(*entries)
    unseen = why(kage, "echo__echo")
    assert (unseen["verdict"], "has not been up yet" in unseen["why"]) == ("missing", True)
    assert unseen["fix"].endswith("kage mcp why echo__echo --start")
    assert kage("mcp", "tools").code != 0  # one of them cannot start
    where = place(house, 'disabled_tools = ["e*", "sleep"]')
    assert why(kage, "few__sleep")["why"] == f"disabled_tools has 'sleep' ({where})"
    assert "disabled_tools has 'e*'" in why(kage, "few__env")["why"]
    assert "max_tools allows 2 of 5" in why(kage, "few__long")["why"]
    assert "enabled_tools has only 'add'" in why(kage, "only__echo")["why"]
    assert "no sound tool: it has no inputSchema" in why(kage, "odd__no_schema")["why"]
    nothing = why(kage, "echo__ech")
    assert "none is 'ech'" in nothing["why"] and nothing["fix"] == "Did you mean echo?"
    off = why(kage, "off__echo")
    assert "is disabled" in off["why"] and off["fix"] == "kage mcp enable off"
    down = kage("mcp", "why", "gone__echo", "--start", "--json").json
    assert (down["verdict"], "does not exist" in down["why"]) == ("missing", True)
    odd = why(kage, "odd")
    assert (odd["verdict"], "no_schema: it has" in said(odd, "listed")) == ("configured", True)
    assert why(kage, "off")["verdict"] == "down"
    house.write(*entries, '[mcp]\ndefer_tools = "always"')
    named = why(kage, "echo__echo")
    assert named["verdict"] == "hidden"
    assert "defer_tools is always" in said(named, "deferral")
    house.write(*entries, "[mcp]\nenabled = false")
    assert "enabled = false" in why(kage, "echo__echo")["why"]


def test_why_a_tool_has_its_name(house: House, kage: Kage) -> None:
    house.write(server('"my.srv"', "names"), server("my_srv", "echo"))
    assert kage("mcp", "tools").code == 0
    for spelling in ("mcp__my_srv__echo", "mcp:my_srv:echo", "my_srv/echo"):
        found = why(kage, spelling)
        assert (found["tool"], found["server"]) == ("my_srv__echo", "my_srv")
        assert f"{spelling} means my_srv__echo" in said(found, "name")
    spaced = why(kage, "my.srv__with space")
    assert spaced["tool"].startswith("my_srv__with_space_")
    assert "so the server is my_srv there" in said(spaced, "name")
    assert "the server my_srv has the same prefix" in said(spaced, "name")
    cut = why(kage, f"my.srv__{LONG}")
    assert f"it would have {len(LONG) + 8} characters, and models take 64" in said(cut, "name")
    assert why(kage, cut["tool"])["server"] == "my.srv"
    shown = kage("mcp", "why", "my.srv__\x1b[31mred")
    assert (shown.code, "\x1b" in shown.out) == (0, False)


def test_names_nothing_has_are_met_with_the_nearest(house: House, kage: Kage) -> None:
    house.write(server("echo", "echo"))
    for name, near in (("ech__echo", "echo"), ("bsh", "bash"), ("mcp__ecko__add", "echo")):
        unknown = kage("mcp", "why", name)
        assert (unknown.code, f"Did you mean {near}" in unknown.err) == (2, True), unknown.err
    assert kage("mcp", "why", "\x1b]0;x\x07__y").code == 2
    house.write('[mcp.servers.echo]\ncomand = "x"')
    broken = kage("mcp", "why", "echo__echo")
    assert (broken.code, "has a mistake in its entry" in broken.err) == (2, True)
    assert f"{house.config}:2" in broken.err


def test_a_tool_that_changed_is_held_and_says_since_when(house: House, kage: Kage) -> None:
    state = house.home / "state"
    state.write_text("")
    house.write(server("bank", "rugpull", "--state", state))
    assert house.kage("-p", "hello", "--model", "offline").code == 0
    assert why(kage, "bank__pay")["verdict"] == "ask"
    state.write_text("word\n")
    found = kage("mcp", "why", "bank__pay", "--start", "--json").json
    assert (found["verdict"], "its definition changed since" in found["why"]) == ("held", True)
    assert found["fix"].endswith("kage mcp pins diff bank/pay")


def team(house: House, *options: object) -> None:
    command, *args = stub("echo", *options)
    entry = {"command": command, "args": args}
    path = house.workspace / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"team": entry}}))


def test_trust_and_layers_are_part_of_the_chain(house: House, kage: Kage) -> None:
    team(house)
    new = why(kage, "team__echo")
    assert "team is not trusted yet" in new["why"] and "kage mcp trust team" in new["fix"]
    assert f"{house.workspace / '.mcp.json'}:1 (project)" in said(new, "declared")
    found = kage("mcp", "trust", "team", "--show", "--json").json["hash"]
    kage("mcp", "trust", "team", "--yes", "--hash", found)
    assert said(why(kage, "team__echo"), "trust") == "you trusted this entry"
    team(house, "--version", "2")
    assert "has changed since you trusted it" in why(kage, "team__echo")["why"]
    kage("mcp", "trust", "team", "--never")
    assert "you do not want it" in why(kage, "team__echo")["why"]
    house.write(server("team", "echo"))
    mine = why(kage, "team")
    assert f"{house.config}:1 (user)" in said(mine, "declared")
    assert "would replace it, and is not trusted" in said(mine, "layers")
    house.write(server("team", "echo", locked="true"))
    assert "does not count: this one is locked" in said(why(kage, "team"), "layers")


def test_a_permission_the_person_gave_is_named_or_why_it_is_void(house: House, kage: Kage) -> None:
    house.write(server("echo", "echo"))
    pins = {tool["raw"]: tool["pin"] for tool in kage("mcp", "tools", "--json").json}
    spec = _spec(house, pins)
    _grant(house, spec, rule="echo__echo")
    _grant(house, {**spec, "pin": "another"}, rule="echo__add")
    _grant(house, spec, rule="echo__where(text=a)")
    given = why(kage, "echo__echo")
    assert (given["verdict"], "you granted echo__echo" in said(given, "gate")) == ("allow", True)
    void = why(kage, "echo__add")
    assert void["verdict"] == "ask"
    assert "no longer counts: echo__add has changed its definition" in said(void, "gate")
    some = why(kage, "echo__where")
    assert (some["verdict"], "you allowed echo__where(text=a)" in said(some, "gate")) == (
        "ask",
        True,
    )


def _spec(house: House, pins: dict[str, str]) -> dict[str, str]:
    """Give what grants for the server echo are bound to, from what is known of it."""
    (file,) = (house.home / "cache" / "kage" / "manifests").glob("echo-*.json")
    entry = json.loads(file.read_text())["entry"]
    return {"server": "echo", "origin": "user", "entry_hash": entry, **pins}


def _grant(house: House, bound: dict[str, str], *, rule: str) -> None:
    """Save a permission as the gate does."""
    original = rule.partition("__")[2].partition("(")[0]
    grant = Grant(
        rule=parse_rule(rule),
        server=bound["server"],
        origin=bound["origin"],
        entry_hash=bound["entry_hash"],
        pin=bound.get("pin", bound[original]),
        decision=new_id("d"),
        since="2026-02-02T02:00:00Z",
    )
    log = DecisionLog(house.data / "decisions")
    made = {"id": grant.decision, "verdict": "allow", "scope": "always", "grant": grant.identity}
    grants = Grants(house.data / "grants.toml", log=log)
    assert log.append("decision", made) and grants.save(grant)


def test_the_kage_that_runs_here_says_how_the_server_is(house: House) -> None:
    house.write(
        server("good", "echo"),
        server("bad", "exits", restart="{ enabled = false }"),
        server("shy", "echo", start='"lazy"'),
    )
    with ScriptedModel([call("good__sleep", seconds=60)], then=say("fine")) as model:
        house.use(model)
        with running(house, "-p", "go", "--allow", "good__sleep") as process:
            wait_for(
                lambda: any(record["kind"] == "decision" for record in house.records()),
                deadline=50,
                what="the call runs",
            )
            up = house.kage("mcp", "why", "good__echo", "--json").json
            assert said(up, "state") == f"in the kage with pid {process.pid} it is connected"
            assert up["verdict"] == "ask"
            down = house.kage("mcp", "why", "bad__tool", "--json").json
            assert f"in the kage with pid {process.pid} it is failed" in down["why"]
            house.write(server("other", "echo"))
            new = house.kage("mcp", "why", "other", "--json").json
            assert "does not have this server" in said(new, "state")
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(50)


def test_why_starts_nothing_unless_told_and_never_for_the_agent(house: House, kage: Kage) -> None:
    mark = house.home / "mark"
    house.write(server("echo", "echo", "--record", mark))
    assert why(kage, "echo__echo")["verdict"] == "missing"
    assert not mark.exists()
    refused = house.kage("mcp", "why", "echo", "--start", environ={"KAGE_AGENT": "1"})
    assert (refused.code, mark.exists()) == (2, False)
    assert kage("mcp", "why", "echo__echo", "--start", "--json").json["verdict"] == "ask"
    assert mark.exists()

"""What calls did to files, told and taken back, by kage itself."""

from __future__ import annotations

import json

from kage.permissions.claims import MARK
from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, server
from tests.tui.terminal import Terminal
from tests.waiting import wait_for

OFF = "tok-of-a-server-that-is-off"
ARMED = "▮▮▮▮"  # an answer counts from now on


def _session(house: House) -> str:
    (folder,) = (house.data / "sessions").iterdir()
    return folder.name


def test_calls_of_a_run_are_told_and_undone_from_the_shell(house: House) -> None:
    off = f'{{ SOME_TOKEN = "{OFF}" }}'
    house.write(server("srv", "scribbler"), server("off", "echo", enabled="false", env=off))
    first = house.workspace / "first.txt"
    first.write_bytes(b"first\r\n\xff")
    first.chmod(0o640)
    turns = [
        call("srv__scribble", write={"first.txt": "by the server\n", "new.txt": "new\n"}),
        call("write", path="made/note.txt", content="note\n"),
        call("srv__look"),
        call("bash", command=f"printf '%s\\n' {OFF} > token.txt; cat token.txt"),
        say("done"),
    ]
    with ScriptedModel(turns) as model:
        house.use(model)
        allow = ("--allow", "srv__*", "--allow", "write", "--allow", "bash")
        ended = house.kage("-p", "go", "--json", *allow)
    assert ended.code == 0, ended.err
    results = [
        event["message"]
        for event in ended.of("message_appended")
        if event["message"]["kind"] == "tool_message"
    ]
    effects = {message["name"]: message["effect"] for message in results}
    assert [file["path"] for file in effects["srv__scribble"]["files"]] == ["first.txt", "new.txt"]
    assert effects["srv__scribble"]["claim_broken"] is True
    assert effects["write"]["total"] == 1
    assert effects["srv__look"] is None
    marks = json.loads((house.data / "claims.json").read_text())
    assert [(mark["server"], mark["tool"]) for mark in marks] == [("srv", "scribble")]
    assert OFF not in ended.out
    session = _session(house)
    shown = house.kage("session", "undo", session, "--dry-run").out
    assert "-[redacted:SOME_TOKEN]" in shown
    assert OFF not in shown
    assert house.kage("session", "undo", session).code == 0
    assert not (house.workspace / "token.txt").exists()
    listed = house.kage("session", "undo", session, "--list", "--json").json
    assert [item["files"] for item in listed] == [1, 1, 1, 2]
    scribble = listed[3]["id"]
    plan = house.kage("session", "undo", session, "--call", scribble, "--dry-run", "--json").json
    assert (plan["possible"], len(plan["files"])) == (True, 2)
    assert first.read_bytes() == b"by the server\n"
    agent = house.kage("session", "undo", session, environ={"KAGE_AGENT": "1"})
    assert agent.code == 2
    assert house.kage("session", "undo", session).code == 0
    assert not (house.workspace / "made").exists()
    done = house.kage("session", "undo", session, "--call", scribble, "--json").json
    assert len(done["files"]) == 2
    assert first.read_bytes() == b"first\r\n\xff"
    assert first.stat().st_mode & 0o777 == 0o640
    assert not (house.workspace / "new.txt").exists()
    again = house.kage("session", "undo", session, "--call", scribble)
    assert again.code == 1
    assert "it is undone" in again.err
    shown = house.kage("session", "show", session).out
    assert "I undid the file changes of this call: srv__scribble" in shown
    assert list((house.data / "sessions" / session / "undo").glob("snapshot*")) == []


def _again(terminal: Terminal) -> str:
    terminal.read()
    return terminal.text if "claims read-only" in terminal.text else "↶ undone"  # a sheet is open


def test_a_call_is_undone_on_the_screen_and_its_tool_marked(house: House) -> None:
    house.write(server("srv", "scribbler"))
    page = house.workspace / "page.txt"
    page.write_text("before\n")
    turns = [
        call("srv__scribble", write={"page.txt": "after\n"}),
        say("the page is written"),
        call("srv__scribble", write={"page.txt": "again\n"}),
        say("and again"),
    ]
    with ScriptedModel(turns) as model:
        house.use(model)
        with house.terminal(columns=80, lines=24) as terminal:
            terminal.until("srv 2")
            terminal.send("go\r")
            terminal.until(ARMED)
            terminal.send("y")
            terminal.until("claims read-only, but changed 1 file: page.txt")
            terminal.until("the page is written")
            terminal.send("/undo\r")
            terminal.until("enter takes it")
            terminal.send("\r")
            terminal.until("from now to before")
            terminal.until("-after")
            terminal.send("\r")
            terminal.until("↶ undone")
            assert page.read_text() == "before\n"
            terminal.send("/undo\r")
            terminal.until("undo of srv__scribble")
            terminal.send("\r")
            terminal.until("+after")
            terminal.send("\r")
            wait_for(lambda: "↶ undone" not in _again(terminal), what="the row says so no more")
            assert page.read_text() == "after\n"
            terminal.send("go on\r")
            terminal.until(MARK)
            terminal.until(ARMED)
            terminal.send("n")
            terminal.until("and again")

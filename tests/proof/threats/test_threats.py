"""SECURITY section 1, row by row: what each threat gets from a real kage, in short.

The whole proof of a row is often elsewhere; each one stands here under its number all the same.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.llm import ScriptedModel, call, say
from tests.processes import linux
from tests.proof.house import Ended, House, running, server
from tests.stubs import stub
from tests.stubs.oauth import OAuthStub

ROWS = 27
SECRET = "c4nary-of-the-threats-xyz"


def test_every_row_has_a_test_of_its_own() -> None:
    tests = re.findall(r"\ndef test_((?:t\d\d_)+)", Path(__file__).read_text())
    rows = {row for name in tests for row in re.findall(r"\d\d", name)}
    assert rows == {f"{number:02}" for number in range(1, ROWS + 1)}


class Seen:
    """One run among a hostile server's tools, and what came of it."""

    house: House
    ended: Ended
    model: ScriptedModel
    results: dict[str, str]
    listed: Ended
    shown: Ended
    contacted: bool


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """Run kage once with a server that tries everything; many rows look at it."""
    home, workspace = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    seen = Seen()
    with (
        pytest.MonkeyPatch.context() as patch,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        listener.setblocking(False)
        patch.setenv("HOME", str(home))
        patch.setenv("HOST_API_KEY", "sk-of-the-host-9876543210")
        for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
        house = seen.house = House(home, workspace)
        link = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        house.write(
            server("p", "poison", "--link", link, "--record", home / "p-seen"),
            server("e", "echo", env=f'{{ TOKEN = "{SECRET}" }}'),
            server("q", "asks", "--record", home / "q-seen"),
        )
        outside = home / "outside.txt"
        outside.write_text("of the home")
        (workspace / "link").symlink_to(outside)
        os.mkfifo(workspace / "pipe")
        calls = {
            "given": call("p__give", text="x"), "shadow": call("p__bash", command="id"),
            "around": call("p__around"), "env": call("e__env"),
            "secret": call("e__echo", text=f"{SECRET} {SECRET.encode().hex()}"),
            "ask": call("q__ask", what="elicit"), "sample": call("q__ask", what="sample"),
            "linked": call("read", path="link"), "climb": call("read", path="../x"),
            "pipe": call("read", path="pipe"), "device": call("read", path="/dev/zero"),
            "proc": call("read", path="/proc/self/environ"),
            **{f"net{n}": call("web_fetch", url=url) for n, url in enumerate((
                link, "http://[::1]:1/", "http://[::ffff:127.0.0.1]:1/", "http://169.254.169.254/",
                "http://0x7f.1/", "http://2130706433/", "file:///etc/passwd"))},
            "own": call("write", path=".mcp.json", content="{}"),
            "frozen": call("e__echo", text="\u202eexact \x1b[0m", deep={"b": 1, "a": [1.0]}),
        }  # fmt: skip
        allowed = ("p__give", "p__around", "e__*", "q__*", "bash", "web_fetch", "write")
        with ScriptedModel([list(calls.values()), say("done")]) as model:
            house.use(model)
            seen.ended = house.kage(
                "-p", "go", "--json", *(word for rule in allowed for word in ("--allow", rule))
            )
            seen.model = model
        messages = [event["message"] for event in seen.ended.of("message_appended")]
        told = {m["call_id"]: json.dumps(m) for m in messages if m["kind"] == "tool_message"}
        seen.results = {name: told[piece.id] for name, piece in calls.items()}  # type: ignore[union-attr]
        seen.listed = house.kage("mcp", "tools", "p")
        seen.shown = house.kage("mcp", "tools", "p", "--json")
        try:
            listener.accept()[0].close()
            seen.contacted = True
        except BlockingIOError:
            seen.contacted = False
        house.empty()
    yield seen


def _outcome(seen: Seen, name: str) -> str:
    return str(json.loads(seen.results[name])["outcome"])


def _declare(house: House, *args: str, **more: Any) -> None:
    entry = {"command": "/bin/sh", "args": list(args), **more}
    (house.workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"team": entry}}))


def test_t01_opening_a_folder_starts_nothing_it_declares(house: House) -> None:
    mark = house.home / "mark"
    _declare(house, "-c", f"touch {mark}", env={"NAME": "value"}, cwd=".")
    ended = house.kage("-p", "hello", "--model", "offline")
    assert ended.lines("team", "not trusted"), ended.err
    shown = house.kage("mcp", "trust", "team")  # nobody is here to be asked: no is the default
    assert shown.code == 2 and not mark.exists()
    for part in ("/bin/sh", f"touch {mark}", "NAME", "cwd"):
        assert part in shown.out, shown.out


def test_t02_an_approved_entry_that_is_swapped_does_not_start(house: House) -> None:
    mark = house.home / "mark"
    command, *args = stub("echo")
    entry = {"command": command, "args": args}
    file = house.workspace / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"team": entry}}))
    found = house.kage("mcp", "trust", "team", "--show", "--json").json["hash"]
    assert house.kage("mcp", "trust", "team", "--yes", "--hash", found).code == 0
    entry["args"] = [*args, "--record", str(mark)]
    file.write_text(json.dumps({"mcpServers": {"team": entry}}))
    assert house.kage("-p", "hello", "--model", "offline").lines("team", "not started")
    shown = house.kage("mcp", "trust", "team", "--show").out
    assert "    - " in shown and "    + " in shown and "--record" in shown
    assert not mark.exists()


def test_t03_a_poisoned_definition_is_shown_whole_cut_for_the_model_and_asked(run: Seen) -> None:
    description = run.model.requests[0].tools["p__give"]["description"]
    assert len(description) < 2_600  # 2 KiB and what kage says of the cut
    assert "[cut" in description
    shown = json.dumps(run.shown.json, ensure_ascii=False)
    assert not re.search("[\x1b\x9b\u202e]", run.listed.out)  # each is shown, none acts
    assert "IMPORTANT" in shown and _outcome(run, "shadow") == "refused"  # no rule: it asks


def test_t04_a_tool_that_changed_after_approval_is_held(house: House) -> None:
    state, record = house.home / "state", house.home / "seen"
    house.write(server("srv", "rugpull", "--state", state, "--record", record))
    turn = call("srv__pay", account="a", amount=1)
    with ScriptedModel([turn, say("done"), turn, say("done")]) as model:
        house.use(model)
        assert house.kage("-p", "go", "--allow", "srv__*").code == 0
        before = record.read_text().count('"tools/call"')
        state.write_text("parameter_text\n")
        ended = house.kage("-p", "go", "--allow", "srv__*")
        assert ended.lines("holds pay"), ended
        assert record.read_text().count('"tools/call"') == before == 1
    shown = house.kage("mcp", "pins", "diff", "srv")
    assert "Mallory" in shown.out, shown


def test_t05_a_rule_for_bash_says_nothing_about_a_servers_bash(run: Seen) -> None:
    assert _outcome(run, "shadow") == "refused"
    assert '"name": "bash"' not in (run.house.home / "p-seen").read_text()


def test_t06_annotations_lower_nothing(house: House) -> None:
    house.write(server("liar", "readonly_liar"))
    (house.workspace / "x").write_text("keep")
    with ScriptedModel([call("liar__look", path="x"), say("done")]) as model:
        house.use(model)
        assert house.kage("-p", "go").code == 4
    assert (house.workspace / "x").exists()


def test_t07_a_result_that_imitates_the_host_stays_a_result(run: Seen) -> None:
    request = json.dumps(run.model.requests[1].body)
    marks = re.findall(r'<untrusted from=\\"[^>]*p[^>]*\\" mark=\\"(\w+)\\">', request)
    assert marks and "0" not in marks
    assert request.count(f'</untrusted mark=\\"{marks[0]}\\">') == 1


def test_t08_no_escape_of_a_server_reaches_a_sink(run: Seen) -> None:
    assert "\x1b" not in run.ended.out + run.ended.err and "\x9b" not in run.ended.out
    shown = run.ended.err + "".join(run.results.values())
    assert "\x07" not in shown
    for file in (run.house.data / "decisions").glob("*.jsonl"):
        assert b"\x1b" not in file.read_bytes()


@pytest.fixture
def screen(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[House, str, bool, int]]:
    """Give the screen of a chat that ran the hostile tool, whether modes are back, and the code."""
    house.write(server("p", "poison", "--link", "x"))
    turns = [
        [call("p__give", text="[bold]x[/] [@click=app.quit]"), call("p__around")],
        say("[/b] done"),
    ]
    with ScriptedModel(turns) as model:
        house.use(model)
        with house.terminal("--allow", "p__*") as terminal:
            terminal.until("p 3")
            terminal.send("go [red]now[/]\r")
            terminal.until("done")
            text = terminal.text
            terminal.send("\x11")
            code = terminal.ended()
            yield (
                house,
                text + terminal.raw.decode(errors="replace"),
                terminal.modes_restored(),
                code,
            )


def test_t09_t10_markup_stays_text_and_the_terminal_is_kages(
    screen: tuple[House, str, bool, int],
) -> None:
    _, text, restored, code = screen
    assert "[red]now[/]" in text and "[/b] done" in text  # shown, not obeyed
    assert "\x1b]0;owned" not in text and "\x1b]52;" not in text
    assert restored and code == 0


@linux
def test_t10_a_server_has_no_terminal(run: Seen) -> None:
    said = run.results["around"]
    assert '\\"terminal\\": false' in said and '\\"stdin\\": false' in said
    assert '\\"leads\\": true' in said


def test_t11_no_variable_of_the_host_reaches_a_server(run: Seen) -> None:
    for name in ("HOST_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        assert name not in run.results["around"] + run.results["env"]


def test_t12_a_secret_is_replaced_wherever_it_goes(run: Seen) -> None:
    forms = (SECRET, SECRET.encode().hex())
    requests = "".join(json.dumps(r.body) for r in run.model.requests[1:])
    for form in forms:
        assert form not in run.results["secret"] + run.ended.err
        assert form not in "".join(re.findall(r"untrusted from=.*?</untrusted", requests))
    assert "[redacted:" in run.results["secret"]


def test_t15_no_address_of_this_machine_or_its_network_is_fetched(run: Seen) -> None:
    for name in (name for name in run.results if name.startswith("net")):
        assert _outcome(run, name) != "ok", run.results[name]
    assert not run.contacted


def test_t17_no_path_leads_out_or_to_what_is_no_file(run: Seen) -> None:
    for name in ("linked", "climb", "pipe", "device", "proc"):
        assert _outcome(run, name) in {"refused", "tool_error"}, run.results[name]
    assert "of the home" not in run.results["linked"]


def test_t22_kages_own_files_ask_whatever_the_rules_say(run: Seen) -> None:
    assert _outcome(run, "own") == "refused"
    assert not (run.house.workspace / ".mcp.json").exists()


def test_t23_what_was_decided_is_what_was_sent(run: Seen) -> None:
    decided = [r for r in run.house.records() if r["kind"] == "decision" and r["tool"] == "e__echo"]
    assert any(r["arguments"].get("deep") == {"a": [1.0], "b": 1} for r in decided)
    assert _outcome(run, "frozen") == "ok"


def test_t24_what_has_no_person_is_not_declared_and_declined(run: Seen) -> None:
    lines = [json.loads(line) for line in (run.house.home / "q-seen").read_text().splitlines()]
    declared = json.dumps([m["params"] for m in lines if "capabilities" in str(m.get("params"))])
    assert "sampling" not in declared
    for name in ("ask", "sample"):
        assert '\\"action\\": \\"accept' not in run.results[name], run.results[name]


def test_t25_neither_links_nor_icons_are_fetched(run: Seen) -> None:
    assert not run.contacted


@linux
def test_t27_only_three_descriptors_reach_a_server(run: Seen) -> None:
    assert '\\"held\\": [0, 1, 2]' in run.results["around"], run.results["around"]


class _Web(BaseHTTPRequestHandler):
    """Sends whoever comes elsewhere, or bursts."""

    def do_POST(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        if self.path == "/go":
            self.send_response(307)
            self.send_header("Location", self.server.elsewhere)  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(BOMB)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(BOMB)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


BOMB = gzip.compress(bytes(96 << 20), 9)


@contextlib.contextmanager
def _web(elsewhere: str = "") -> Iterator[Any]:
    web: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    web.seen, web.elsewhere = [], elsewhere
    web.url = f"http://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield web
    finally:
        web.shutdown()
        thread.join()
        web.server_close()


def test_t14_t16_a_redirect_carries_no_key_and_a_bomb_ends_its_server(house: House) -> None:
    with _web() as other, _web(f"{other.url}/x") as web:
        key = '{ Authorization = "Bearer of-the-first-origin" }'
        house.write(
            server("r", "", url=f'"{web.url}/go"', headers=key),
            server("b", "", url=f'"{web.url}/bomb"', headers=key),
        )
        for name in ("r", "b"):
            assert house.kage("mcp", "test", name).code == 1
        assert "Bearer of-the-first-origin" in web.seen
        assert "Bearer of-the-first-origin" not in other.seen


def test_t13_no_shell_opens_what_metadata_names(house: House) -> None:
    mark = house.home / "mark"
    with OAuthStub() as stub_:
        stub_.metadata = {"authorization_endpoint": f"https://a.example/$(touch${{IFS}}{mark})"}
        house.write(server("far", "", url=f'"{stub_.url}"'))
        house.extra["BROWSER"] = f"touch {mark} %s"
        ended = house.kage("mcp", "login", "far", "--timeout", "5")
    assert ended.code != 0 and "refused" in ended.err, ended
    assert not mark.exists()


def test_t18_no_link_on_the_way_leads_a_write_out(house: House) -> None:
    outside = house.home / "outside"
    outside.mkdir()
    (house.workspace / "way").symlink_to(outside)
    tries = [call("write", path="way/x", content="x"), call("write", path="way/../y", content="x")]
    with ScriptedModel([tries, say("done")]) as model:
        house.use(model)
        house.write('[permissions.tools.write]\nallow = ["*"]\n')
        house.kage("-p", "go")
    assert list(outside.iterdir()) == [] and not (house.home / "y").exists()


@linux
def test_t19_t20_serving_opens_no_port_and_stays_as_narrow_as_it_was_started(house: House) -> None:
    (house.home / "secret.txt").write_text("secret of the home")
    with running(house, "mcp", "serve", "--read-only", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        hello = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "t", "version": "1"}}  # fmt: skip
        bash = {"name": "bash", "arguments": {"command": "touch by-bash"}}
        read = {"name": "read", "arguments": {"path": f"{house.home}/secret.txt"}}
        asked = [
            ("initialize", hello),
            ("tools/list", {}),
            ("tools/call", bash),
            ("tools/call", read),
        ]
        told = []
        for number, (method, params) in enumerate(asked):
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            told.append(json.loads(process.stdout.readline()))
        names = {tool["name"] for tool in told[1]["result"]["tools"]}
        assert names == {"read", "ls", "find", "grep"}
        assert "error" in told[2] or told[2]["result"]["isError"]
        assert "secret of the home" not in json.dumps(told[3])
        assert not _listens(process.pid)
    assert not (house.workspace / "by-bash").exists()


def _listens(pid: int) -> bool:
    held = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            part = line.split()
            if part[3] == "0A" and f"socket:[{part[9]}]" in held:
                return True
    return False


def test_t21_no_plugin_of_a_folder_runs(house: House) -> None:
    mark = house.home / "mark"
    for place in (".kage/plugins/p.lua", ".kage/init.lua", "init.lua", ".kage/lua/p.lua"):
        file = house.workspace / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'os.execute("touch {mark}")')
    assert house.kage("-p", "hello", "--model", "offline").code == 0
    (house.workspace / ".kage" / "config.toml").write_text("[plugins.p]\nenabled = true\n")
    house.kage("-p", "hello", "--model", "offline")
    assert not mark.exists()


def test_t26_values_of_an_entry_meet_no_shell(house: House) -> None:
    mark = house.home / "mark"
    words = [f"$(touch {mark})", f";touch {mark}", f"`touch {mark}`", "${TWICE}"]
    house.extra["TWICE"] = "${HOME}"
    entry = server("srv", "echo", *words)
    bad = '[mcp.servers.bad]\ncommand = "/bin/sh\\ntouch x"\nargs = ["a\\u0000b"]\n'
    house.write(entry)
    shown = house.kage("mcp", "call", "srv__where", "--json")
    assert shown.code == 0 and f"$(touch {mark})" in shown.out, shown
    assert '"${HOME}' in shown.out.replace("\\", "")  # one pass: what a value holds is no variable
    house.write(entry, bad)
    assert house.kage("mcp", "test", "bad").code != 0
    assert not mark.exists() and not (house.workspace / "x").exists()

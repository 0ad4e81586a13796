"""What an outsider tries on ``kage mcp serve``: every line is answered, nothing leaves the root."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.mcp.server.peer import Kept, Peer, Served, text_of
from tests.processes import alive, linux
from tests.waiting import wait_for

CANARY = "canary-4711"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return furnished(tmp_path)


def furnished(place: Path) -> Path:
    """Make a project with one file, and one file outside it."""
    folder = place / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("hello\n")
    (place / "outside").mkdir()
    (place / "outside" / "f").write_text(CANARY)
    return folder


@pytest.fixture
def peer(root: Path) -> Iterator[Peer]:
    with Served(root) as found:
        found.hello()
        yield found


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project for all tests that only add to it."""
    return furnished(tmp_path_factory.mktemp("common"))


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.close()


@pytest.fixture(scope="module")
def kept_ruled() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.close()


@pytest.fixture
def resident(kept: Kept, common: Path) -> Iterator[Peer]:
    """Serve ``common``, by one process for many tests."""

    def start() -> Peer:
        peer = Served(common)
        peer.hello()
        return peer

    with kept.lend(start) as found:
        yield found


def lives(peer: Peer) -> None:
    """The server still answers, and nothing but protocol was printed."""
    assert text_of(peer.call("read", path="a.txt")) == "     1\thello"


# ------------------------------------------------------------------ files that are none


@pytest.mark.parametrize("tool", ["read", "edit", "write", "grep", "ls", "find"])
@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "proc", "null"])
def test_what_is_no_regular_file_is_refused_at_once(
    resident: Peer, common: Path, tool: str, kind: str
) -> None:
    place = f"{tool}-{kind}"
    folder = common / place
    folder.mkdir()
    path = {
        "fifo": f"{place}/pipe",
        "socket": f"{place}/sock",
        "device": "/dev/zero",
        "proc": "/proc/self/environ",
        "null": f"{place}/link",
    }[kind]
    if kind == "fifo":
        os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/null")
    with ExitStack() as stack:
        if kind == "socket":
            short = stack.enter_context(socket.socket(socket.AF_UNIX))
            here = os.getcwd()
            os.chdir(folder)  # a socket's path has to be short
            short.bind("sock")
            os.chdir(here)
        result = resident.call(tool, **with_path(tool, path))
        if tool in ("ls",) and kind in ("fifo", "socket"):
            assert "pipe" in text_of(result) or "socket" in text_of(result)
        else:
            assert result["isError"], text_of(result)
        lives(resident)


def with_path(tool: str, path: str) -> dict[str, Any]:
    more = {
        "edit": {"old_string": "a", "new_string": "b"},
        "write": {"content": "x"},
        "grep": {"pattern": "a"},
        "find": {"pattern": "*"},
    }
    return {"path": path, **more.get(tool, {})}


@pytest.mark.parametrize(
    "path",
    [
        "a\0b",
        "\0",
        "",
        "\ud800",
        "\n",
        "\x1b]0;x\x07",
        "\u202egpj.exe",
        "x" * 300,
        "x/" * 3000,
        "../" * 500 + "etc/passwd",
        "~/.ssh/id_rsa",
        "~root/x",
        "$HOME/x",
        "file:///etc/passwd",
        "//etc/passwd",
        "/./etc/../etc/passwd",
        "..",
        "../project2/x",
        "../projectx",
        "．．/outside/f",
        "..\\outside\\f",
        "%2e%2e/outside/f",
        "a.txt/",
        "a.txt/../../outside/f",
    ],
)
def test_odd_paths_are_answered_and_lead_nowhere(resident: Peer, common: Path, path: str) -> None:
    before = sorted(p.name for p in common.parent.iterdir())
    for tool in ("read", "ls", "find", "grep", "edit"):
        id_ = resident.post("tools/call", {"name": tool, "arguments": with_path(tool, path)})
        raw = resident.line()
        answer = json.loads(raw)
        assert answer["id"] == id_
        assert CANARY not in text_of(answer["result"]) and "root:x" not in text_of(answer["result"])
        assert b"\x1b" not in raw
    lives(resident)
    assert sorted(p.name for p in common.parent.iterdir()) == before


@linux
@pytest.mark.parametrize("tool", ["read", "write", "edit", "grep"])
def test_a_folder_swapped_for_a_link_while_serving_leads_nowhere(
    peer: Peer, root: Path, tmp_path: Path, tool: str
) -> None:
    inside, link = root / "inside", root / "link"
    inside.mkdir()
    (inside / "f").write_text("mine\n")
    link.symlink_to(tmp_path / "outside")
    with swapping(root, "inside", "link"):
        end = time.monotonic() + 1.5
        answers = 0
        while time.monotonic() < end:
            ids = [
                peer.post("tools/call", {"name": tool, "arguments": with_path(tool, "inside/f")})
                for _ in range(10)
            ]
            for _ in ids:
                assert CANARY not in text_of(peer.receive()["result"])
                answers += 1
    assert answers >= 10
    assert (tmp_path / "outside" / "f").read_text() == CANARY
    assert [p.name for p in (tmp_path / "outside").iterdir()] == ["f"]


@contextmanager
def swapping(root: Path, one: str, other: str) -> Iterator[None]:
    """Exchange two names as fast as it goes."""
    done = threading.Event()
    folder = os.open(root, os.O_RDONLY)
    exchange = ctypes.CDLL(None).renameat2
    names = one.encode(), other.encode()

    def swap() -> None:
        while not done.is_set():
            exchange(folder, names[0], folder, names[1], 2)  # RENAME_EXCHANGE

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        os.close(folder)


# ------------------------------------------------------------------ edits


def test_an_edit_that_could_mean_two_places_changes_neither(peer: Peer, root: Path) -> None:
    (root / "b.txt").write_text("x = 1\ny = 2\nx = 1\n")
    result = peer.call("edit", path="b.txt", old_string="x = 1", new_string="z")
    assert result["isError"] and "2 times (lines 1, 3)" in text_of(result)
    result = peer.call("edit", path="b.txt", old_string="", new_string="z")
    assert result["isError"]
    assert (root / "b.txt").read_text() == "x = 1\ny = 2\nx = 1\n"


@pytest.mark.parametrize("data", [b"a\0b old c", b"old \xff\xfe\x80", b"\x89PNG\r\n\x1a\nold"])
def test_an_edit_never_touches_bytes_that_are_no_text(peer: Peer, root: Path, data: bytes) -> None:
    (root / "b.bin").write_bytes(data)
    assert peer.call("edit", path="b.bin", old_string="old", new_string="new")["isError"]
    assert (root / "b.bin").read_bytes() == data


# ------------------------------------------------------------------ bombs


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("find", {"pattern": "{a,b}" * 40}),
        ("find", {"pattern": "{" * 900}),
        ("find", {"pattern": "*a" * 400 + "b"}),
        ("find", {"pattern": "**/" * 300 + "x"}),
        ("find", {"pattern": "[" * 900}),
        ("find", {"pattern": "x" * 100_000}),
        ("grep", {"pattern": "(a+)+$", "path": "."}),
        ("grep", {"pattern": "(" * 5000}),
        ("grep", {"pattern": "a{1000}{1000}{1000}"}),
        ("grep", {"pattern": "x" * 1_000_000}),
        ("grep", {"pattern": "x", "glob": "{a,b}" * 40}),
        ("grep", {"pattern": "\\p{Greek}{1,1000}{1,1000}"}),
    ],
)
def test_a_pattern_bomb_is_answered_soon_and_holds_up_nobody(
    resident: Peer, common: Path, tool: str, arguments: dict[str, Any]
) -> None:
    (common / "aaa").write_text("a" * 50_000 + "!\n")
    id_ = resident.post("tools/call", {"name": tool, "arguments": arguments})
    resident.post("ping", id_="ping")
    answers = {resident.receive(90)["id"], resident.receive(90)["id"]}
    assert answers == {id_, "ping"}
    lives(resident)


def test_output_is_bounded_whatever_is_read_or_run(peer: Peer, root: Path) -> None:
    with (root / "big").open("wb") as file:
        for _ in range(60):
            file.write(b"line of text\n" * 80_000)
    (root / "long").write_bytes(b"x" * 30_000_000)
    for tool, arguments in (
        ("read", {"path": "big", "limit": 10_000_000}),
        ("read", {"path": "long"}),
        ("read", {"path": "long", "limit": 1}),
        ("grep", {"pattern": "text", "limit": 1000}),
        ("grep", {"pattern": "xx"}),
        ("bash", {"command": "head -c 20000000 /dev/zero | tr '\\0' 'x'"}),
        ("bash", {"command": "cat big"}),
    ):
        id_ = peer.post("tools/call", {"name": tool, "arguments": arguments})
        line = peer.line(90)
        assert json.loads(line)["id"] == id_
        assert len(line) < 300_000, (tool, arguments, len(line))
    assert psutil.Process(peer.process.pid).memory_info().rss < 300 << 20


@linux
def test_the_largest_arguments_are_taken_or_refused_in_bounded_memory(
    peer: Peer, root: Path
) -> None:
    def highest() -> int:
        status = Path(f"/proc/{peer.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    lives(peer)
    before = psutil.Process(peer.process.pid).memory_info().rss
    text = "y" * 50_000_000
    id_ = peer.post("tools/call", {"name": "write", "arguments": {"path": "c", "content": text}})
    answer = peer.receive(90)
    assert answer["id"] == id_ and "longer than 32 MiB" in answer["error"]["message"]
    assert highest() - before < 100 << 20
    text = "y" * 30_000_000
    id_ = peer.post("tools/call", {"name": "write", "arguments": {"path": "b", "content": text}})
    answer = peer.receive(90)
    assert answer["id"] == id_ and answer["result"]["isError"] is False
    assert (root / "b").stat().st_size == 30_000_000
    for tool, name in (("bash", "command"), ("read", "path"), ("grep", "pattern"), ("ls", "path")):
        peer.post("tools/call", {"name": tool, "arguments": {name: text}}, id_=tool)
        line = peer.line(90)
        assert json.loads(line)["id"] == tool and json.loads(line)["result"]["isError"]
        assert len(line) < 5_000
    assert highest() - before < 160 << 20
    lives(peer)


def test_an_endless_line_is_answered_with_its_id(peer: Peer) -> None:
    peer.raw(b'{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"')
    for _ in range(66):
        peer.raw(b"x" * (1 << 20))
    answer = peer.receive(90)
    assert answer["id"] == "long" and "longer than" in answer["error"]["message"]
    peer.raw(b'"}}\n')
    lives(peer)


# ------------------------------------------------------------------ commands


@linux
def test_daemons_of_a_command_end_with_the_server(root: Path) -> None:
    line = (
        "setsid -f sh -c 'trap \"\" TERM HUP; echo $$ > daemon; while :; do sleep 0.1; done';"
        " (sleep 300 & echo $! > child); nohup sleep 300 > /dev/null 2>&1 & echo $! > nohup; exit 0"
    )
    files = [root / name for name in ("daemon", "child", "nohup")]
    with Served(root) as peer:
        peer.hello()
        peer.call("bash", command=line)
        wait_for(lambda: all(file.exists() and file.read_text().strip() for file in files))
        assert peer.finish() == 0
        for file in files:
            wait_for(lambda file=file: not alive(int(file.read_text())), what=file.name)


@linux
def test_what_detached_itself_is_named_and_does_not_outlive_a_timeout(
    peer: Peer, root: Path
) -> None:
    detach = "setsid -f sh -c 'echo $$ > {0}; exec sleep 300' > /dev/null 2>&1; while ! test -s {0}"
    line = detach.format("named") + "; do sleep 0.05; done"
    named = text_of(peer.call("bash", command=line))
    pid = int((root / "named").read_text())
    assert f"[Process {pid} detached itself and runs on until kage ends: sleep 300]" in named
    assert alive(pid)
    line = detach.format("ended") + "; do sleep 0.05; done; sleep 300"
    result = peer.call("bash", command=line, timeout=3)
    assert "everything it started were ended" in text_of(result)
    wait_for(lambda: not alive(int((root / "ended").read_text())))
    assert alive(pid)  # of another command
    assert peer.finish() == 0
    wait_for(lambda: not alive(pid))


def test_endless_output_and_endless_silence_are_ended(peer: Peer) -> None:
    for line in ("yes", "cat /dev/zero", "sleep 1000", "while :; do :; done", "exec sleep 1000"):
        peer.post("tools/call", {"name": "bash", "arguments": {"command": line, "timeout": 1}})
    for _ in range(5):
        result = peer.receive(90)["result"]
        assert result["isError"] and "timed out after 1 second" in text_of(result)
        assert len(text_of(result)) <= 100_000
    lives(peer)


@linux
def test_a_fork_storm_of_a_command_is_ended_with_it(peer: Peer, root: Path) -> None:
    line = "for i in $(seq 200); do sleep 300 & done; echo $! > last; wait"
    result = peer.call("bash", command=line, timeout=2)
    assert "timed out" in text_of(result)
    wait_for(lambda: not alive(int((root / "last").read_text())))


# ------------------------------------------------------------------ numbers


def test_a_thousand_parallel_calls_are_all_answered(peer: Peer, root: Path) -> None:
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": "a.txt"}),
        ("ls", {}),
        ("read", {"path": "missing"}),
        ("write", {"path": "w.txt", "content": "x"}),
        ("find", {"pattern": "*.txt"}),
    ]
    ids = set()
    for number in range(1000):
        name, arguments = kinds[number % len(kinds)] if number % 10 else ("read", kinds[0][1])
        ids.add(peer.post("tools/call", {"name": name, "arguments": arguments}))
    answered = {peer.receive(90)["id"] for _ in ids}
    assert answered == ids
    lives(peer)


def test_three_hundred_commands_at_once_run_or_say_why_not(peer: Peer) -> None:
    call = {"name": "bash", "arguments": {"command": "echo here"}}
    ids = {peer.post("tools/call", call) for _ in range(300)}
    for _ in range(300):
        answer = peer.receive(90)
        ids.remove(answer["id"])
        text = text_of(answer["result"])
        assert text == "here" or (answer["result"]["isError"] and "could not be started" in text)
    lives(peer)


def test_a_hundred_thousand_notifications_are_swallowed(peer: Peer) -> None:
    lines = [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}' % number
        for number in range(50_000)
    ]
    lines += [b'{"jsonrpc":"2.0","method":"notifications/x%d"}' % n for n in range(50_000)]
    peer.raw(b"\n".join(lines) + b"\n")
    lives(peer)
    assert psutil.Process(peer.process.pid).memory_info().rss < 150 << 20


@linux
def test_a_client_that_stops_reading_costs_bounded_memory(peer: Peer, root: Path) -> None:
    (root / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + os.urandom(3_700_000))
    sending = threading.Thread(
        target=lambda: [
            peer.post("tools/call", {"name": "read", "arguments": {"path": "p.png"}}, id_=number)
            for number in range(90)
        ]
    )
    sending.start()
    process = psutil.Process(peer.process.pid)
    seen = 0.0
    quiet = 0
    while quiet < 15:  # until it has settled, as it does when it waits for its reader
        cpu = sum(process.cpu_times()[:2])
        quiet = quiet + 1 if cpu == seen else 0
        seen = cpu
        assert process.memory_info().rss < 250 << 20
        time.sleep(0.02)
    got = {peer.receive(90)["id"] for _ in range(90)}
    sending.join()
    assert got == set(range(90))
    lives(peer)


def test_half_a_line_at_the_end_is_answered(root: Path) -> None:
    with Served(root) as peer:
        peer.hello()
        peer.raw(b'{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"ba')
        assert peer.finish() == 0
        answer = peer.receive()
        assert answer["id"] == "half" and answer["error"]["code"] == -32700
        assert peer.line() == b""


# ------------------------------------------------------------------ ids, tokens, parameters


@pytest.mark.parametrize(
    "id_", [0, -1, 2**63, "", "\n\0\x1b[31m", "\u202e", "é" * 500, '"}{"', "null"]
)
def test_an_odd_but_legal_id_comes_back_as_it_was(resident: Peer, id_: Any) -> None:
    resident.post("tools/call", {"name": "read", "arguments": {"path": "a.txt"}}, id_=id_)
    line = resident.line()
    assert json.loads(line)["id"] == id_ and b"\x1b" not in line
    resident.send({"jsonrpc": "2.0", "id": id_, "method": "ping"})
    assert json.loads(resident.line()) == {"jsonrpc": "2.0", "id": id_, "result": {}}


@pytest.mark.parametrize("id_", ["1.0", "1e3", "1.5", "true", "null", "[1]", "{}", "1" * 25])
def test_an_illegal_id_is_answered_without_one(resident: Peer, id_: str) -> None:
    call = b'"method":"tools/call","params":{"name":"write","arguments":{"path":"w","content":""}}}'
    resident.raw(b'{"jsonrpc":"2.0","id":' + id_.encode() + b"," + call + b"\n")
    answer = resident.receive()
    assert answer["id"] is None and answer["error"]["code"] == -32600
    lives(resident)


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}, "", "x" * 100_000, 10**200, "\ud800"])
def test_an_odd_progress_token_harms_nothing(resident: Peer, token: Any) -> None:
    params = {
        "name": "bash",
        "arguments": {"command": "for i in 1 2 3; do echo $i; sleep 0.15; done"},
        "_meta": {"progressToken": token},
    }
    id_ = resident.post("tools/call", params)
    sent = 0
    while (answer := resident.receive()).get("id") != id_:
        assert answer["method"] == "notifications/progress"
        sent += len(json.dumps(answer))
    assert text_of(answer["result"]) == "1\n2\n3" and sent < 10_000


@pytest.mark.parametrize("meta", [None, 5, "x", [], {"progressToken": {}}, {"a": [[[]]]}])
def test_odd_metadata_harms_nothing(resident: Peer, meta: Any) -> None:
    params = {"name": "read", "arguments": {"path": "a.txt"}, "_meta": meta}
    assert text_of(resident.result("tools/call", params)) == "     1\thello"


@pytest.mark.parametrize("params", [None, [], "x", 5, True, [{"name": "read"}]])
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "initialize", "ping"])
def test_parameters_that_are_no_object_are_answered(
    resident: Peer, method: str, params: Any
) -> None:
    resident.send({"jsonrpc": "2.0", "id": "odd", "method": method, "params": params})
    assert resident.receive()["id"] == "odd"
    lives(resident)


def test_a_tree_of_a_million_values_is_answered(peer: Peer) -> None:
    peer.raw(
        b'{"jsonrpc":"2.0","id":"tree","method":"tools/call","params":{"name":"read","arguments":'
        b'{"path":[' + b",".join([b"[]"] * 1_000_000) + b"]}}}\n"
    )
    assert peer.receive(90)["result"]["isError"]
    keys = b",".join(b'"k%d":1' % number for number in range(300_000))
    peer.raw(
        b'{"jsonrpc":"2.0","id":"keys","method":"tools/call","params":{"name":"read","arguments":{'
        + keys
        + b"}}}\n"
    )
    line = peer.line(90)
    assert json.loads(line)["result"]["isError"] and len(line) < 10_000
    lives(peer)


# ------------------------------------------------------------------ addresses


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://0/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fc00::1]/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://0.0.0.0/",
        "http://255.255.255.255/",
        "http://224.0.0.1/",
        "http://①②⑦.0.0.1/",
        "http://127。0。0。1/",
        "http://user:pass@127.0.0.1/",
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1#@example.com/",
        "http://127.0.0.1\\@example.com/",
        "http:///etc/passwd",
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://127.0.0.1:25/x",
        "javascript:alert(1)",
        "data:text/html,x",
        "//127.0.0.1/",
        "",
        "\0",
        "http://127.0.0.1:99999/",
        "http://example.com:22\r\nHost: x/",
        "http://" + "a" * 70_000,
    ],
)
def test_no_address_reaches_this_machine_or_its_network(resident: Peer, url: str) -> None:
    result = resident.call("web_fetch", url=url)
    assert result["isError"] and len(text_of(result)) < 2000, text_of(result)[:300]


@pytest.fixture
def ruled(kept_ruled: Kept, common: Path, own_home: Path) -> Iterator[Peer]:
    """Serve under rules that read every argument."""

    def start() -> Peer:
        (own_home / "config/kage").mkdir(parents=True)
        rules = [
            f'[permissions.tools.{name}]\ndeny = ["*.key"]\n' for name in ("write", "read", "bash")
        ]
        rules.append('[permissions.tools.web_fetch]\ndeny = ["https://evil.example/*"]\n')
        (own_home / "config/kage/config.toml").write_text("\n".join(rules))
        peer = Served(common)
        peer.hello()
        return peer

    with kept_ruled.lend(start) as found:
        yield found


@pytest.mark.parametrize(
    ("tool", "argument", "text"),
    [
        ("write", "path", "a/" * 2_000_000),
        ("write", "path", "../" * 2_000_000),
        ("write", "path", "a" * 20_000_000),
        ("read", "path", "~" * 2_000_000),
        ("bash", "command", "a;" * 60_000),
        ("bash", "command", "$(" * 60_000),
        ("bash", "command", "x" * 20_000_000),
        ("web_fetch", "url", "http://" + "a." * 1_000_000),
        ("web_fetch", "url", "http://x/" + "../" * 1_000_000),
    ],
)
def test_rules_do_not_chew_on_what_no_tool_would_take(
    ruled: Peer, tool: str, argument: str, text: str
) -> None:
    more = {"content": "x"} if tool == "write" else {}
    ruled.post("tools/call", {"name": tool, "arguments": {argument: text, **more}}, id_="big")
    line = ruled.line(90)
    answer = json.loads(line)
    assert answer["id"] == "big" and answer["result"]["isError"] and len(line) < 5_000
    lives(ruled)

"""SPEC L45: the agent's shell changes, starts and calls nothing of its own host."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from pathlib import Path

from tests.llm import ScriptedModel, call, say
from tests.llm.script import Turn
from tests.proof.forking import Job, kages
from tests.proof.house import House, server
from tests.proof.verbs import lines, verbs

# what only looks; everything else refuses
READS = {
    "mcp export", "mcp list", "mcp log", "mcp pins list", "mcp stub", "mcp why",
    "session list", "session show", "log export", "log list", "log show", "log suggest",
    "log verify", "log why", "config check", "config get", "config path",
}  # fmt: skip
ONLY_LOOK = {
    "mcp get own --origin", "mcp trust own --list", "init --full", "mcp import own",
    "mcp import own --to-variables", "mcp import own --with-powers", "session undo S --list",
    "session undo S --dry-run", "session resume S",  # without a terminal it says so first
}  # fmt: skip
REFUSAL = "does not run from the agent's own shell"


def _files(home: Path) -> dict[str, str]:
    return {
        str(file.relative_to(home)): hashlib.sha256(file.read_bytes()).hexdigest()
        for kind in ("config", "data")
        for file in (home / kind).rglob("*")
        if file.is_file() and file.suffix != ".lock" and file.name != "kage.log"
    }


def test_every_verb_that_changes_starts_or_calls_refuses(house: House) -> None:
    house.write('model = "offline"', server("own", "echo", "--record", house.home / "mark"))
    (house.workspace / "own").write_text('{"mcpServers": {"x": {"command": "true"}}}')  # to import
    assert house.kage("-p", "hello", "--no-mcp").code == 0
    (session,) = (file.name for file in (house.data / "sessions").iterdir() if file.is_dir())
    before = _files(house.home)
    told = [*lines("own", session), ("-p", "hello"), ("mcp", "call", "own__echo", "text=x")]
    told += [
        ("mcp", "trust", "own", "--yes", "--hash", "0" * 64),
        ("mcp", "add", "x", "--", "true"),
    ]
    told += [("--mcp-config", "own", "mcp", "tools"), ("--no-mcp", "config", "set", "model", "x")]
    agent = {"KAGE_AGENT": "1"}
    jobs = [Job(words=words, cwd=house.workspace, environ=agent) for words in told]
    slipped = []
    for words, ended in zip(told, kages(jobs, house.environ, house.workspace), strict=True):
        verb = " ".join(next((v for v, _ in verbs() if words[: len(v)] == v), words[:1]))
        looks = verb in READS or " ".join(words).replace(session, "S") in ONLY_LOOK
        if not looks and REFUSAL not in ended["err"]:
            slipped.append((" ".join(words), ended["code"], ended["err"][:200]))
    assert not slipped, "\n".join(map(str, slipped))
    assert not (house.home / "mark").exists()
    assert _files(house.home) == before


def _lines_that_hide_the_mark(house: House) -> list[str]:
    kage = shlex.join((sys.executable, "-m", "kage"))
    add = f"{kage} mcp add evil -- touch {house.workspace}/by-evil"
    return [
        add,
        f"env -u KAGE_AGENT {add}",
        f"KAGE_AGENT= {add}",
        f"unset KAGE_AGENT; {add}",
        f"env -u KAGE_AGENT -u KAGE_TAG {add}; true",
        f"true; env -i HOME={house.home} {add}; true",
        f"(exec -c {add}); true",
        f"env -u KAGE_AGENT {kage} mcp trust team --yes --hash {'0' * 64}",
        f"env -u KAGE_AGENT {kage} config set model x",
        f"env -u KAGE_AGENT {kage} -p 'mcp'",
    ]


def test_taking_the_mark_away_helps_the_agent_nothing(house: House) -> None:
    house.write('model = "anthropic:scripted"')
    before = house.config.read_text()
    tries = [call("bash", command=line) for line in _lines_that_hide_the_mark(house)]
    with ScriptedModel([tries, say("done")]) as model:
        house.use(model)
        ended = house.kage("-p", "go", "--allow", "bash", "--json")
    results = [m["message"] for m in ended.of("message_appended")]
    shown = [json.dumps(m) for m in results if m["kind"] == "tool_message"]
    assert len(shown) == len(tries)
    for line, text in zip(tries, shown, strict=True):
        assert REFUSAL in text, (line, text)
    assert house.config.read_text() == before
    assert not (house.data / "trust.toml").exists()


def _attempts(house: House) -> list[Turn]:
    """Give ways to a file of kage's own, each spelled so that it looks like another."""
    work, config, data = house.workspace, house.config, house.data
    (work / "notes").symlink_to(config.parent)
    (work / "one.txt").symlink_to(config)
    (work / "gone.txt").symlink_to(data / "trust.toml")
    os.link(config, work / "twin.txt")
    (work / "sub").mkdir()
    text = "model = 'evil'"
    written = [
        config, work / "notes/config.toml", work / "one.txt", work / "twin.txt", work / "gone.txt",
        f"{work}/sub/../.mcp.json", ".mcp.json", "./.MCP.json", ".Kage/config.toml", "sub/.kage/x",
        "/proc/self/cwd/.mcp.json", f"/proc/self/root{config}", f"{config.parent}/./config.toml",
        f"{config.parent}/plugins/p.lua", f"{config.parent}/init.lua", data / "grants.toml",
        data / "pins.toml", data / "decisions" / "2026-01.jsonl", "~/config/kage/config.toml",
    ]  # fmt: skip
    lines = [
        f"echo {text} > {config}", f"echo {text} >> {work}/one.txt", "cat > .mcp.json <<'E'\n{}\nE",
        "cat <<E >twin.txt\nx\nE", f"tee {config} <<< x", "tee -a notes/config.toml < /dev/null",
        f"mv sub/x {config}", "cp sub/x notes/", "cp /dev/null .mcp.json", "rm -rf notes/",
        f"sed -i s/a/b/ {config}", f"cd {config.parent} && sed -i s/a/b/ config.toml",
        f"echo x > {config.parent}/conf*.toml", f"echo x > {config.parent}/{{config,x}}.toml",
        "D=.mcp; echo x > $D.json", "echo x > .mc''p.json", 'echo x > ".mcp"\\.json',
        "mkdir -p .kage && echo x > .kage/config.toml", f"ln -sf /dev/null {config}",
        f"truncate -s0 {data}/trust.toml", f"python3 -c \"open('{config}', 'w')\"",
        f"bash -c 'echo x > {config}'", f"install -m600 /dev/null {data}/grants.toml",
        f"rm -r {data}/decisions", f"mv {data} /tmp/elsewhere-{os.getpid()}", f"echo x 1<>{config}",
        f"echo x >| {config}", f"echo x &> {config}", "echo x > $PWD/.mcp.json",
        "echo x > /proc/self/cwd/.mcp.json", "git config -f .kage/config.toml a.b c",
        f"dd of={config} < /dev/null", f"printf x | (cd {data}; cat > trust.toml)",
    ]  # fmt: skip
    edit = {"edits": [{"old": "offline", "new": "evil"}]}
    return [
        *(call("write", path=str(path), content=text) for path in written),
        *(call("edit", path=str(path), **edit) for path in (config, "one.txt", "twin.txt")),
        *(call("bash", command=line) for line in lines),
    ]


def test_no_rule_lets_the_agent_write_what_is_kages_own(house: House) -> None:
    wide = "".join(
        f'[permissions.tools.{tool}]\nallow = ["*"]\ndefault = "allow"\n'
        for tool in ("write", "edit", "bash")
    )
    house.write('model = "anthropic:scripted"', wide)
    house.data.mkdir(parents=True, exist_ok=True)
    (house.data / "trust.toml").write_text("version = 1\n")
    tries = _attempts(house)
    before = house.config.read_bytes()
    with ScriptedModel(
        [[*tries, call("bash", command="echo fine > by-itself")], say("done")]
    ) as model:
        house.use(model)
        ended = house.kage("-p", "go", "--allow", "bash", "--allow", "write", "--json")
    assert (house.workspace / "by-itself").exists(), ended.err  # the rules are as wide as they look
    asked = {r["call"]: r for r in house.records() if r["kind"] == "decision"}
    ran = [r for r in asked.values() if r["verdict"] == "allow"]
    assert len(asked) >= len(tries) - 3
    assert [r["arguments"] for r in ran] == [{"command": "echo fine > by-itself"}]
    assert house.config.read_bytes() == before
    assert (house.data / "trust.toml").read_text() == "version = 1\n"
    assert not (house.workspace / ".mcp.json").exists()


SLIP = """
import pathlib
config, data, work = (pathlib.Path(text) for text in {places!r})
entry = '''{entry}'''
config.write_text(config.read_text() + entry + '''
[permissions.tools.bash]
allow = ["touch *"]
default = "allow"
[permissions.mcp]
evil = "allow"
''')
(work / (".mcp" + ".json")).write_text('''{json}''')
data.mkdir(parents=True, exist_ok=True)
(data / "grants.toml").write_text('version = 1\\n[[grant]]\\nrule = "bash"\\ntool = "bash"\\n')
(data / "trust.toml").write_text('version = 1\\n[[entry]]\\nname = "team"\\ndecision = "1"\\n')
(config.parent / "init.lua").write_text('os.execute("touch {mark}-lua")')
"""


def _touches(mark: Path, name: str) -> list[str]:
    return ["-c", f"touch {mark}-{name}; cat"]


def test_what_a_script_of_the_agent_slips_in_has_no_effect(house: House) -> None:
    """It hides its places from every reading; a kage that runs sees the change, and holds it."""
    mark = house.home / "mark"
    house.write('model = "anthropic:scripted"\n')
    entry = (
        f'[mcp.servers.evil]\ncommand = "/bin/sh"\nargs = {json.dumps(_touches(mark, "user"))}\n'
    )
    team = {"mcpServers": {"team": {"command": "/bin/sh", "args": _touches(mark, "team")}}}
    places = [str(p) for p in (house.config, house.data, house.workspace)]
    (house.workspace / "build.py").write_text(
        SLIP.format(places=places, entry=entry, json=json.dumps(team), mark=mark)
    )
    slip = call("bash", command=f"{sys.executable} build.py")
    tries = [call("bash", command=f"touch {mark}-bash"), call("evil__x"), call("team__x")]
    with ScriptedModel([slip, say("done"), tries, say("done"), tries, say("done")]) as model:
        house.use(model)
        assert house.kage("-p", "go", "--allow", "bash(* build.py)").code == 0
        assert "evil" in house.config.read_text()  # it did slip in
        ended = house.kage("-p", "go")
        assert ended.lines("evil", "held"), ended.err
        assert house.kage("-p", "go").code == 4  # it stays so
    assert house.kage("mcp", "test", "evil").code != 0
    assert house.kage("mcp", "tools").code in (0, 1)
    assert [file.name for file in house.home.glob("mark*")] == []

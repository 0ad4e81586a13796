"""Settings read again while kage runs: what changed is in force, what is broken changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kage.agent.engine import Engine
from kage.cli.ground import Options, ground
from kage.cli.trusting import desk_of
from kage.cli.wiring import build
from kage.core.commands import (
    AnswerApproval,
    AnswerTrust,
    ReloadConfig,
    RestartServer,
    SubmitPrompt,
)
from kage.core.content import Text
from kage.core.events import (
    ApprovalRequested,
    Event,
    MessageAppended,
    ModeChanged,
    Noticed,
    RunFinished,
    TrustRequested,
)
from kage.core.gate import Answer, Mode, Reply
from kage.core.messages import Outcome, ToolMessage
from kage.core.servers import ServerState
from kage.core.trust import TrustAnswer
from tests.stubs import stub
from tests.waiting import until


def entry(name: str, *options: object, **keys: object) -> str:
    command, *args = stub("echo", *options)
    lines = [f"[mcp.servers.{name}]", f"command = {json.dumps(command)}"]
    lines += [f"args = {json.dumps(args)}", *(f"{key} = {value}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


class Running:
    """A kage without a screen whose settings are edited."""

    def __init__(self, engine: Engine, file: Path) -> None:
        self.engine = engine
        self.file = file
        self.events: list[Event] = []
        engine.subscribe(self.events.append)

    def write(self, *parts: str) -> None:
        """Write the file as editors do: another one takes its place."""
        other = self.file.with_name("config.toml~")
        other.write_text("\n".join(parts))
        os.replace(other, self.file)

    def said(self, *words: str) -> list[Noticed]:
        notices = [event for event in self.events if isinstance(event, Noticed)]
        return [n for n in notices if all(word in f"{n.what} {n.why}" for word in words)]

    def state(self, name: str) -> ServerState | None:
        found = [s.state for s in self.engine.servers() if s.name == name]
        return found[0] if found else None

    def tools(self, server: str) -> set[str]:
        return {tool.name for tool in self.engine.tools() if tool.name.startswith(f"{server}__")}

    async def trusted(self, name: str) -> None:
        """Say yes to the question about ``name``."""

        def asked() -> list[TrustRequested]:
            found = [event for event in self.events if isinstance(event, TrustRequested)]
            return [event for event in found if event.question.identity.name == name]

        await until(asked, what=f"a question about {name}")
        identity = asked()[-1].question.identity
        answer = AnswerTrust(name=name, entry_hash=identity.entry_hash, answer=TrustAnswer.TRUST)
        self.engine.send(answer)


@asynccontextmanager
async def running(
    folder: Path, *parts: str, edited: tuple[str, ...] = ()
) -> AsyncIterator[Running]:
    """Run kage on settings that become ``edited`` once they are read."""
    workspace = folder / "work"
    workspace.mkdir(exist_ok=True)
    os.chdir(workspace)
    here = ground(Options())
    here.paths.config.mkdir(parents=True, exist_ok=True)
    here.paths.config_file.write_text("\n".join(parts))
    house = build(ground(Options()), interactive=True)
    made = Running(house.engine, here.paths.config_file)
    if edited:
        made.write(*edited)
    await made.engine.start()
    try:
        await house.manager.settled()
        yield made
    finally:
        await made.engine.close()


def _run(main: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)  # and back at the end
    asyncio.run(main())


def test_a_reload_by_hand_touches_only_what_changed_and_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path, entry("kept"), entry("gone"), entry("limits")) as kage:
            await until(lambda: kage.tools("gone"))
            pids = {status.name: status.pid for status in kage.engine.servers()}
            kage.engine._reloading.stop()  # by hand only
            kage.write(entry("kept"), entry("limits", tool_timeout='"5s"'))
            kage.engine.send(ReloadConfig())
            await until(lambda: kage.said("Settings read again"))
            [told] = kage.said("Settings read again")
            assert told.what == (
                "Settings read again: 1 adjusted (limits), 1 removed (gone), 1 unchanged"
            )
            await until(lambda: not kage.tools("gone"))
            now = {status.name: status.pid for status in kage.engine.servers()}
            assert now == {name: pids[name] for name in ("kept", "limits")}
            kage.engine.send(ReloadConfig())  # asked again: said again, though nothing changed
            await until(lambda: kage.said("Settings read again: 2 unchanged"))
            kage.engine.send(RestartServer(name="kept", fresh=True))
            await until(lambda: kage.engine.servers()[0].pid not in (None, pids["kept"]))

    _run(main, monkeypatch, tmp_path)


def test_an_edited_file_is_in_force_without_being_asked_and_a_bad_edit_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path, entry("one")) as kage:
            pid = kage.engine.servers()[0].pid
            await until(lambda: kage.tools("one"))
            kage.write(entry("one"), "[mcp.servers.two]\ncommand = 3")
            await until(lambda: kage.said("config.toml:6"))
            kage.file.write_text("[mcp.servers.one\n")  # half a file
            await until(lambda: kage.said("config.toml:1", "TOML"))
            assert [status.pid for status in kage.engine.servers()] == [pid]
            kage.write(entry("one"), entry("two"))
            # what starts something new is held until the person has seen it
            await kage.trusted("two")
            await until(lambda: kage.tools("two"))
            assert {status.name: status.pid for status in kage.engine.servers()}["one"] == pid
            assert len(kage.said("config.toml:6")) == len(kage.said("config.toml:1", "TOML")) == 1
            # the same with the file written anew: silence
            told = len(kage.events)
            kage.write(entry("one"), entry("two"), "# a comment")
            kage.write(entry("one"), entry("two"), "[permissions.tools.one__echo]", 'deny = ["*"]')
            await until(lambda: kage.said("permissions changed"))
            heard = [e for e in kage.events[told:] if isinstance(e, Noticed)]
            assert [notice.what for notice in heard] == [
                "The permissions changed and count from now on"
            ]

    _run(main, monkeypatch, tmp_path)


async def _outcome(kage: Running) -> Outcome | None:
    """Call a tool by hand; None when the person was asked, who says no."""
    seen = len(kage.events)
    kage.engine.send(SubmitPrompt(content=(Text("one__echo text=hi"),)))

    def found(*kinds: type[Event]) -> list[Any]:
        return [event for event in kage.events[seen:] if isinstance(event, kinds)]

    await until(lambda: found(ApprovalRequested, RunFinished))
    for event in found(ApprovalRequested):
        answer = AnswerApproval(question_id=event.question.id, reply=Reply(answer=Answer.NO))
        kage.engine.send(answer)
        await until(lambda: found(RunFinished))
        return None
    [message] = [e.message for e in found(MessageAppended) if isinstance(e.message, ToolMessage)]
    outcome: Outcome = message.outcome
    return outcome


def _rule(**keys: str) -> str:
    lines = [f"{key} = {json.dumps([value])}" for key, value in keys.items()]
    return "\n".join(["[permissions.tools.one__echo]", *lines])


def test_a_rule_that_allows_more_counts_as_soon_as_the_person_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        offline = 'model = "offline"\n'
        async with running(tmp_path, offline, entry("one"), _rule(deny="*")) as kage:
            await until(lambda: kage.tools("one"))
            assert await _outcome(kage) is Outcome.REFUSED
            kage.write(offline, entry("one"), _rule(allow="*"))
            await until(lambda: kage.said("permissions.one__echo", "does not count"))
            assert not kage.said("count from now on")
            assert await _outcome(kage) is Outcome.REFUSED
            book = desk_of(ground(Options())).book  # another shell: kage mcp trust --rules
            assert len(book.held_rules()) == 2
            book.allow_rules(book.held_rules())
            await until(lambda: kage.said("count from now on"))
            assert await _outcome(kage) is Outcome.OK

    _run(main, monkeypatch, tmp_path)


def test_a_rule_of_the_project_stays_while_kage_runs_whatever_becomes_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        project = tmp_path / "work" / ".kage" / "config.toml"
        project.parent.mkdir(parents=True)
        project.write_text(_rule(deny="text=h*"))
        offline = 'model = "offline"\n'
        async with running(tmp_path, offline, entry("one")) as kage:
            await until(lambda: kage.tools("one"))
            assert await _outcome(kage) is Outcome.REFUSED
            project.write_text(_rule(deny="text=other"))
            await until(lambda: kage.said("count from now on"))  # what it adds does
            assert await _outcome(kage) is Outcome.REFUSED
            project.unlink()
            kage.engine.send(ReloadConfig())
            await until(lambda: kage.said("Settings read again"))
            assert await _outcome(kage) is Outcome.REFUSED

    _run(main, monkeypatch, tmp_path)


def test_an_edit_before_anybody_watches_is_seen_and_old_mistakes_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        wrong = "[mcp.servers.bad]\ncommand = 3\n"
        async with running(tmp_path, wrong, entry("one"), edited=("model = 4", wrong)) as kage:
            await until(lambda: kage.said("config.toml:1"))  # as it was written meanwhile
        async with running(tmp_path, wrong, entry("one")) as kage:
            await until(lambda: kage.tools("one"))
            kage.write(wrong, entry("one", tool_timeout='"5s"'))  # does not count, and says so
            await until(lambda: len(kage.said("config.toml:2")) > 1)
            told = kage.said("config.toml:2")
            assert len(told) == 2  # at the start, and now
            assert "mend it" in told[1].fix

    _run(main, monkeypatch, tmp_path)


def test_a_stricter_mode_counts_at_once_and_what_is_read_once_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with running(tmp_path, "theme = 'nord'") as kage:
            kage.write("theme = 'nord'", "[permissions]", "mode = 'deny'")
            await until(lambda: kage.said("permissions.mode", "from now on"))
            assert kage.engine.mode is Mode.DENY
            assert ModeChanged(mode=Mode.DENY) in kage.events
            kage.write("theme = 'dracula'", "[mcp]", "defer_tools = 'never'", "[permissions]")
            await until(lambda: kage.said("next start"))
            [later] = kage.said("next start")
            assert later.what.startswith("theme, mcp.defer_tools, permissions.mode: ")
            assert kage.engine.mode is Mode.DENY  # nothing that loosens is put in force by a file

    _run(main, monkeypatch, tmp_path)

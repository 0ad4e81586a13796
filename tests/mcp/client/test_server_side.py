"""What a server is told and tells by itself: folders, log messages, progress."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from kage.core.errors import UsageError
from kage.mcp.client.asking.answering import Around
from kage.mcp.client.asking.roots import roots_result
from kage.mcp.client.asking.serverlog import BURST, RATE, ServerLog
from tests.mcp.client.harness import bench, recorded, run, spec, text
from tests.waiting import until

LEGACY = ("--revisions", "2025-11-25")
MODERN = ("--revisions", "2026-07-28")
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN], ids=["legacy", "modern"])


@ERAS
def test_a_server_is_told_the_workspace_and_the_folders_of_its_entry(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    async def main() -> None:
        async with bench(tmp_path, around=Around(workspace=tmp_path)) as b:
            await b.up(
                spec("elicit", *era, roots=("notes \u00e9", str(tmp_path))),
                spec("blind", *era, of="elicit", roots=None),
            )
            answer = json.loads(text(await b.call("elicit__ask", {"method": "roots/list"})))
            assert [root["uri"] for root in answer["roots"]] == [
                tmp_path.as_uri(),
                (tmp_path / "notes \u00e9").as_uri(),
            ]
            assert "told no folders" in text(await b.call("blind__ask", {"method": "roots/list"}))

    run(main)


def test_every_folder_is_named_once_and_home_is_spelled_out(tmp_path: Path) -> None:
    roots = roots_result(tmp_path, ("~/x", ".", "~/x"))["roots"]
    assert [root["uri"] for root in roots] == [tmp_path.as_uri(), (Path.home() / "x").as_uri()]


def test_a_change_of_its_folders_is_told_without_a_restart(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path, around=Around(workspace=tmp_path)) as b:
            entry = spec("elicit", *LEGACY, "--record", record)
            await b.up(entry)
            pid = b.status("elicit").pid
            b.manager.start([dataclasses.replace(entry, roots=("more",))])
            await b.apply()
            await until(lambda: recorded(record, "notifications/roots/list_changed"))
            answer = text(await b.call("elicit__ask", {"method": "roots/list"}))
            assert "more" in answer and b.status("elicit").pid == pid

    run(main)


@ERAS
def test_the_level_is_asked_for_and_messages_stand_in_the_log(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            b.redactor.add("TOKEN", "tok-123456")
            await b.up(spec("elicit", *era, "--record", record, log_level="warning"))
            seen = text(await b.call("elicit__log", {"data": "lost tok-123456"}))
            assert seen == ('"warning"' if era is MODERN else "null")
            await b.call("elicit__log", {"level": "debug", "data": "chatter"})
            await b.manager.set_log_level("elicit", "debug")
            await b.call("elicit__log", {"level": "debug", "data": {"rows": 3}})
            lines = b.manager.log("elicit")
            assert lines == (
                "log warning db: lost [redacted:TOKEN]",
                'log debug db: {"rows": 3}',
            )
            if era is LEGACY:
                levels = [m["params"]["level"] for m in recorded(record, "logging/setLevel")]
                assert levels == ["warning", "debug"]
            else:
                assert not recorded(record, "logging/setLevel")
            await b.manager.set_log_level("elicit", "")
            await b.call("elicit__log", {"data": "after"})
            if era is LEGACY:
                assert b.manager.log("elicit") == lines
            with pytest.raises(UsageError):
                await b.manager.set_log_level("ghost", "debug")

    run(main)


def test_a_flood_of_messages_is_thinned_and_says_how_many_are_missing() -> None:
    kept: list[str] = []
    clock = [0.0]
    log = ServerLog(kept.append, now=lambda: clock[0])
    for number in range(1_000):
        log.take({"level": "info", "data": f"line {number}" * 500})
    assert len(kept) == BURST and log.dropped == 1_000 - BURST
    assert all(len(line) < 2_100 for line in kept)
    clock[0] += 1.0
    for _ in range(1_000):
        log.take({"level": "info", "data": "later"})
    assert kept[BURST] == f"({1_000 - BURST} messages before this one were left out)"
    assert len(kept) == BURST + 1 + RATE


@pytest.mark.parametrize("data", [None, [[]] * 3, {"a": float("nan")}, "\x1b[2J", 5])
def test_whatever_a_message_holds_it_is_kept_in_words(data: object) -> None:
    kept: list[str] = []
    log = ServerLog(kept.append, "error")
    log.take({"level": "critical", "data": data, "logger": ["no", "name"]})
    log.take({"level": "unheard-of", "data": data})
    assert len(kept) == 1 and kept[0].startswith("critical: ")


@ERAS
def test_progress_keeps_a_long_call_alive_in_either_era(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    steps: list[tuple[float, float | None, str]] = []

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("echo", *era, tool_timeout=3.0))
            result = await b.call(
                "echo__progress",
                {"steps": 8, "pause": 0.45},  # longer than the limit in all
                progress=lambda *step: steps.append(step),
            )
            assert text(result) == "8 steps"

    run(main)
    assert steps[-1] == (8.0, 8.0, "step 8")
    assert [step[0] for step in steps] == sorted(step[0] for step in steps)

"""Print mode: the result on stdout, the rest on stderr, the exit code says how it ended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kage.core.content import Text
from kage.core.errors import AuthFailed
from kage.core.events import (
    ApprovalRequested,
    Event,
    MessageAppended,
    RunEnd,
    RunFinished,
    ServerChanged,
    TextStreamed,
)
from kage.core.messages import UserMessage
from kage.core.servers import Fault, ServerState, ServerStatus, Stage
from kage.core.usage import Usage
from kage.plain.jsonl import to_line
from kage.plain.text import Exit, run, server_failure
from tests.agent.fakes import Bench, fails, says


def printed(bench: Bench, *, as_json: bool = False, required: tuple[str, ...] = ()) -> Exit:
    async def settled() -> None:
        return

    async def work() -> Exit:
        return await run(
            bench.engine,
            "hello",
            as_json=as_json,
            redact=bench.redact,
            settled=settled,
            required=required,
        )

    return asyncio.run(work())


def test_the_answer_alone_is_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(Bench(tmp_path, says("four", "teen"), interactive=False)) is Exit.DONE
    assert capsys.readouterr() == ("fourteen\n", "")


def test_control_characters_of_a_model_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(Bench(tmp_path, says("a\x1b[2Jb"), interactive=False))
    assert capsys.readouterr().out == "a␛[2Jb\n"


def test_json_prints_every_event_as_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(Bench(tmp_path, says("hi\nthere"), interactive=False), as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["type"] == "session_opened"
    assert lines[-1]["type"] == "run_finished"
    assert lines[-1]["end"] == "done"
    texts = [line["text"] for line in lines if line["type"] == "text_streamed"]
    assert texts == ["hi\nthere"]


def test_a_failed_run_says_why_and_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path, fails(AuthFailed("The key was refused", fix="Set KEY.")))
    assert printed(bench) is Exit.FAILED
    assert capsys.readouterr() == ("", "kage: The key was refused. Set KEY.\n")


def test_a_required_server_that_is_down_exits_3_before_the_model_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path, says("never"))
    bench.servers.statuses = lambda: (  # type: ignore[method-assign]
        ServerStatus(name="db", origin="user", state=ServerState.FAILED, since=0.0),
    )
    assert printed(bench, required=("db",)) is Exit.SERVER_DOWN
    assert not bench.provider.requests
    assert "db" in capsys.readouterr().err


def test_a_server_failure_names_stage_reason_last_lines_and_fix() -> None:
    fault = Fault(
        stage=Stage.HANDSHAKE,
        what="it exited with code 3",
        stderr=("boom",),
        fix="Look at its log.",
    )
    status = ServerStatus(
        name="db", origin="user", state=ServerState.FAILED, since=0.0, fault=fault
    )
    assert server_failure(status) == (
        "server db failed (handshake): it exited with code 3\n  | boom\n  Look at its log."
    )


@pytest.mark.parametrize(
    "event",
    [
        MessageAppended(message=UserMessage(content=(Text("\ud800 x"),))),
        TextStreamed(message_id="m", text="\x1b"),
        RunFinished(
            run_id="r",
            end=RunEnd.LIMIT,
            usage=Usage(input=1),
            cost=None,
            turns=1,
            refused=0,
            seconds=0.5,
        ),
        ServerChanged(
            status=ServerStatus(name="a", origin="user", state=ServerState.IDLE, since=0.0),
            previous=None,
        ),
    ],
)
def test_every_event_is_one_line_of_json(event: Event) -> None:
    line = to_line(event)
    assert "\n" not in line
    assert json.loads(line)["type"]


def test_an_event_that_needs_a_person_is_never_sent_without_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("x"), interactive=False)
    printed(bench)
    assert not bench.of(ApprovalRequested)

"""The model of the tests does what its script says, also as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from kage.core.errors import KageError
from tests.llm import ScriptedModel, call, say
from tests.providers.asking import ask, gave, reply, said, tool, wants

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_step_can_answer_by_what_it_is_asked(wire):
    with ScriptedModel(
        [call("read", path="a"), lambda r: say(f"it says {r.last_result}")]
    ) as model:
        [events] = ask(model, wire, wants(tools=[tool()]))
        message = reply(events)
        history = (said("go"), message, gave(message.calls[0].id, "42"))
        [events] = ask(model, wire, wants(*history, tools=[tool()]))
        assert reply(events).text == "it says 42"
        request = model.requests[1]
        assert request.system == "Be brief."
        assert list(request.tools) == ["read"]
        assert model.unused == 0


def test_a_script_that_is_used_up_is_an_error():
    with ScriptedModel([]) as model, pytest.raises(KageError, match="only 0 turns"):
        ask(model, "anthropic")


def test_it_leaves_no_thread():
    before = threading.active_count()
    with ScriptedModel([say("x")]) as model:
        ask(model, "openai")
    assert threading.active_count() == before


def test_it_runs_as_a_process(tmp_path):
    script, record = tmp_path / "script.json", tmp_path / "record.jsonl"
    script.write_text(json.dumps([[{"call": "read", "args": {"path": "a"}}], {"say_result": "! "}]))
    argv = [sys.executable, "-m", "tests.llm", "--script", str(script), "--record", str(record)]
    process = subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        request = urllib.request.Request(f"{address}/v1/messages", data=body)
        with urllib.request.urlopen(request) as answer:
            assert b"tool_use" in answer.read()
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
    assert json.loads(record.read_text())["body"]["model"] == "m"

"""Two kages in one folder at the same time: separate sessions, one whole decision log."""

from __future__ import annotations

import concurrent.futures
import json

from kage.permissions.decisions.log import verify
from tests.llm import ScriptedModel, call, say
from tests.llm.script import Request, Turn
from tests.proof.house import House, running, server
from tests.waiting import wait_for


def _answer(request: Request) -> Turn:
    """Call the tool ten times with the word of the prompt, then say it."""
    content = request.messages[0]["content"]
    word = content if isinstance(content, str) else content[0]["text"]
    count = len(request.results)
    if count < 10:
        return call("srv__echo", text=f"{word}-{count}")
    return say(f"{word} is done")


def test_sessions_never_mix_and_the_log_stays_whole(house: House) -> None:
    house.write(server("srv", "echo"))
    words = ("alpha", "bravo", "charlie")
    with ScriptedModel([], then=_answer) as model:
        house.use(model)
        with concurrent.futures.ThreadPoolExecutor(len(words)) as pool:
            runs = {
                word: pool.submit(house.kage, "-p", word, "--allow", "srv__echo") for word in words
            }
            for word, ended in runs.items():
                assert (ended.result().code, ended.result().out) == (0, f"{word} is done\n")
    files = list((house.data / "sessions").glob("*/session.jsonl"))
    assert len(files) == len(words)
    for file in files:
        text = file.read_text()
        assert [word for word in words if word in text] == [
            word for word in words if f'"{word}"' in text
        ]
        assert sum(word in text for word in words) == 1
        assert all(json.loads(line) for line in text.splitlines())
    assert verify(house.data / "decisions") == []
    records = house.records()
    assert [record["n"] for record in records] == list(range(1, len(records) + 1))
    assert len([r for r in records if r["kind"] == "decision"]) == 10 * len(words)
    sessions = {record["session"] for record in records if record["kind"] == "decision"}
    assert sessions == {file.parent.name for file in files}


def _decided(house: House) -> bool:
    return any(record["kind"] == "decision" for record in house.records())


def test_a_kage_that_is_killed_leaves_a_log_the_next_one_continues(house: House) -> None:
    house.write(server("srv", "echo"))
    turns: list[Turn] = [call("srv__sleep", seconds=30), call("ls")]
    with ScriptedModel(turns, then=say("fine")) as model:
        house.use(model)
        with running(house, "-p", "one", "--allow", "srv__sleep") as process:
            wait_for(lambda: _decided(house), what="the decision is on disk")
            process.kill()
            process.wait()
        house.empty()
        assert house.kage("-p", "two").out == "fine\n"
        first = next(s for s in house.kage("session", "list", "--json").json if s["title"] == "one")
        shown = house.kage("session", "show", first["id"])
        assert "you: one" in shown.out
        resumed = house.kage("-p", "and now?", "--resume", first["id"])
    assert (resumed.code, resumed.out) == (0, "fine\n")
    assert verify(house.data / "decisions") == []
    # the call that was under way has a result, so that the model is not left waiting
    assert model.requests[-1].results

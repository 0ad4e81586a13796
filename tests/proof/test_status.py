"""Other shells ask a running kage how its servers are, and have it restart one."""

from __future__ import annotations

import json
import os
import signal

from tests.llm import ScriptedModel, call, say
from tests.proof.house import House, running, server
from tests.waiting import wait_for


def test_status_watch_and_restart_reach_the_kage_that_runs_here(house: House) -> None:
    house.write(server("good", "echo"), server("bad", "exits", restart="{ enabled = false }"))
    with ScriptedModel([call("good__sleep", seconds=60)], then=say("fine")) as model:
        house.use(model)
        with running(house, "-p", "go", "--allow", "good__sleep") as process:
            wait_for(house.records, what="the call runs")
            told = house.kage("mcp", "status", "--json").json
            assert [(s["name"], s["state"]) for s in told] == [
                ("good", "connected"),
                ("bad", "failed"),
            ]
            first = told[0]["pid"]
            with running(house, "mcp", "status", "--watch", "--json") as watcher:
                assert watcher.stdout is not None
                states = [json.loads(watcher.stdout.readline()) for _ in range(2)]
                assert [line["server"]["name"] for line in states] == ["good", "bad"]
                ended = house.kage("mcp", "restart", "good")
                assert (ended.code, ended.out) == (0, f"good restarted in kage {process.pid}\n")
                while json.loads(watcher.stdout.readline())["server"]["pid"] in (first, None):
                    pass
                ended = house.kage("mcp", "restart", "god")
                assert ended.code != 0
                assert "good" in ended.err
                refused = house.kage("mcp", "restart", "good", environ={"KAGE_AGENT": "1"})
                assert refused.code == 2
                os.killpg(process.pid, signal.SIGTERM)
                assert watcher.wait(20) == 0
                assert watcher.stderr is not None
                assert f"the kage with pid {process.pid} ended" in watcher.stderr.read()
    assert list((house.home / "runtime" / "kage").iterdir()) == []


def test_without_a_running_kage_status_starts_the_servers_and_watch_says_so(house: House) -> None:
    house.write(server("good", "echo"))
    assert [s["state"] for s in house.kage("mcp", "status", "--json").json] == ["connected"]
    ended = house.kage("mcp", "status", "--watch")
    assert ended.code == 2
    assert "No kage runs in" in ended.err

"""Run a scripted model as a process: ``python -m tests.llm --port N --script FILE``.

The first line on stdout is the address. FILE is JSON (a list of turns, each a list of pieces such
as {"say": "hello"}, {"call": "read", "args": {"path": "a"}}, {"think": "hm"}, {"fail": 429},
{"drop": true}, {"pause": 0.2}, {"usage": {"input": 9}}, {"say_result": "got: "}) or a Python file
that defines SCRIPT. It ends when stdin closes or on SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import runpy
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.llm import script as make
from tests.llm.script import Request, Turn
from tests.llm.server import ScriptedModel


def read_script(path: Path) -> list[Turn]:
    """Read the turns from a JSON or Python file."""
    if path.suffix == ".py":
        return list(runpy.run_path(str(path))["SCRIPT"])
    found: list[Turn] = []
    for turn in json.loads(path.read_text("utf-8")):
        found.append([_piece(piece) for piece in (turn if isinstance(turn, list) else [turn])])
    return found


def _piece(data: dict[str, Any]) -> Turn:
    rest = dict(data)
    kind = next(iter(rest))
    value = rest.pop(kind)
    match kind:
        case "say":
            return make.say(value, **rest)
        case "say_result":
            return lambda request: make.say(f"{value}{request.last_result}")
        case "think":
            return make.thinking(value, **rest)
        case "call":
            return make.call_with(value, rest.get("args", {}), call_id=rest.get("id", ""))
        case "call_broken":
            return make.call_broken(value, rest["text"])
        case "fail":
            return make.fail(value, **rest)
        case "drop":
            return make.drop()
        case "pause":
            return make.pause(value)
        case "raw":
            return make.raw(value)
        case "usage":
            return make.usage(**value)
        case "stop":
            return make.stop(value)
        case "stream_error":
            return make.stream_error(**value)
    raise SystemExit(f"unknown piece {kind!r}")


def _until_closed(done: threading.Event) -> None:
    sys.stdin.read()
    done.set()


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.llm")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--record", type=Path, help="append every request as a JSON line")
    parser.add_argument("--repeat", action="store_true", help="the last turn goes on for ever")
    arguments = parser.parse_args()
    turns = read_script(arguments.script)

    def record(request: Request) -> None:
        if arguments.record is not None:
            with arguments.record.open("a", encoding="utf-8") as file:
                line = {"path": request.path, "headers": request.headers, "body": request.body}
                file.write(json.dumps(line) + "\n")

    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    then = turns[-1] if arguments.repeat and turns else None
    with ScriptedModel(turns, then=then, port=arguments.port, on_request=record) as model:
        print(model.base_url, flush=True)
        threading.Thread(target=_until_closed, args=(done,), daemon=True).start()
        while not done.wait(0.2):
            pass


if __name__ == "__main__":
    main()

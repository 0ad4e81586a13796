"""Asks whatever its caller says, in both eras: forms, pages, the model, folders; tells its log.

Tools: ask (method, params), many (count), rounds (count), visit, page, leave, withdraw, log,
crooked (how). ``--again FILE`` keeps what ``ask`` saw in its follow-up.
"""

from __future__ import annotations

import json
import sys
import time
from _thread import start_new_thread
from typing import Any

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import META, Call, Json, RpcError, Server

server = Server("elicit")
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {"message": "Who are you?", "requestedSchema": NAME}
PAGE = {
    "mode": "url",
    "message": "Log in",
    "url": "https://example.com/login",
    "elicitationId": "e1",
}


def modern(call: Call) -> bool:
    return META + "protocolVersion" in (call.params.get("_meta") or {})


def again(requests: Json | None, state: str | None) -> Json:
    asked: Json = {"resultType": "input_required"}
    if requests is not None:
        asked["inputRequests"] = requests
    if state is not None:
        asked["requestState"] = state
    return asked


def wire(method: str, params: Json) -> Any:
    """Send a request and wait for nothing; gives its id."""
    request_id = f"own-{time.monotonic_ns()}"
    server._waiting[request_id] = [Deaf(), {}]
    server.send({"id": request_id, "method": method, "params": params})
    return request_id


class Deaf:
    def release(self) -> None:
        pass


def ask(arguments: Json, call: Call) -> Json | str:
    method = str(arguments.get("method", "elicitation/create"))
    params = arguments.get("params", FORM)
    if not modern(call):
        answer = server.request(method, params)
        return json.dumps(answer.get("result", answer.get("error")), sort_keys=True)
    if "inputResponses" in call.params:
        seen = {key: call.params.get(key) for key in ("arguments", "requestState", "name")}
        if "again" in server.options:
            with open(str(server.options["again"]), "a") as file:
                file.write(json.dumps(seen) + "\n")
        return json.dumps(call.params["inputResponses"]["q"], sort_keys=True)
    return again({"q": {"method": method, "params": params}}, "s\u00e9cret-state \ud83d\ude00")


def many(arguments: Json, call: Call) -> str:
    ids = [wire("elicitation/create", FORM) for _ in range(int(arguments["count"]))]
    wait = float(arguments.get("wait", 20))
    end = time.monotonic() + wait
    held: list[Json] = []
    while time.monotonic() < end:
        held = [server._waiting[request_id][1] for request_id in ids]
        if sum(map(bool, held)) >= int(arguments.get("until", len(ids))):
            break
        call.sleep(0.02)
    actions = [item.get("result", {}).get("action", "error") for item in held if item]
    return json.dumps({name: actions.count(name) for name in sorted(set(actions))})


def rounds(arguments: Json, call: Call) -> Json | str:
    count = int(arguments["count"])
    state = str(call.params.get("requestState", "round-0"))
    done = int(state.removeprefix("round-"))
    if done:
        name = (call.params.get("inputResponses") or {}).get("q", {}).get("content", {})
        call.progress(done, count, f"round {done} {name.get('name', '')}")
    if done >= count:
        return f"done after {done}"
    if arguments.get("silent"):
        return again(None, f"round-{done + 1}")
    return again({"q": {"method": "elicitation/create", "params": FORM}}, f"round-{done + 1}")


def visit(arguments: Json, call: Call) -> str:
    raise RpcError(-32042, "Log in first", {"elicitations": [PAGE]})


def page(arguments: Json, call: Call) -> str:
    answer = server.request("elicitation/create", PAGE)
    for name in ("e0", "e1", "e1"):  # the first was never shown, the last is a double
        server.notify("notifications/elicitation/complete", {"elicitationId": name})
    return json.dumps(answer.get("result", answer.get("error")))


def leave(arguments: Json, call: Call) -> str:
    wire("elicitation/create", FORM)
    return "left it open"


def later(arguments: Json, call: Call) -> str:
    def run() -> None:
        time.sleep(0.3)
        wire("elicitation/create", FORM)

    start_new_thread(run, ())
    return "in a moment"


def withdraw(arguments: Json, call: Call) -> str:
    request_id = wire("elicitation/create", FORM)
    call.sleep(float(arguments.get("pause", 0)))
    server.notify("notifications/cancelled", {"requestId": request_id})
    return "took it back"


def log(arguments: Json, call: Call) -> str:
    for number in range(int(arguments.get("count", 1))):
        level = arguments.get("level", "warning")
        data = arguments.get("data", f"message {number}")
        server.notify("notifications/message", {"level": level, "logger": "db", "data": data})
    return json.dumps((call.params.get("_meta") or {}).get(META + "logLevel"))


def crooked(arguments: Json, call: Call) -> Json | str:
    """Answer a modern call with an ``input_required`` nobody can answer."""
    if "inputResponses" in call.params or "requestState" in call.params:
        return "it went on"
    form = {"method": "elicitation/create", "params": FORM}
    shapes: dict[str, Json] = {
        "nothing": again(None, None),
        "list": {"resultType": "input_required", "inputRequests": [form]},
        "many": again({f"q{number}": form for number in range(500)}, "s"),
        "unknown": again({"q": {"method": "server/whatever", "params": {}}}, "s"),
        "text": again({"q": "what is your name?"}, "s"),
        "sampling": again({"q": {"method": "sampling/createMessage", "params": {}}}, "s"),
        "state": {**again({"q": form}, None), "requestState": {"not": "text"}},
    }
    return shapes[str(arguments["how"])]


TOOLS = {
    "ask": ask, "many": many, "rounds": rounds, "visit": visit, "page": page, "leave": leave,
    "withdraw": withdraw, "later": later, "log": log, "crooked": crooked,
}  # fmt: skip
for title, run in TOOLS.items():
    server.tool(title, run, threaded=True)


def offered(method: str, make: Any) -> Any:
    """Wrap a handshake so that prompts and resources are declared too."""

    def answer(params: Json, message: Json) -> Json:
        result = make(params, message)
        offers: Json = {"prompts": {}, "resources": {}}
        return {**result, "capabilities": {**result["capabilities"], **offers}}

    return answer


def asked_first(answer: Json) -> Any:
    """Answer a request only once a name was given, in the era where requests ask back."""

    def run(params: Json, message: Json) -> Json:
        if "inputResponses" not in params:
            return again({"q": {"method": "elicitation/create", "params": FORM}}, "named")
        said = params["inputResponses"]["q"].get("content", {}).get("name", "nobody")
        made: Json = json.loads(
            json.dumps(answer).replace("NAME", f"{said} {params['requestState']}")
        )
        return made

    return run


PROMPT = {"messages": [{"role": "user", "content": {"type": "text", "text": "I am NAME"}}]}
NOTE = {"contents": [{"uri": "memo://me", "text": "note of NAME"}]}
for name in ("initialize", "server/discover"):
    if name in server.on:
        server.on[name] = offered(name, server.on[name])
server.on["prompts/list"] = lambda params, message: {"prompts": [{"name": "me"}]}
server.on["resources/list"] = lambda params, message: {"resources": [{"uri": "memo://me"}]}
server.on["resources/templates/list"] = lambda params, message: {"resourceTemplates": []}
server.on["prompts/get"] = asked_first(PROMPT)
server.on["resources/read"] = asked_first(NOTE)
server.on["logging/setLevel"] = lambda params, message: {}

if __name__ == "__main__":
    server.run()

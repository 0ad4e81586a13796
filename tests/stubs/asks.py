"""Asks the client during a call: ``what`` is elicit, url, sample, roots, ping or unknown."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, __file__.rpartition("/tests/")[0])
from tests.stubs.base import META, Call, Json, Server

server = Server("asks")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
WORDS = [{"role": "user", "content": {"type": "text", "text": "Say hello"}}]
LOGIN = "https://example.invalid/login"
REQUESTS: dict[str, tuple[str, Json]] = {
    "elicit": ("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}),
    "url": (
        "elicitation/create",
        {"mode": "url", "message": "Log in", "url": LOGIN, "elicitationId": "e1"},
    ),
    "sample": ("sampling/createMessage", {"messages": WORDS, "maxTokens": 100}),
    "roots": ("roots/list", {}),
    "ping": ("ping", {}),
    "unknown": ("server/whatever", {}),
}


def ask(arguments: Json, call: Call) -> Json | str:
    what = str(arguments.get("what", "elicit"))
    method, params = REQUESTS[what]
    if META + "protocolVersion" not in (call.params.get("_meta") or {}):
        answer = server.request(method, params)
        return json.dumps(answer.get("result", answer.get("error")), sort_keys=True)
    if "inputResponses" in call.params:  # 2026-07-28: the client comes back with answers
        return json.dumps(call.params["inputResponses"], sort_keys=True)
    request = {"method": method, "params": params}
    return {
        "resultType": "input_required",
        "inputRequests": {"q": request},
        "requestState": f"state-{what}",
    }


server.tool("ask", ask, properties={"what": {"enum": sorted(REQUESTS)}}, threaded=True)

if __name__ == "__main__":
    server.run()

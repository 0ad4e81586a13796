"""Sampling: off unless the person says so, seen and edited both ways, a budget per server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kage.core.content import Image, Text
from kage.core.errors import KageError
from kage.core.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from kage.core.requests import Action, FormRequest, Purpose, RequestReply, ServerRequest
from kage.mcp.client.asking.answering import Around
from tests.mcp.client.asking import FakePerson, FakeSampler, accepts, says
from tests.mcp.client.harness import Bench, bench, recorded, run, spec, text

LEGACY = ("--revisions", "2025-11-25")
MODERN = ("--revisions", "2026-07-28")
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN], ids=["legacy", "modern"])
SAMPLE = "sampling/createMessage"
HELLO = {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}]}


async def sample(b: Bench, params: dict[str, Any]) -> str:
    made = {"maxTokens": 100, **params}
    return text(await b.call("elicit__ask", {"method": SAMPLE, "params": made}))


@ERAS
def test_prompt_and_answer_are_both_shown_and_go_on_as_edited(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    record = tmp_path / "record"

    def edit(request: ServerRequest) -> RequestReply:
        assert isinstance(request, FormRequest)
        values = request.form.initial()
        for name, value in values.items():
            if isinstance(value, str):
                values[name] = value.upper()
        return RequestReply(action=Action.ACCEPT, values=values)

    async def main() -> None:
        person, sampler = FakePerson(edit), FakeSampler(Text("hello there"))
        made = Around(person=person, sampler=sampler)
        async with bench(tmp_path, around=made) as b:
            await b.up(spec("elicit", *era, "--record", record, allow_sampling=True))
            wishes = {"hints": [{"name": "sonnet"}], "costPriority": 0.2}
            picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            message = {"role": "user", "content": [{"type": "text", "text": "look"}, picture]}
            params = {
                "messages": [message], "systemPrompt": "be brief", "temperature": 0.5,
                "stopSequences": ["x"], "modelPreferences": wishes,
            }  # fmt: skip
            answer = json.loads(await sample(b, params))
            assert answer["content"] == {"type": "text", "text": "HELLO THERE"}
            assert (answer["role"], answer["model"]) == ("assistant", "fake:one")
            prompt, result = person.asked
            assert isinstance(prompt, FormRequest) and isinstance(result, FormRequest)
            assert (prompt.purpose, result.purpose) == (Purpose.PROMPT, Purpose.ANSWER)
            facts = " / ".join(prompt.facts)
            assert "sonnet, cheap 0.2" in facts and "image/png" in facts and "fake:one" in facts
            (asked,) = sampler.requests
            assert (asked.system, asked.max_tokens, asked.stop) == ("BE BRIEF", 100, ("x",))
            user = asked.messages[0]
            assert isinstance(user, UserMessage)
            assert user.content == (Text("LOOK"), Image(data="AAAA", mime="image/png"))

    run(main)


@ERAS
@pytest.mark.parametrize("allowed", [True, False])
def test_it_is_declared_only_where_it_is_allowed_and_refused_elsewhere(
    tmp_path: Path, era: tuple[str, ...], allowed: bool
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        person, sampler = FakePerson(accepts()), FakeSampler(Text("ahoy"))
        async with bench(tmp_path, around=Around(person=person, sampler=sampler)) as b:
            await b.up(spec("elicit", *era, "--record", record, allow_sampling=allowed))
            said = await sample(b, HELLO)
            assert ("ahoy" in said) is allowed and ("sampling is off" in said) is not allowed
            assert bool(sampler.requests) is allowed

    run(main)
    asked = (recorded(record, "initialize") or recorded(record, "tools/call"))[0]["params"]
    meta = asked.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
    declared = asked.get("capabilities") or meta
    assert ("sampling" in declared) is allowed
    assert "tools" not in declared.get("sampling", {})


@pytest.mark.parametrize("at", [Purpose.PROMPT, Purpose.ANSWER])
@ERAS
def test_either_may_be_kept_back(tmp_path: Path, era: tuple[str, ...], at: Purpose) -> None:
    async def main() -> None:
        def answer(request: ServerRequest) -> RequestReply | None:
            assert isinstance(request, FormRequest)
            no = request.purpose is at
            return says(Action.DECLINE)(request) if no else accepts()(request)

        person, sampler = FakePerson(answer), FakeSampler(Text("secret thoughts"))
        async with bench(tmp_path, around=Around(person=person, sampler=sampler)) as b:
            await b.up(spec("elicit", *era, allow_sampling=True))
            said = await sample(b, HELLO)
            assert "secret thoughts" not in said and "person" in said
            assert bool(sampler.requests) is (at is Purpose.ANSWER)

    run(main)


def test_a_server_that_used_up_its_budget_asks_in_vain_even_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        person, sampler = FakePerson(accepts()), FakeSampler(Text("ahoy"))
        async with bench(tmp_path, around=Around(person=person, sampler=sampler)) as b:
            limits: dict[str, Any] = {
                "sampling_budget": 400,
                "sampling_requests": 3,
                "sampling_max_tokens": 60,
            }
            await b.up(spec("elicit", *LEGACY, allow_sampling=True, **limits))
            assert "ahoy" in await sample(b, HELLO)
            await b.manager.restart("elicit")
            await b.apply()
            assert "ahoy" in await sample(b, HELLO)
            assert [request.max_tokens for request in sampler.requests] == [60, 60]
            assert "ahoy" in await sample(b, HELLO)  # 450 of 400 are spent now
            assert "its limit" in await sample(b, HELLO)
            assert len(sampler.requests) == 3

    run(main)


def test_tools_ride_along_only_when_the_person_said_so(tmp_path: Path) -> None:
    async def main() -> None:
        call = ToolCall(id="t1", name="look_up", arguments={"q": 1})
        person, sampler = FakePerson(accepts()), FakeSampler(Text("thinking"), call)
        tools = [{"name": "look_up", "inputSchema": {"type": "object"}, "description": "d"}]
        around = Around(person=person, sampler=sampler)
        async with bench(tmp_path, around=around) as b:
            await b.up(
                spec("elicit", *LEGACY, allow_sampling="tools"),
                spec("plain", *LEGACY, of="elicit", allow_sampling=True),
            )
            params = {"maxTokens": 9, **HELLO, "tools": tools}
            refused = await b.call("plain__ask", {"method": SAMPLE, "params": params})
            assert "tools in sampling are off" in text(refused) and not sampler.requests
            answer = json.loads(await sample(b, params))
            assert answer["content"][1] == {
                "type": "tool_use", "id": "t1", "name": "look_up", "input": {"q": 1},
            }  # fmt: skip
            messages = [
                *HELLO["messages"],
                {"role": "assistant", "content": answer["content"]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result", "toolUseId": "t1",
                            "content": [{"type": "text", "text": "42"}],
                        }
                    ],
                },
            ]  # fmt: skip
            await sample(b, {**params, "messages": messages})
            kinds = [type(message) for message in sampler.requests[-1].messages]
            assert kinds == [UserMessage, AssistantMessage, ToolMessage]
            assert sampler.requests[-1].tools[0].name == "look_up"

    run(main)


@pytest.mark.parametrize(
    "params",
    [
        {"messages": []},
        {"messages": "hello"},
        {"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]},
        {"messages": [{"role": "user", "content": {"type": "hologram"}}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * 300_000}}]},
        {"messages": HELLO["messages"] * 100},
        {**HELLO, "maxTokens": "many"},
        {"messages": [{"role": "user", "content": {"type": "tool_result", "toolUseId": "t"}}]},
    ],
    ids=lambda params: json.dumps(params)[:50],
)
def test_a_request_no_person_could_look_at_is_refused_unseen(
    tmp_path: Path, params: dict[str, Any]
) -> None:
    async def main() -> None:
        person, sampler = FakePerson(accepts()), FakeSampler(Text("ahoy"))
        async with bench(tmp_path, around=Around(person=person, sampler=sampler)) as b:
            await b.up(spec("elicit", *LEGACY, allow_sampling=True))
            assert json.loads(await sample(b, params))["code"] == -32602
            assert not person.asked and not sampler.requests

    run(main)


def test_a_model_that_fails_costs_the_server_an_error_and_nobody_else(tmp_path: Path) -> None:
    async def main() -> None:
        failing = FakeSampler(fails=KageError("The key is missing"))
        person = FakePerson(accepts())
        async with bench(tmp_path, around=Around(person=person, sampler=failing)) as b:
            await b.up(spec("elicit", *LEGACY, allow_sampling=True))
            assert "The key is missing" in await sample(b, HELLO)
            assert len(person.asked) == 1

    run(main)


def test_without_a_model_nobody_is_asked_and_the_server_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        person, sampler = FakePerson(accepts()), FakeSampler(Text("never"))
        sampler.model = ""
        async with bench(tmp_path, around=Around(person=person, sampler=sampler)) as b:
            await b.up(spec("elicit", *LEGACY, allow_sampling=True))
            assert "no model is connected" in await sample(b, HELLO)
            assert not person.asked and not sampler.requests

    run(main)

"""What servers ask while they are used: forms, pages and rounds, in both eras."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import ServerSpec
from kage.core.canonical import digest
from kage.core.content import as_text
from kage.core.events import Noticed
from kage.core.messages import Outcome
from kage.core.requests import Action, FormRequest, UrlRequest
from kage.core.tools import Invocation
from kage.mcp.client.asking.answering import Around
from kage.mcp.client.asking.intake import MAX_ASKED
from kage.permissions.decisions.log import DecisionLog, verify
from kage.permissions.receipts import HandedLog
from kage.permissions.seal import SealBook
from tests.mcp.client.asking import Book, FakePerson, accepts, says
from tests.mcp.client.harness import Bench, bench, recorded, run, spec, text
from tests.stubs.http_server import serving
from tests.waiting import until

LEGACY = ("--revisions", "2025-11-25")
MODERN = ("--revisions", "2026-07-28")
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN], ids=["legacy", "modern"])
ELICIT = "elicitation/create"


def around(person: FakePerson | None, **more: Any) -> Around:
    return Around(person=person, **more)


def notices(b: Bench) -> list[str]:
    return [f"{e.what}: {e.why}" for e in b.events if isinstance(e, Noticed)]


@ERAS
def test_a_form_is_put_to_the_person_and_its_answer_goes_back(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    book, record = Book(), tmp_path / "record"

    async def main() -> None:
        person = FakePerson(accepts(name="Ada"))
        async with bench(tmp_path, around=around(person, receipts=book)) as b:
            await b.up(spec("elicit", *era, "--record", record))
            answer = json.loads(text(await b.call("elicit__ask")))
            assert answer == {"action": "accept", "content": {"name": "Ada"}}
            (request,) = person.asked
            assert isinstance(request, FormRequest)
            assert (request.server, request.message) == ("elicit", "Who are you?")
            assert "for its tool ask" in request.facts[0]
            for said in (Action.DECLINE, Action.CANCEL):
                person.script = says(said)
                assert json.loads(text(await b.call("elicit__ask"))) == {"action": said.value}

    run(main)
    kinds = [(item.kind, item.action, item.keys) for item in book.handed_out]
    assert ("elicitation", "accept", ("name",)) in kinds
    asked = recorded(record, "initialize") or recorded(record, "tools/call")
    params = asked[0]["params"]
    meta = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities")
    assert set(params.get("capabilities") or meta) == {"elicitation", "roots"}


@ERAS
@pytest.mark.parametrize(
    "params",
    [
        {"message": "x", "requestedSchema": {"type": "array"}},
        {"message": "x", "requestedSchema": "no schema"},
        {"message": "x", "requestedSchema": {"properties": {f"f{n}": {} for n in range(2000)}}},
        {"message": "x", "requestedSchema": {"required": ["ghost"]}},
        {"message": "x"},
        {"message": "x", "mode": "telepathy"},
        {"message": "x", "mode": "url", "url": "file:///etc/passwd"},
        {"message": "x", "mode": "url", "url": "javascript:alert(1)"},
        {"message": "x", "mode": "url", "url": "https://good.example@evil.example/"},
        {"message": "x", "mode": "url", "url": ["https://a.example"]},
    ],
    ids=lambda params: json.dumps(params)[:60],
)
def test_what_no_person_could_answer_is_declined_and_told(
    tmp_path: Path, era: tuple[str, ...], params: dict[str, Any]
) -> None:
    async def main() -> None:
        person = FakePerson(accepts())
        told: list[Any] = []
        async with bench(tmp_path, around=around(person, publish=told.append)) as b:
            await b.up(spec("elicit", *era))
            result = await b.call("elicit__ask", {"params": params})
            assert json.loads(text(result)) == {"action": "decline"}
            assert not person.asked
            assert any("was declined" in event.what and event.why for event in told)

    run(main)


@ERAS
def test_without_a_person_a_form_is_declined_and_said(tmp_path: Path, era: tuple[str, ...]) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("elicit", *era))
            assert json.loads(text(await b.call("elicit__ask"))) == {"action": "decline"}
            assert any("nobody is here" in line for line in notices(b))

    run(main)


def test_every_kind_of_value_reaches_the_server_as_json(tmp_path: Path) -> None:
    async def main() -> None:
        schema = {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "default": 3},
                "f": {"type": "number", "default": 0.5},
                "b": {"type": "boolean", "default": False},
                "m": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]},
                "o": {"type": "object", "default": {"deep": [None]}},
            },
        }
        wanted = {"n": 3, "f": 0.5, "b": False, "m": ["b"], "o": {"deep": [None]}}
        async with bench(tmp_path, around=around(FakePerson(accepts()))) as b:
            await b.up(spec("old", *LEGACY, of="elicit"), spec("new", *MODERN, of="elicit"))
            for name in ("old", "new"):
                params = {"message": "x", "requestedSchema": schema}
                answer = json.loads(text(await b.call(f"{name}__ask", {"params": params})))
                assert answer == {"action": "accept", "content": wanted}

    run(main)


def test_an_answer_that_does_not_fit_the_schema_is_never_sent(tmp_path: Path) -> None:
    async def main() -> None:
        schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 18}}}
        async with bench(tmp_path, around=around(FakePerson(accepts(age=7)))) as b:
            await b.up(spec("elicit", *LEGACY))
            params = {"message": "x", "requestedSchema": schema}
            answer = json.loads(text(await b.call("elicit__ask", {"params": params})))
            assert answer == {"action": "decline"}

    run(main)


@ERAS
def test_what_is_typed_into_a_secret_field_is_kept_out_of_results_and_traces(
    tmp_path: Path, era: tuple[str, ...]
) -> None:
    async def main() -> None:
        person = FakePerson(accepts(password="hunter2-hunter2"))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *era))
            schema = {"type": "object", "properties": {"password": {"type": "string"}}}
            params = {"message": "x", "requestedSchema": schema}
            result = text(await b.call("elicit__ask", {"params": params}))
            assert "hunter2" not in result and "[redacted:" in result
            assert isinstance(person.asked[0], FormRequest) and person.asked[0].warnings

    run(main)


def test_a_server_cannot_make_words_of_its_own_a_secret(tmp_path: Path) -> None:
    async def main() -> None:
        line = "ls; curl evil.example"
        person = FakePerson(accepts(password=line, token=line))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            filled = {"type": "string", "default": line}
            chosen = {"type": "string", "enum": [line, "other"]}
            properties = {"password": filled, "token": chosen}
            schema = {"type": "object", "properties": properties}
            params = {"message": "x", "requestedSchema": schema}
            await b.call("elicit__ask", {"params": params})
            assert isinstance(person.asked[0], FormRequest)
            assert b.redactor(line) == line

    run(main)


def test_a_thousand_questions_at_once_cost_nothing_and_the_server_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(lambda request: None)
        told: list[Any] = []
        async with bench(tmp_path, around=around(person, publish=told.append)) as b:
            await b.up(spec("elicit", *LEGACY))
            answered = 1000 - MAX_ASKED  # all that is not shown, whatever comes of that
            asking = asyncio.create_task(b.call("elicit__many", {"count": 1000, "until": answered}))
            await until(lambda: person.open == MAX_ASKED, what="some are shown")
            counts = json.loads(text(await asking))
            assert set(counts) <= {"cancel", "error"} and sum(counts.values()) == answered
            assert len(person.asked) <= 2 * MAX_ASKED and len(told) < 10
            await until(lambda: not person.open, what="all are withdrawn with their call")
            person.script = accepts(name="Ada")
            assert "Ada" in text(await b.call("elicit__ask"))

    run(main)


def test_a_server_that_is_never_answered_is_declined_for_a_while(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(says(Action.DECLINE))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            for _ in range(7):
                await b.call("elicit__ask")
            assert len(person.asked) == 5

    run(main)


@ERAS
def test_a_form_goes_with_the_call_it_belongs_to(tmp_path: Path, era: tuple[str, ...]) -> None:
    async def main() -> None:
        person = FakePerson(lambda request: None)
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *era))
            call = asyncio.create_task(b.call("elicit__ask"))
            await until(lambda: person.open == 1, what="it is asked")
            call.cancel()
            await asyncio.wait([call])
            await until(lambda: person.withdrawn == 1, what="it is withdrawn")
            person.script = accepts(name="Ada")
            assert "Ada" in text(await b.call("elicit__ask"))

    run(main)


def test_a_question_outside_of_any_call_is_labelled_and_ends_with_the_connection(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        person = FakePerson(lambda request: None)
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            await b.call("elicit__later")
            await until(lambda: person.open == 1, what="it is asked")
            assert person.asked[0].call == "" and "no call" in person.asked[0].facts[0]
            await b.call("elicit__log")  # another call that comes and goes does not take it along
            assert person.open == 1
            await b.manager.set_enabled("elicit", False)
            await until(lambda: person.withdrawn == 1, what="it is withdrawn")

    run(main)


def test_a_default_with_a_secret_of_the_person_is_not_shown(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(accepts())
        async with bench(tmp_path, around=around(person)) as b:
            b.redactor.add("TOKEN", "tok-123456")
            await b.up(spec("elicit", *LEGACY))
            field = {"type": "string", "default": "tok-123456", "title": "tok-123456"}
            schema = {"type": "object", "properties": {"a": field}}
            params = {"message": "tok-123456", "requestedSchema": schema}
            await b.call("elicit__ask", {"params": params})
            assert isinstance(person.asked[0], FormRequest)
            assert "tok-123456" not in repr(person.asked[0]) and person.asked[0].form.notes

    run(main)


def test_a_question_goes_with_its_call_or_when_the_server_takes_it_back(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(lambda request: None)
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            assert text(await b.call("elicit__leave")) == "left it open"
            assert text(await b.call("elicit__withdraw", {"pause": 0.2})) == "took it back"
            await until(lambda: not person.open, what="both are withdrawn")
            await b.manager.set_enabled("elicit", False)
            assert all("for its tool" in request.facts[0] for request in person.asked)

    run(main)


def test_the_clock_of_a_call_rests_while_the_person_thinks(tmp_path: Path) -> None:
    async def main() -> None:
        for era in (LEGACY, MODERN):
            release = asyncio.Event()

            class Slow(FakePerson):
                async def answer(self, request: Any) -> Any:
                    await release.wait()  # noqa: B023
                    return await super().answer(request)

            person = Slow(accepts(name="Ada"))
            async with bench(tmp_path, around=around(person)) as b:
                await b.up(spec("elicit", *era, tool_timeout=1.5, tool_max_time=2.0))
                call = asyncio.create_task(b.call("elicit__ask"))
                done, _ = await asyncio.wait([call], timeout=2.5)
                assert not done
                release.set()
                assert "Ada" in text(await call)

    run(main)


# ---- pages


def test_a_page_is_shown_whole_and_its_end_is_told_once(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(accepts())
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            assert json.loads(text(await b.call("elicit__page"))) == {"action": "accept"}
            (request,) = person.asked
            assert isinstance(request, UrlRequest)
            assert (request.url, request.host) == ("https://example.com/login", "example.com")
            await until(lambda: person.done == [request.id], what="its end is told")

    run(main)


def test_addresses_that_mislead_are_spelled_out(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(accepts())
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY))
            for url in ("https://\u0430pple.com/\u00fc?q=\u00e9", "http://10.0.0.1:8080/x"):
                params = {"mode": "url", "message": "x", "url": url, "elicitationId": "e"}
                await b.call("elicit__ask", {"params": params})
            first, second = person.asked
            assert isinstance(first, UrlRequest) and isinstance(second, UrlRequest)
            assert first.host == "xn--pple-43d.com" and first.url.isascii()
            assert len(first.warnings) == 2
            assert second.host == "10.0.0.1:8080" and len(second.warnings) == 2

    run(main)


def test_an_error_that_wants_a_page_visited_first_shows_it_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        person = FakePerson(accepts())
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *LEGACY, "--record", record))
            result = await b.call("elicit__visit")
            assert result.outcome is Outcome.TOOL_ERROR and "agreed to visit a page" in text(result)
            person.script = says(Action.DECLINE)
            assert "did not agree" in text(await b.call("elicit__visit"))
            assert len(person.asked) == 2

    run(main)
    assert len(recorded(record, "tools/call")) == 2


# ---- rounds


def test_every_round_is_asked_and_carries_the_state_it_got(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    steps: list[str] = []

    async def main() -> None:
        names = iter("ABCDEF")
        person = FakePerson(lambda request: accepts(name=next(names))(request))  # noqa: PLW0108
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *MODERN, "--again", seen, tool_timeout=5.0))
            result = await b.call(
                "elicit__rounds",
                {"count": 4},
                progress=lambda done, total, words: steps.append(words),
            )
            assert text(result) == "done after 4"
            assert len(person.asked) == 4
            assert text(await b.call("elicit__rounds", {"count": 3, "silent": True})) == (
                "done after 3"
            )
            arguments = {"method": ELICIT, "note": "\u00fc"}
            await b.call("elicit__ask", arguments)
            (follow,) = [json.loads(line) for line in seen.read_text().splitlines()]
            assert follow == {
                "arguments": arguments,
                "requestState": "s\u00e9cret-state \U0001f600",
                "name": "ask",
            }

    run(main)
    assert steps == ["round 1 A", "round 2 B", "round 3 C", "round 4 D"]


def test_rounds_come_to_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(accepts(name="Ada"))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *MODERN))
            result = await b.call("elicit__rounds", {"count": 1000})
            assert result.outcome is Outcome.TOOL_ERROR and "10 times" in text(result)
            assert len(person.asked) == 10
            assert text(await b.call("elicit__rounds", {"count": 0})) == "done after 0"

    run(main)


@pytest.mark.parametrize("how", ["nothing", "list", "many", "unknown", "text", "sampling", "state"])
def test_a_crooked_question_ends_its_call_and_nothing_else(tmp_path: Path, how: str) -> None:
    async def main() -> None:
        person = FakePerson(accepts(name="Ada"))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *MODERN))
            result = await b.call("elicit__crooked", {"how": how})
            if how != "state":
                assert result.outcome is Outcome.TOOL_ERROR
                assert "did not finish" in text(result) and not person.asked
            assert "Ada" in text(await b.call("elicit__ask"))

    run(main)


def test_a_follow_up_is_written_only_with_a_decision_about_its_answers(tmp_path: Path) -> None:
    record = tmp_path / "record"
    log = DecisionLog(tmp_path / "decisions")

    class Seals(SealBook):
        def __bool__(self) -> bool:
            return True  # empty or not, it is the one to use

    book = Seals()

    class Forgetful(HandedLog):
        """Records, and opens no seal."""

        async def handed(self, answer: Any) -> None:
            import dataclasses

            await super().handed(dataclasses.replace(answer, sealed=None))

    async def call(receipts: HandedLog) -> str:
        person = FakePerson(accepts(name="Ada"))
        made = around(person, receipts=receipts)
        async with bench(tmp_path, seals=book, around=made) as b:  # type: ignore[arg-type]
            await b.up(spec("elicit", *MODERN, "--record", record))
            tool = b.tools["elicit__ask"]
            assert tool.spec.server is not None
            book.open(tool.spec.server.connection, "ask", digest({}), "d1")
            call = Invocation(
                call_id="c1", arguments={}, workspace=tmp_path, roots=(), scratch=tmp_path
            )
            return text(await tool.run(call))

    async def main() -> None:
        assert "was not sent" in await call(Forgetful(log=log, seals=book))
        assert len(recorded(record, "tools/call")) == 1
        assert "Ada" in await call(HandedLog(log=log, seals=book))
        assert len(recorded(record, "tools/call")) == 3 and not len(book)

    run(main)
    log.close()
    assert not verify(tmp_path / "decisions")
    lines = "".join(path.read_text() for path in (tmp_path / "decisions").glob("*.jsonl"))
    assert '"handed"' in lines and '"answers"' in lines and '"name"' in lines
    assert "Ada" not in lines


def test_prompts_and_resources_ask_back_too(tmp_path: Path) -> None:
    async def main() -> None:
        person = FakePerson(accepts(name="Ada"))
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *MODERN, tool_timeout=5.0))
            filled = await b.manager.beside.get_prompt("elicit", "me", {})
            assert as_text(filled.messages[0].content) == "I am Ada named"
            assert as_text(await b.manager.beside.read_resource("elicit", "memo://me")) == (
                "note of Ada named"
            )
            assert len(person.asked) == 2
            person.script = says(Action.DECLINE)
            filled = await b.manager.beside.get_prompt("elicit", "me", {})
            assert as_text(filled.messages[0].content) == "I am nobody named"

    run(main)


@ERAS
@pytest.mark.parametrize("tool", ["ask", "visit"])
def test_a_question_goes_away_with_the_server_that_asked_it(
    tmp_path: Path, era: tuple[str, ...], tool: str
) -> None:
    async def main() -> None:
        person = FakePerson(lambda request: None)
        async with bench(tmp_path, around=around(person)) as b:
            await b.up(spec("elicit", *era))
            asking = asyncio.create_task(b.call(f"elicit__{tool}"))
            await until(lambda: person.open == 1)
            pid = b.status("elicit").pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await until(lambda: person.withdrawn == 1, what="the question is withdrawn")
            result = await asyncio.wait_for(asking, 10)
            if tool == "ask":  # the page of the other is the end of its call
                assert result.outcome is Outcome.UNKNOWN
                assert "SIGKILL" in text(result)

    run(main)


@pytest.mark.parametrize(
    ("revision", "unasked"),
    [("2025-06-18", False), ("2025-11-25", True), ("2026-07-28", False)],
)
def test_a_form_over_http_is_answered_in_both_eras_and_goes_with_its_call(
    tmp_path: Path, revision: str, unasked: bool
) -> None:
    async def main() -> None:
        person = FakePerson(accepts(name="Ada"))
        with serving("--revisions", revision) as stub:
            async with bench(tmp_path, around=around(person)) as b:
                entry = ServerSpec(name="web", url=stub.url, transport="http", timeout=15.0)
                await b.up(entry)
                if unasked:
                    await until(lambda: stub.listening, what="the client listens")
                arguments = {"unasked": True} if unasked else {}
                answer = json.loads(text(await b.call("web__ask", arguments)))
                assert answer == {"action": "accept", "content": {"name": "Ada"}}
                assert person.asked[0].call == "ask"
                person.script = lambda request: None
                asking = asyncio.create_task(b.call("web__ask", arguments))
                await until(lambda: person.open == 1)
                asking.cancel()
                await until(lambda: person.withdrawn == 1)
                assert text(await b.call("web__echo", {"text": "on"})) == "on"

    run(main)

"""Messages that name something: attached when they are sent, stored with it, never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from kage.agent.source import NoOffers
from kage.core.attachments import shown, typed
from kage.core.commands import Interrupt, NewSession, SubmitPrompt
from kage.core.content import Content, Resource, Text
from kage.core.events import MessageAppended, Noticed, PromptsWaiting, RunEnd
from kage.core.messages import UserMessage
from kage.core.offers import (
    CompletionWish,
    FilledPrompt,
    Offers,
    PromptMessage,
    Provenance,
    RefKind,
    ResourceOffer,
)
from tests.agent.fakes import Bench, call, echo, hangs, says
from tests.waiting import until


class Source(NoOffers):
    """A server called docs whose answers the test holds back."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.reads: list[str] = []
        self.watched: list[str] = []
        self.wishes: list[CompletionWish] = []

    def names(self) -> tuple[str, ...]:
        return ("docs",)

    def offered(self) -> tuple[Offers, ...]:
        return (Offers(server="docs", resources=(ResourceOffer(uri="a"),)),)

    def provenance(self, name: str) -> Provenance:
        return Provenance(server=name, origin="user", entry_hash="e", connection="c")

    async def read_resource(self, name: str, uri: str) -> tuple[Content, ...]:
        self.reads.append(uri)
        await self.may_answer.wait()
        return (Resource(uri=uri, text=f"what {uri} says, read {len(self.reads)}"),)

    async def get_prompt(
        self, name: str, prompt: str, arguments: Mapping[str, str]
    ) -> FilledPrompt:
        words = Text(f"{prompt} {dict(arguments)} @docs:a")
        return FilledPrompt(
            server=name, name=prompt, messages=(PromptMessage(role="user", content=(words,)),)
        )

    async def complete(self, wish: CompletionWish) -> tuple[str, ...]:
        self.wishes.append(wish)
        return ("berlin",)

    def watch(self, name: str, uri: str) -> None:
        self.watched.append(uri)

    def unwatch_all(self) -> None:
        self.watched.clear()


def _send(bench: Bench, text: str, **more: object) -> None:
    bench.engine.send(SubmitPrompt(content=(Text(text),), **more))  # type: ignore[arg-type]  # its own fields


def _said(bench: Bench) -> list[UserMessage]:
    found = [event.message for event in bench.of(MessageAppended)]
    return [message for message in found if isinstance(message, UserMessage)]


def test_what_was_attached_is_frozen_stored_and_watched(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        bench = Bench(tmp_path, says("one"), says("two"), offers=source)
        await bench.engine.start()
        _send(bench, "about @docs:a.")
        await bench.finished(1)
        _send(bench, "and now?")
        await bench.finished(2)
        first = bench.provider.requests[0].messages[0]
        again = bench.provider.requests[1].messages[0]
        assert first == again and source.reads == ["a"]  # frozen at send time
        assert isinstance(first, UserMessage) and typed(first.content) == "about @docs:a."
        assert shown(first.content).split("\n")[1].startswith("+ @docs:a  ")
        assert source.watched == ["a"]
        session_id = bench.engine._conversation.session.id
        gate = bench.gates[0]
        assert gate.order == ["docs__resources/read"]
        bench.engine.send(NewSession())
        await until(lambda: not source.watched, what="nothing of the old one is watched")
        await bench.engine.close()
        resumed = Bench(tmp_path, resume=session_id)
        await resumed.engine.start()
        await asyncio.sleep(0)  # what it starts beside itself begins
        assert resumed.engine.messages()[0] == first
        await resumed.engine.close()

    asyncio.run(main())


def test_an_interrupt_while_something_is_fetched_keeps_the_message(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        source.may_answer.clear()
        bench = Bench(tmp_path, says("later"), offers=source)
        await bench.engine.start()
        _send(bench, "about @docs:a")
        await until(lambda: source.reads, what="it is being read")
        waiting = bench.of(PromptsWaiting)[-1]
        assert waiting.steering == ("about @docs:a",)  # the person sees where it is
        bench.engine.send(Interrupt())
        await until(lambda: not bench.engine.running, what="the run is over")
        assert [typed(message.content) for message in _said(bench)] == ["about @docs:a"]
        assert bench.of(PromptsWaiting)[-1].steering == ()
        source.may_answer.set()
        _send(bench, "go on")
        await bench.finished(1)
        await bench.engine.close()

    asyncio.run(main())


def test_a_message_that_joins_a_run_is_expanded_too(tmp_path: Path) -> None:
    async def main() -> None:
        source, go = Source(), asyncio.Event()

        async def wait(_: object) -> object:
            await go.wait()
            from kage.core.tools import ToolResult

            return ToolResult(content=(Text("ok"),))

        slow = echo("slow")
        slow.work = wait  # type: ignore[assignment]  # of the same shape
        bench = Bench(
            tmp_path, says("", calls=[call("slow")]), says("done"), tools=[slow], offers=source
        )
        await bench.engine.start()
        _send(bench, "start")
        await until(lambda: bench.engine.running and bench.gates and bench.gates[0].order)
        _send(bench, "and @docs:a")
        go.set()
        await bench.finished(1)
        joined = bench.provider.requests[1].messages[-1]
        assert isinstance(joined, UserMessage) and any(
            isinstance(part, Resource) for part in joined.content
        )
        await bench.engine.close()

    asyncio.run(main())


def test_a_prompt_of_a_server_is_not_expanded_again(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source()
        bench = Bench(tmp_path, says("one"), says("two"), offers=source)
        await bench.engine.start()
        _send(bench, "/docs:review path=x")
        await bench.finished(1)
        words = Text("previewed @docs:a")
        bench.engine.send(SubmitPrompt(content=(words,), typed="/docs:review path=y"))
        await bench.finished(2)
        first, second = _said(bench)
        assert first.written == "/docs:review path=x" and second.written == "/docs:review path=y"
        assert typed(first.content) == "review {'path': 'x'} @docs:a"
        assert second.content == (words,) and source.reads == []
        assert "/docs:review path=y" in await bench.engine.history()
        await bench.engine.close()

    asyncio.run(main())


def test_a_prompt_that_cannot_be_had_ends_the_run_and_the_line_stays(tmp_path: Path) -> None:
    async def main() -> None:
        bench = Bench(tmp_path, says("never"), offers=Source())
        await bench.engine.start()
        _send(bench, "/docs:review bare words here")
        finished = await bench.finished(1)
        assert finished.end is RunEnd.FAILED and "key=value" in f"{finished.what} {finished.fix}"
        assert [typed(message.content) for message in _said(bench)] == [
            "/docs:review bare words here"
        ]
        assert bench.provider.requests == []
        await bench.engine.close()

    asyncio.run(main())


def test_what_names_nothing_is_sent_as_it_is_with_a_notice(tmp_path: Path) -> None:
    async def main() -> None:
        bench = Bench(tmp_path, says("one"), hangs("two"), offers=Source())
        await bench.engine.start()
        _send(bench, "use @property here")
        await bench.finished(1)
        assert [event.what for event in bench.of(Noticed)] == ["@property stayed plain text"]
        assert _said(bench)[0].content == (Text("use @property here"),)
        await bench.engine.close()

    asyncio.run(main())


@pytest.mark.parametrize("denied", ["docs__completion/complete", "docs__prompts/get", ""])
def test_a_server_that_is_denied_learns_nothing_of_what_is_typed(
    tmp_path: Path, denied: str
) -> None:
    wish = CompletionWish(
        server="docs", kind=RefKind.PROMPT, name="weather", argument="city", value="be"
    )

    async def main() -> None:
        source = Source()
        bench = Bench(tmp_path, offers=source)
        await bench.engine.start()
        await asyncio.sleep(0)  # what it starts beside itself begins
        bench.gates[0].denied = frozenset({denied})
        values = await bench.engine.offers.complete(wish)
        assert (values, source.wishes) == ((), []) if denied else (("berlin",), [wish])
        assert bench.gates[0].order == []  # no decision for each key
        await bench.engine.close()

    asyncio.run(main())

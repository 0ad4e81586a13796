"""Prompts, resources and templates of real servers, in both eras."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kage.core.content import Resource, Text
from kage.core.errors import ServerError
from kage.core.events import Noticed, ServerChanged
from kage.core.offers import CompletionWish, Offers, RefKind
from kage.core.servers import ServerState
from kage.mcp.client.offers.lists import MAX_OFFERS, OfferLists
from tests.mcp.client.harness import Bench, bench, recorded, run, spec
from tests.waiting import until

ERAS = ("2024-11-05", "2025-11-25", "2026-07-28")


def _offers(b: Bench, name: str = "offers") -> Offers:
    return next(
        (held for held in b.manager.beside.offered() if held.server == name), Offers(server="")
    )


def _notices(b: Bench) -> list[str]:
    return [event.what for event in b.events if isinstance(event, Noticed)]


@pytest.mark.parametrize("era", ERAS)
def test_everything_a_server_offers_is_listed_read_filled_in_and_completed(
    tmp_path: Path, era: str
) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("offers", "--revisions", era, "--page", 2))
            held = await b.manager.beside.listed("offers")
            assert [each.uri for each in held.resources][:3] == [
                f"memo://note/{number}" for number in range(3)
            ]
            assert held.templates[0].template == "weather://{city}"
            review = next(each for each in held.prompts if each.name == "review")
            assert [(arg.name, arg.required) for arg in review.arguments] == [
                ("path", True),
                ("depth", False),
            ]
            status = b.status("offers")
            assert (status.prompts, status.resources, status.templates) == (3, 6, 2)

            (note,) = await b.manager.beside.read_resource("offers", "memo://note/1")
            assert isinstance(note, Resource) and note.text is not None
            assert note.text.startswith("text of memo://note/1")
            (pixel,) = await b.manager.beside.read_resource("offers", "memo://pixel")
            assert isinstance(pixel, Resource) and pixel.mime == "image/png" and pixel.blob

            filled = await b.manager.beside.get_prompt("offers", "review", {"path": "a.py"})
            assert filled.messages[0].content == (Text("Review a.py to depth 1. @memo.txt"),)
            talk = await b.manager.beside.get_prompt("offers", "talk", {})
            assert [item.role for item in talk.messages] == [
                *("user", "assistant", "user", "user", "user")
            ]
            assert "cannot read" in str(talk.messages[-1].content)

            wish = CompletionWish(
                server="offers",
                kind=RefKind.TEMPLATE,
                name="day://{city}/{day}",
                argument="day",
                value="",
                known={"city": "bern"},
            )
            assert await b.manager.beside.complete(wish) == ("bern-monday",)
            many = CompletionWish(
                server="offers", kind=RefKind.PROMPT, name="review", argument="depth", value=""
            )
            assert len(await b.manager.beside.complete(many)) == 100

    run(main)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_what_is_not_there_is_said_with_what_to_do(tmp_path: Path, era: str) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(
                spec("offers", "--revisions", era),
                spec("echo"),
                spec("stuck", "--stuck", "resources/read", of="offers", tool_timeout=1.5),
            )
            with pytest.raises(ServerError) as missing:
                await b.manager.beside.read_resource("offers", "memo://nowhere")
            assert "Resource not found" in missing.value.why
            assert "kage mcp resources offers" in missing.value.fix
            with pytest.raises(ServerError) as unknown:
                await b.manager.beside.get_prompt("offers", "nothing", {})
            assert "kage mcp prompts offers" in unknown.value.fix
            with pytest.raises(ServerError, match="no resources"):
                await b.manager.beside.read_resource("echo", "memo://note/1")
            with pytest.raises(ServerError, match="no prompts"):
                await b.manager.beside.get_prompt("echo", "review", {})
            with pytest.raises(ServerError) as odd:
                await b.manager.beside.read_resource("offers", "memo://odd")
            assert "no contents" in odd.value.why
            with pytest.raises(ServerError) as silent:
                await b.manager.beside.read_resource("stuck", "memo://note/1")
            assert "did not answer within 1.5 s" in silent.value.why
            with pytest.raises(ServerError):
                await b.manager.beside.read_resource("offers", "x" * 9_000)
            (note,) = await b.manager.beside.read_resource("offers", "memo://note/1")
            assert isinstance(note, Resource)  # the connection is as good as before

    run(main)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_changed_lists_are_fetched_again_once_for_a_storm(tmp_path: Path, era: str) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("offers", "--revisions", era, "--record", record))
            await b.manager.beside.listed("offers")
            if era == "2026-07-28":
                await until(lambda: recorded(record, "subscriptions/listen"), what="it listens")
                asked = recorded(record, "subscriptions/listen")[0]["params"]["notifications"]
                assert asked["promptsListChanged"] and asked["resourcesListChanged"]
            before = len(recorded(record, "resources/list"))
            await b.call("offers__change", {"what": "resources", "count": 300})
            await until(lambda: len(_offers(b).resources) == 7, what="the new resource")
            lists = len(recorded(record, "resources/list")) - before
            assert 1 <= lists <= 4
            assert len(recorded(record, "prompts/list")) == 1  # those did not change
            assert b.status("offers").resources == 7

            def told() -> list[int]:
                return [e.status.resources for e in b.events if isinstance(e, ServerChanged)]

            await until(lambda: told()[-1] == 7)
            await b.call("offers__change", {"what": "prompts"})
            await until(lambda: len(_offers(b).prompts) == 4, what="the new prompt")

    run(main)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_a_watched_resource_that_changes_is_told_once_and_again_after_it_is_read_anew(
    tmp_path: Path, era: str
) -> None:
    record = tmp_path / "record"
    method = "subscriptions/listen" if era == "2026-07-28" else "resources/subscribe"

    def watching(uri: str) -> bool:
        return any(uri in str(message["params"]) for message in recorded(record, method))

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("offers", "--revisions", era, "--record", record))
            b.manager.beside.watch("offers", "memo://note/1")
            await until(lambda: watching("memo://note/1"), what="the subscription")
            await b.call("offers__touch", {"uri": "memo://note/0", "count": 5})
            await b.call("offers__touch", {"uri": "memo://note/1", "count": 50})
            await until(lambda: _notices(b), what="the notice")
            await b.call("offers__touch", {"uri": "memo://note/1"})
            assert _notices(b) == ["offers:memo://note/1 changed since you attached it"]
            b.manager.beside.watch("offers", "memo://note/1")
            await b.call("offers__touch", {"uri": "memo://note/1/part"})  # one below it
            await until(lambda: len(_notices(b)) == 2, what="the second notice")

            await b.manager.restart("offers")
            await b.apply()
            both = "the new process watches what the old one did"
            await until(
                lambda: str(recorded(record, method)).count("memo://note/1") >= 2, what=both
            )
            b.manager.beside.watch("offers", "memo://note/2")
            await until(lambda: watching("memo://note/2"), what="the second subscription")
            b.manager.beside.unwatch_all()
            if era != "2026-07-28":
                await until(lambda: recorded(record, "resources/unsubscribe"), what="the end")

    run(main)


def test_a_server_that_cannot_tell_of_changes_is_not_asked_to(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("offers", "--plain", "--record", record))
            b.manager.beside.watch("offers", "memo://note/1")
            wish = CompletionWish(
                server="offers", kind=RefKind.PROMPT, name="review", argument="path", value=""
            )
            assert await b.manager.beside.complete(wish) == ()
            await b.manager.beside.read_resource("offers", "memo://note/1")
            assert not recorded(record, "resources/subscribe")
            assert "memo" not in str(recorded(record, "subscriptions/listen"))
            assert not recorded(record, "completion/complete")

    run(main)


def test_hostile_lists_cost_only_their_bad_entries(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(
                spec("bad", "--bad", of="offers"),
                spec("loop", "--loop", "--page", 1, of="offers"),
                spec("many", "--resources", 12_000, of="offers"),
                spec("stuck", "--stuck", "prompts/list", of="offers"),
            )
            bad = await b.manager.beside.listed("bad")
            assert [each.uri for each in bad.resources] == [
                *("memo://note/0", "memo://note/1", "memo://note/2"),
                *("memo://pixel", "memo://huge", "memo://injection"),
            ]
            assert [each.name for each in bad.prompts] == ["hello", "review", "talk"]
            reasons = "\n".join(bad.dropped)
            for why in ("no name", "came before", "control or invisible", "longer than"):
                assert why in reasons
            assert "\x1b" not in reasons and "\u202e" not in reasons

            loop = await b.manager.beside.listed("loop")
            assert any("circles" in reason for reason in loop.dropped)
            many = await b.manager.beside.listed("many")
            assert len(many.resources) == MAX_OFFERS
            assert any("that is the limit" in reason for reason in many.dropped)
            # one list that never comes neither keeps the tools back nor the other lists
            assert b.status("stuck").state is ServerState.CONNECTED
            assert "stuck__change" in b.tools

    run(main)


def test_a_sleeping_server_offers_what_it_had_and_wakes_to_be_read(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            entry: dict[str, Any] = {"start": "lazy", "idle_timeout": 0.2}
            await b.up(spec("offers", "--record", record, **entry))
            await b.state("offers", ServerState.IDLE)
            assert len(_offers(b).resources) == 6
            (note,) = await b.manager.beside.read_resource("offers", "memo://note/0")
            assert isinstance(note, Resource)
            assert len(recorded(record, "resources/read")) == 1

    run(main)


def test_secrets_in_lists_and_contents_are_replaced(tmp_path: Path) -> None:
    async def main() -> None:
        async with bench(tmp_path) as b:
            b.redactor.add("TOKEN", "note/1, read")
            b.redactor.add("OTHER", "Looks at a file")
            await b.up(spec("offers"))
            (note,) = await b.manager.beside.read_resource("offers", "memo://note/1")
            assert isinstance(note, Resource) and "[redacted:TOKEN]" in str(note.text)
            held = await b.manager.beside.listed("offers")
            assert held.prompts[0].description == "[redacted:OTHER]"

    run(main)


def test_reading_from_a_server_that_dies_says_so(tmp_path: Path) -> None:
    record = tmp_path / "record"

    async def main() -> None:
        async with bench(tmp_path) as b:
            await b.up(spec("offers", "--stuck", "resources/read", "--record", record))
            reading = asyncio.create_task(b.manager.beside.read_resource("offers", "memo://note/0"))
            await until(lambda: recorded(record, "resources/read"), what="it was asked")
            pid = b.status("offers").pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ServerError) as gone:
                await reading
            assert "ended (signal SIGKILL)" in gone.value.why

    run(main)


def test_a_list_that_cannot_be_fetched_is_said_and_the_one_before_stays() -> None:
    class Lister:
        wrong: Exception | None = None

        async def pages(self, kind: object, key: str, most: int) -> tuple[list[object], str]:
            if self.wrong is not None:
                raise self.wrong
            return [{"name": "greet"}], ""

    async def main() -> None:
        from mcp import MCPError

        lister = Lister()
        can: Any = SimpleNamespace(prompts=object(), resources=None)
        take: Any = SimpleNamespace(completes=False, watches=False)
        lists = OfferLists(lister, can, take, server="srv", redact=lambda text: text)
        await lists.begin()
        for wrong, why in (
            (MCPError(code=-32603, message="the disk \x1b[2J is gone"), "the disk ␛[2J is gone"),
            (ValueError("no list of prompts"), "no list of prompts"),
        ):
            lister.wrong = wrong
            lists.told("notifications/prompts/list_changed", None)
            assert await lists.refresh()
            assert [prompt.name for prompt in lists.offers().prompts] == ["greet"]
            assert lists.offers().dropped == (f"prompts: the list could not be fetched: {why}",)
        lister.wrong = None
        lists.told("notifications/prompts/list_changed", None)
        assert await lists.refresh()
        assert lists.offers().dropped == ()

    run(main)

"""Signing in while kage runs: states, waiting calls, and what the manager makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kage.config.schema import OAuthSpec, ServerSpec
from kage.core.commands import AnswerLogin, CancelLogin, LoginServer, LogoutServer
from kage.core.errors import UsageError
from kage.core.events import LoginRequested, LoginSettled, Noticed
from kage.core.messages import Outcome
from kage.core.redact import Redactor
from kage.core.servers import ServerState, Stage
from kage.mcp.client.oauth.logins import Logins
from kage.mcp.client.oauth.problems import SignInFailed
from kage.mcp.client.oauth.vault import Vault
from tests.mcp.client.harness import Bench, bench, run
from tests.mcp.client.oauth.house import visit
from tests.stubs.oauth import OAuthStub
from tests.waiting import until


@asynccontextmanager
async def running(folder: Path, *, waits: float) -> AsyncIterator[Bench]:
    redactor = Redactor()
    vault = Vault(folder / "oauth", redactor=redactor, notice=lambda text: None)
    logins = Logins(vault, environ={}, redactor=redactor, waits=waits)
    async with bench(folder, logins=logins) as b:
        yield b


def spec(stub: OAuthStub, **keys: Any) -> ServerSpec:
    return ServerSpec(name="remote", transport="http", url=stub.url, **keys)


def pages(b: Bench) -> list[LoginRequested]:
    return [event for event in b.events if isinstance(event, LoginRequested)]


async def sign_in(b: Bench) -> None:
    """Do what a person at the screen does."""
    before = len(pages(b))
    asked = asyncio.create_task(b.manager.sign_in(LoginServer(name="remote")))
    await until(lambda: len(pages(b)) > before or asked.done())
    if not asked.done():
        await asyncio.to_thread(visit, pages(b)[-1].url)
    await asked


async def signed_in(b: Bench) -> None:
    """Sign in, and have the tools that come of it."""
    await sign_in(b)
    await b.state("remote", ServerState.CONNECTED)
    await b.apply()


def test_a_server_that_wants_a_sign_in_waits_for_it_and_then_connects(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=20) as b:
                await b.up(spec(stub))
                status = b.status("remote")
                assert status.state is ServerState.NEEDS_AUTH
                assert status.fault is not None and "login remote" in status.fault.fix
                assert stub.count("/authorize") == stub.count("/register") == 0
                await signed_in(b)
                assert (await b.call("remote__echo")).outcome is Outcome.OK
                assert LoginSettled(server="remote", ok=True) in b.events

    run(main)


def test_a_call_refused_midway_goes_on_after_the_login_whatever_its_limit_on_silence(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=30) as b:
                await b.up(spec(stub, tool_timeout=3.0, health_interval=0))
                await signed_in(b)
                stub.expire()
                stub.refreshes.clear()
                call = asyncio.create_task(b.call("remote__echo", {"x": 1}))
                await b.state("remote", ServerState.NEEDS_AUTH)
                await asyncio.sleep(4.0)  # longer than the limit: that is what is tested
                assert not call.done()
                await sign_in(b)
                result = await call
                assert result.outcome is Outcome.OK
                await b.state("remote", ServerState.CONNECTED)
                assert stub.count("/mcp", method="initialize") == 1  # the same connection

    run(main)


def test_a_call_that_lacks_scopes_widens_them_and_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=30) as b:
                await b.up(spec(stub))
                await signed_in(b)
                call = asyncio.create_task(b.call("remote__admin"))
                await b.state("remote", ServerState.NEEDS_AUTH)
                await sign_in(b)
                assert (await call).outcome is Outcome.OK
                assert stub.last("/authorize")["scope"] == "mcp admin"

    run(main)


def test_a_list_of_tools_that_lacks_scopes_is_a_sign_in_to_be_had_not_a_failure(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            stub.list_scope = "listing"
            async with running(tmp_path, waits=20) as b:
                await b.up(spec(stub))
                await sign_in(b)
                await b.state("remote", ServerState.NEEDS_AUTH)
                await until(lambda: "listing" in getattr(b.status("remote").fault, "why", ""))
                tries = stub.count("/mcp", method="tools/list")
                await signed_in(b)
                assert stub.last("/authorize")["scope"] == "mcp listing"
                assert (tries, stub.count("/mcp", method="tools/list")) == (1, 2)
                await b.apply()
                stub.list_scope = "more"  # a connection that serves is not ended by this
                await b.manager.ping("remote")
                assert (await b.call("remote__echo")).outcome is Outcome.OK

    run(main)


def test_without_a_person_a_lost_sign_in_ends_the_call_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=0) as b:
                await b.up(spec(stub))
                await signed_in(b)
                assert (await b.call("remote__admin")).outcome is not Outcome.OK
                assert [e.what for e in b.events if isinstance(e, Noticed)]
                stub.expire()
                stub.refreshes.clear()
                result = await b.call("remote__echo")
                assert result.outcome in (Outcome.TOOL_ERROR, Outcome.NEVER_SENT)
                await b.state("remote", ServerState.NEEDS_AUTH)

    run(main)


def test_a_cancelled_call_waits_no_longer(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=60) as b:
                await b.up(spec(stub))
                await signed_in(b)
                call = asyncio.create_task(b.call("remote__admin"))
                await b.state("remote", ServerState.NEEDS_AUTH)
                call.cancel()
                await asyncio.wait([call])
                await b.state("remote", ServerState.CONNECTED)
                assert (await b.call("remote__echo")).outcome is Outcome.OK

    run(main)


def test_a_sign_in_can_be_given_up_and_asked_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=20) as b:
                await b.up(spec(stub))
                asked = asyncio.create_task(b.manager.sign_in(LoginServer(name="remote")))
                await until(lambda: pages(b))
                with pytest.raises(UsageError):
                    await b.manager.sign_in(AnswerLogin(name="remote", address="nonsense"))
                await b.manager.sign_in(LoginServer(name="remote"))  # the page is shown again
                assert len(pages(b)) == 2
                await b.manager.sign_in(CancelLogin(name="remote"))
                await asked
                assert b.events[-1] == LoginSettled(server="remote", ok=False)
                assert b.status("remote").state is ServerState.NEEDS_AUTH
                await signed_in(b)

    run(main)


def test_signing_out_ends_the_connection_and_the_next_one_asks_again(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=20) as b:
                await b.up(spec(stub))
                await signed_in(b)
                await b.manager.sign_in(LogoutServer(name="remote"))
                assert not stub.tokens
                await b.state("remote", ServerState.NEEDS_AUTH)
                fault = b.status("remote").fault
                assert fault is not None and fault.why == "you signed out"
                await b.apply()
                assert not b.tools
                await b.manager.sign_in(LogoutServer(name="remote"))  # nothing left to do
                await signed_in(b)
                assert (await b.call("remote__echo")).outcome is Outcome.OK

    run(main)


def test_a_sign_in_that_fails_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            stub.deny = True
            async with running(tmp_path, waits=20) as b:
                await b.up(spec(stub))
                with pytest.raises(SignInFailed, match="the person said no"):
                    await sign_in(b)
                assert b.status("remote").state is ServerState.NEEDS_AUTH
                with pytest.raises(UsageError):
                    await b.manager.sign_in(LoginServer(name="nobody"))

    run(main)


def test_a_variable_that_signing_in_misses_is_named_and_nothing_is_asked(tmp_path: Path) -> None:
    async def main() -> None:
        with OAuthStub() as stub:
            async with running(tmp_path, waits=0) as b:
                oauth = OAuthSpec(client_id="mine", client_secret="${NOT_SET_ANYWHERE}")
                await b.up(spec(stub, oauth=oauth))
                status = b.status("remote")
                assert status.state is ServerState.FAILED and status.fault is not None
                assert status.fault.stage is Stage.CONFIG
                assert "NOT_SET_ANYWHERE" in f"{status.fault.what} {status.fault.why}"
                assert "protocol" not in f"{status.fault.what} {status.fault.fix}"
                assert not stub.seen

    run(main)

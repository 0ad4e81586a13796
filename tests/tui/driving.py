"""Drive the app in a test: start it on a fake host and wait for what should be on the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from textual.keys import _character_to_key
from textual.pilot import Pilot

from kage.tui.app import KageApp
from tests.tui.fake_host import FakeHost
from tests.waiting import until

QUIET = 0.15  # a shorter quiet period than the real one, for tests that wait for it
HELD = 60.0  # one no test outlasts however slow the machine, see ``skip_guard``


@dataclass
class Driven:
    """A running app with its host and pilot."""

    app: KageApp
    host: FakeHost
    pilot: Pilot[Any]

    @property
    def draft(self) -> str:
        return self.app.chat.prompt.draft

    @property
    def panel_open(self) -> bool:
        return bool(self.app.chat.panel.display)

    @property
    def remark(self) -> str:
        return self.app.chat.remark_line.plain

    @property
    def transcript(self) -> str:
        return self.app.transcript.plain_text()

    def screen_text(self) -> str:
        """Give what is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def settle(self) -> None:
        """Let every message be handled."""
        await self.pilot.pause()
        await self.pilot.pause()

    async def publish(self, *events: Any) -> None:
        """Publish events and let the screen follow."""
        self.host.publish(*events)
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        """Type text, key by key."""
        keys = ("enter" if letter == "\n" else _character_to_key(letter) for letter in text)
        await self.pilot.press(*keys)
        await self.settle()

    async def until(self, probe: Callable[[], object], what: str = "") -> None:
        """Wait until something is true."""
        await until(probe, what=what)
        await self.settle()

    async def guard_over(self) -> None:
        """Wait until an answer would count."""
        await self.until(lambda: self.app.approvals.ready, "the quiet period ends")

    async def skip_guard(self) -> None:
        """Let the quiet period be over, however long it is."""
        guard = self.app.approvals._guard
        await self.until(lambda: guard._shown is not None, "the question is painted")
        guard.show(time.monotonic() - HELD)
        assert self.app.approvals.ready


@asynccontextmanager
async def driven(
    host: FakeHost | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    wait: bool = True,
    **options: Any,
) -> AsyncIterator[Driven]:
    """Run the app on ``host`` without a terminal."""
    host = host or FakeHost()
    given: dict[str, Any] = {"keys": {}, "theme": "", "quiet": QUIET} | options
    app = KageApp(lambda: host, **given)
    async with app.run_test(size=size) as pilot:
        it = Driven(app, host, pilot)
        if wait:
            await it.until(lambda: app.status.ready, "the host is up")
        yield it


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an async test body."""

    async def main() -> None:
        await test()

    asyncio.run(main())

"""Reading the configuration again while kage runs: by hand, or because a file changed.

Only what differs is touched. Files with a mistake change nothing, and say so once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kage.config.loosening import loosenings
from kage.config.schema import ServerSpec, Settings
from kage.config.watch import watch
from kage.core.errors import ConfigFault, KageError
from kage.core.events import Noticed, Publish
from kage.core.gate import Mode
from kage.core.levels import Level

_NEXT_START = {  # settings that are read once, by their fields
    "model": "model",
    "theme": "theme",
    "providers": "providers",
    "limits": "limits",
    "keys": "keys",
    "defer_tools": "mcp.defer_tools",
    "token_store": "mcp.token_store",
}
_WORDS = {  # by what the servers' part calls a step, in the order they are told
    "start": "started",
    "restart": "restarted",
    "adjust": "adjusted",
    "disable": "disabled",
    "stop": "removed",
    "keep": "unchanged",
}
_STARTING_OVER = 1.0  # seconds a file that vanished gets to come back, as editors do it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """What the files say now."""

    settings: Settings
    faults: tuple[ConfigFault, ...] = ()  # when there are some, nothing of it counts
    held: tuple[str, ...] = ()  # entries a person has to look at first, in words
    trusted: tuple[str, ...] = ()  # servers a person decided about in another shell meanwhile
    permit: Callable[[], None] = lambda: None  # puts its permissions in force


class Configuration(Protocol):
    """Where the settings come from; ``cli.reloading.Files`` is the real one."""

    @property
    def told(self) -> tuple[ConfigFault, ...]:
        """What was wrong with them at the start, which the person was told."""
        ...

    def files(self) -> tuple[Path, ...]:
        """Give every file that is read, or would be if it were there."""
        ...

    def read(self) -> Fresh:
        """Read all of them; may take a while."""
        ...

    def hold(self) -> None:
        """Hold for the next kage what was written since this one began and nobody looked at."""
        ...


class Change(Protocol):
    """One step of the servers' part."""

    @property
    def act(self) -> str:
        """What is done: start, restart, adjust, disable, stop or keep."""
        ...

    @property
    def spec(self) -> ServerSpec:
        """The entry."""
        ...


class ReloadedServers(Protocol):
    """What is needed of the manager."""

    def reconcile(self, specs: Iterable[ServerSpec]) -> Iterable[Change]:
        """Begin whatever leads to ``specs``; tell what."""
        ...

    def retrust(self, name: str) -> None:
        """Ask again whether a server may start."""
        ...

    def repin(self) -> None:
        """Compare all definitions with what the person knows by now."""
        ...


class Reloading:
    """Reads again, one read at a time.

    Args:
        source: None: there is nothing to read again.
        now: The settings kage began with.
        held: Called when entries wait for the person.
        tighten: Puts a permission mode in force; False when that is not stricter than now.
    """

    def __init__(
        self,
        source: Configuration | None,
        servers: ReloadedServers,
        publish: Publish,
        *,
        now: Settings,
        held: Callable[[], None],
        tighten: Callable[[Mode], bool] = lambda mode: False,
    ) -> None:
        self._source = source
        self._servers = servers
        self._publish = publish
        self._now = now
        self._held = held
        self._tighten = tighten
        self._one = asyncio.Lock()
        self._stop = asyncio.Event()
        self._complaint: tuple[ConfigFault, ...] = ()
        self._there: frozenset[Path] = frozenset()  # the files that existed when last read

    async def by_hand(self) -> None:
        """Read again because a person asked, who hears of it in any case."""
        await self.reload(by_hand=True)

    async def reload(self, *, by_hand: bool = False, told: tuple[ConfigFault, ...] = ()) -> None:
        """Put in force what the files say now, and tell what that changed.

        Args:
            by_hand: A person asked: they hear of it also when nothing changed.
            told: Mistakes the person knows of.
        """
        if self._source is None:
            return
        async with self._one:
            fresh = await self._read(self._source, patient=not by_hand)
            if fresh.faults:
                if fresh.faults != told:
                    self._complain(fresh.faults, by_hand=by_hand)
                return
            self._complaint = ()
            before, self._now = self._now, fresh.settings
            wanted = fresh.settings.servers.values() if fresh.settings.mcp_enabled else ()
            steps = tuple(self._servers.reconcile(wanted))
            for name in fresh.trusted if fresh.settings.mcp_enabled else ():
                self._servers.retrust(name)
            self._servers.repin()
            fresh.permit()
            self._tell(before, fresh, steps, by_hand=by_hand)

    async def follow(self) -> None:
        """Reload whenever a file changed, until :meth:`stop`."""
        if self._source is None:
            return
        try:
            self._there = await asyncio.to_thread(_existing, self._source)
            told = self._source.told  # nobody saw the files between the start and the first look
            async for _ in watch(self._source.files, self._stop):
                await self._reload_or_tell(told)
                told = ()
        except OSError as error:
            what = "kage cannot watch its settings files for changes here"
            fix = "After a change read them again: /mcp reload"
            self._publish(Noticed(level=Level.INFO, what=what, why=str(error), fix=fix))

    async def _reload_or_tell(self, told: tuple[ConfigFault, ...]) -> None:
        """Reload; what goes wrong is told, and the next change is followed all the same."""
        try:
            await self.reload(told=told)
        except KageError as error:
            self._publish(Noticed(level=Level.ERROR, what=error.what, why=error.why, fix=error.fix))
        except OSError as error:
            what = "The settings could not be read again"
            fix = "What was in force before stays so. Try again: /mcp reload"
            self._publish(Noticed(level=Level.ERROR, what=what, why=str(error), fix=fix))

    def stop(self) -> None:
        """End :meth:`follow` within a moment."""
        self._stop.set()

    async def last_look(self) -> None:
        """Hold what was written and nobody was told of: a run in print mode reads nothing again.

        What the last call of a run wrote is not for the next kage to start as if a person had.
        """
        if self._source is None:
            return
        try:
            await asyncio.to_thread(self._source.hold)
        except (KageError, OSError) as error:
            what = "What changed in the settings meanwhile could not be looked at"
            self._publish(Noticed(level=Level.WARNING, what=what, why=str(error)))

    async def _read(self, source: Configuration, *, patient: bool) -> Fresh:
        there = await asyncio.to_thread(_existing, source)
        if patient and self._there - there:  # it may be about to be replaced
            await asyncio.sleep(_STARTING_OVER)
            there = await asyncio.to_thread(_existing, source)
        self._there = there
        return await asyncio.to_thread(source.read)

    def _complain(self, faults: tuple[ConfigFault, ...], *, by_hand: bool) -> None:
        if faults == self._complaint and not by_hand:
            return
        self._complaint = faults
        for fault in faults:
            fix = "What was in force before stays so; mend it and it is read again."
            self._publish(Noticed(level=Level.ERROR, what=str(fault), fix=fix))

    def _tell(
        self, before: Settings, fresh: Fresh, steps: tuple[Change, ...], *, by_hand: bool
    ) -> None:
        counted = Counter(str(step.act) for step in steps)
        if counted.total() > counted["keep"] or by_hand:
            what = f"Settings read again: {_counts(steps) or 'no servers'}"
            self._publish(Noticed(level=Level.INFO, what=what))
        old, new = before.permissions, fresh.settings.permissions
        if loosenings(old, new) or loosenings(new, old):
            what = "The permissions changed and count from now on"
            self._publish(Noticed(level=Level.INFO, what=what))
        later = [
            key
            for name, key in _NEXT_START.items()
            if getattr(before, name) != getattr(fresh.settings, name)
        ]
        if old.mode != new.mode:
            if self._tighten(Mode(new.mode)):
                what = f'permissions.mode = "{new.mode}" is stricter and counts from now on'
                self._publish(Noticed(level=Level.INFO, what=what))
            else:
                later.append("permissions.mode")
        if later:
            what = f"{', '.join(later)}: what changed counts from the next start of kage"
            self._publish(Noticed(level=Level.INFO, what=what))
        for text in fresh.held:
            self._publish(Noticed(level=Level.WARNING, what=text))
        if fresh.held:
            self._held()


def _counts(steps: tuple[Change, ...]) -> str:
    parts = []
    for act, word in _WORDS.items():
        names = [step.spec.name for step in steps if step.act == act]
        named = f" ({', '.join(names)})" if act != "keep" else ""
        if names:
            parts.append(f"{len(names)} {word}{named}")
    return ", ".join(parts)


def _existing(source: Configuration) -> frozenset[Path]:
    return frozenset(file for file in source.files() if file.exists())

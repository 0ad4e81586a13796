"""Put the concrete objects together: the only place that knows all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakSet

from kage.agent.bus import Bus
from kage.agent.engine import Engine
from kage.agent.forms import Inquiries
from kage.agent.parts import Parts, SessionGate
from kage.agent.sampling import SeatSampler
from kage.agent.screening import Screen
from kage.cli.cages import sandboxes_for, shell_cage
from kage.cli.ground import AGENT_MARK, Ground
from kage.cli.hiding import hide_secrets
from kage.cli.logs import running as running_log
from kage.cli.pinning import book_of
from kage.cli.reloading import Files
from kage.cli.signing import logins_for
from kage.cli.trusting import desk_of
from kage.config.schema import ServerSpec
from kage.control.listener import Listener
from kage.core.errors import ConfigError, ConfigFault, UsageError
from kage.core.events import Noticed, Publish
from kage.core.gate import Asker
from kage.core.levels import Level
from kage.core.requests import Person, Sampler
from kage.mcp.client.asking.answering import Around
from kage.mcp.client.manager import Manager
from kage.mcp.client.oauth.logins import PERSON_TIME
from kage.mcp.client.servers.shelf import own_folder
from kage.mcp.client.watchdog import Watchdog
from kage.permissions.claims import BrokenClaims, Marking
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.gate import Gate
from kage.permissions.grants import Grants
from kage.permissions.pins.book import PinBook
from kage.permissions.protected import Protected
from kage.permissions.receipts import HandedLog
from kage.permissions.rules.rules import Rules
from kage.permissions.seal import SealBook
from kage.providers.catalog import Models
from kage.sessions.history import History
from kage.sessions.store import SessionStore
from kage.tools import builtin
from kage.tools.registry import BUILTIN, Registry


@dataclass(slots=True, kw_only=True)
class Guard:
    """Gate, seals and log, shared by everything that calls a tool."""

    rules: Rules
    grants: Grants
    log: DecisionLog
    seals: SealBook
    protected: Protected
    pins: PinBook
    sessions: Path
    claims: BrokenClaims
    _gates: WeakSet[Gate] = field(default_factory=WeakSet)

    def go_by(self, rules: Rules) -> None:
        """Let every gate judge by ``rules`` from now on."""
        self.rules = rules
        for gate in self._gates:
            gate.go_by(rules)

    def gate(self, session_id: str, asker: Asker | None) -> Gate:
        """Make the gate of one session."""
        gate = Gate(
            rules=self.rules,
            grants=self.grants,
            log=self.log,
            seals=self.seals,
            asker=Marking(asker, self.claims.about) if asker is not None else None,
            session_id=session_id,
            protected=self.protected,
            extra=(self.sessions / session_id / "artifacts",),  # the rest of a cut result
            held=self.pins.held,
            since=self.pins.since,
        )
        self._gates.add(gate)
        return gate


def rules_of(here: Ground) -> Rules:
    """Take the rules from the settings and ``--allow``; mistakes are in ``faults``.

    Raises:
        UsageError: a rule of ``--allow`` is malformed.
    """
    return Rules.from_settings(
        here.settings.permissions, allow=here.options.allow, servers=here.settings.servers
    )


def guard(here: Ground, publish: Publish, *, records: bool = False) -> Guard:
    """Put the gate's parts together.

    Args:
        here: What the command stands on.
        publish: Told of trouble.
        records: Whether definitions that are offered for the first time count as known then.

    Raises:
        UsageError: a rule of ``--allow`` is malformed.
    """
    desk_of(here)  # which rules count, and which are held
    trouble = _warner(publish)
    log = DecisionLog(here.paths.data / "decisions", redact=here.redact, on_trouble=trouble)
    pins = book_of(here, log, records=records)
    pins.listen(trouble)
    return Guard(
        rules=rules_of(here),
        grants=Grants(here.paths.data / "grants.toml", log=log, on_notice=trouble),
        log=log,
        seals=SealBook(),
        protected=Protected.of(here.paths, here.workspace),
        pins=pins,
        sessions=here.paths.data / "sessions",
        claims=BrokenClaims(here.paths.data / "claims.json", on_trouble=trouble),
    )


@dataclass(slots=True, kw_only=True)
class House:
    """An engine and what a front end needs besides it."""

    engine: Engine
    manager: Manager
    ground: Ground

    @property
    def required(self) -> Collection[str]:
        """Names of the servers that must be up for ``-p``."""
        servers = self.ground.settings.servers.values()
        if not self.ground.settings.mcp_enabled:
            return ()
        everything = self.ground.options.require_mcp
        return tuple(s.name for s in servers if not s.disabled and (s.required or everything))

    async def ready(self) -> None:
        """Wait for the first outcome of every server; the required ones are up or failed then.

        A required server may be lazy: that it can start is only known once it did.
        """
        await self.manager.settled()
        await self.manager.wake(self.required)


def build(here: Ground, *, interactive: bool) -> House:
    """Build the engine for the TUI or, without a person to ask, for print mode.

    Raises:
        UsageError: a rule of ``--allow`` is malformed, or there is no session to go on with.
        ConfigError: a rule in a file is malformed and nobody is there to be told.
    """
    bus = Bus(Screen(here.redact))
    if (debug := running_log(here.redact)) is not None:
        bus.subscribe(debug.heard)
    watchdog = Watchdog()
    sandboxes = sandboxes_for(here.settings.sandbox, here.paths, here.environ)
    desk = desk_of(here)
    desk.accept()
    desk.listen(_warner(bus.publish))
    held = guard(here, bus.publish, records=True)
    if held.rules.faults and not interactive:
        raise ConfigError(held.rules.faults)
    if held.grants.path.exists():  # what is dropped of it is told at the start, not at first use
        asyncio.get_running_loop().run_in_executor(None, held.grants.load)
    models = Models(here.settings, here.environ, markdown=interactive)
    for name, value in models.secrets():
        here.redact.add(name, value)
    hide_secrets(here)
    inquiries, sampler = Inquiries(bus.publish), SeatSampler()
    manager = manager_for(
        here,
        held,
        watchdog,
        bus.publish,
        inherit=not interactive or here.options.inherit_stderr,
        waits=PERSON_TIME if interactive else 0.0,
        person=inquiries if interactive else None,
        sampler=sampler,
    )
    registry = Registry()
    registry.replace(
        BUILTIN,
        builtin.create(
            spawner=watchdog,
            environ=here.environ,
            max_output_chars=here.settings.limits.max_output_tokens * 4,
            cage=shell_cage(here.settings.sandbox, sandboxes),
        ),
    )
    store = SessionStore(
        here.paths.data / "sessions", redact=here.redact, on_trouble=_warner(bus.publish)
    )

    def gate(session_id: str, asker: Asker | None) -> SessionGate:
        return held.gate(session_id, asker)

    async def release() -> None:
        await watchdog.close()
        sandboxes.close()
        held.log.close()

    parts = Parts(
        settings=here.settings,
        workspace=here.workspace,
        cwd=here.cwd,
        environ=here.environ,
        bus=bus,
        servers=manager,
        registry=registry,
        models=models,
        store=store,
        history=History(here.paths.data / "history.jsonl", redact=here.redact),
        gate=gate,
        redact=here.redact,
        inquiries=inquiries,
        sampler=sampler,
        notices=_notices(here, held.rules, interactive=interactive),
        model=here.options.model,
        resume=_resumed(here, store),
        interactive=interactive,
        wait_for_servers=not interactive,
        agent_environment={AGENT_MARK: "1"},
        configuration=Files(here, rules=rules_of, permit=held.go_by, faults=held.rules.faults),
        offers=manager.beside,
        companions=(_listener(here, bus.publish),),
        own=(here.paths.data, here.paths.cache),
        claims=held.claims,
        trust=desk,
        pins=held.pins,
        release=release,
    )
    return House(engine=Engine(parts), manager=manager, ground=here)


def _listener(here: Ground, publish: Publish) -> Listener:
    def trouble(why: str) -> None:
        what = "Other shells cannot ask this kage how its servers are"
        publish(Noticed(level=Level.INFO, what=what, why=why))

    return Listener(here.paths.runtime, redact=here.redact, trouble=trouble)


def manager_for(
    here: Ground,
    held: Guard,
    watchdog: Watchdog,
    publish: Publish,
    *,
    inherit: bool,
    waits: float = 0.0,
    person: Person | None = None,
    sampler: Sampler | None = None,
) -> Manager:
    """Make the manager of all connections; it starts nothing by itself.

    Args:
        inherit: Whether servers may write to kage's own stderr.
        waits: Seconds a running call waits for a person to sign in.
        person: Who answers what servers ask; None: nobody, and they are not told otherwise.
        sampler: The model they may ask, where the person allows it.
    """
    return Manager(
        workspace=here.workspace,
        spawner=watchdog,
        seals=held.seals,
        publish=publish,
        redactor=here.redact,
        inherit_stderr=inherit,
        journals=own_folder(here.paths.data / "journals"),
        environ=here.environ,
        trusted=desk_of(here).fault,
        sandbox=sandboxes_for(here.settings.sandbox, here.paths, here.environ),
        pins=held.pins,
        manifests=here.paths.cache / "manifests",
        logins=logins_for(here, _warner(publish), waits=waits, spawner=watchdog),
        around=Around(
            person=person,
            sampler=sampler,
            receipts=HandedLog(log=held.log, seals=held.seals),
            publish=publish,
            workspace=here.workspace,
        ),
    )


def _resumed(here: Ground, store: SessionStore) -> str:
    if here.options.resume or not here.options.latest:
        return here.options.resume
    latest = store.list(here.workspace, limit=1)
    if not latest:
        raise UsageError("There is no session to go on with here", fix="Start one: kage")
    return latest[0].id


def _notices(here: Ground, rules: Rules, *, interactive: bool) -> tuple[Noticed, ...]:
    told = () if interactive else here.spared  # by ``Ground.sound``
    faults = (*here.loaded.faults, *rules.faults)
    return (
        *(_fault_notice(fault) for fault in faults if fault not in told),
        *(_waiting_notice(spec) for spec in here.settings.project_servers),
        *(_held_notice(piece.words) for piece in desk_of(here).book.held_rules()),
        *(Noticed(level=Level.INFO, what=note) for note in (*here.settings.notes, *rules.notes)),
    )


def _waiting_notice(spec: ServerSpec) -> Noticed:
    return Noticed(
        level=Level.WARNING,
        what=f"{spec.place or spec.origin} would replace your server {spec.name}: not trusted",
        why="yours is used",
        fix=f"To decide: /mcp trust {spec.name} here, or kage mcp trust {spec.name}",
    )


def _held_notice(words: str) -> Noticed:
    return Noticed(
        level=Level.WARNING,
        what=f"permissions.{words}: written while a kage was running, so it does not count",
        fix="To decide: kage mcp trust --rules",
    )


def _fault_notice(fault: ConfigFault) -> Noticed:
    return Noticed(
        level=Level.ERROR,
        what=str(fault),
        fix="That entry is left out, the rest is used. `kage config check` shows all mistakes.",
    )


def _warner(publish: Publish) -> Callable[[str], None]:
    """Tell a warning on the engine's loop, from whichever thread found it."""
    loop = asyncio.get_running_loop()

    def warn(text: str) -> None:
        loop.call_soon_threadsafe(publish, Noticed(level=Level.WARNING, what=text))

    return warn

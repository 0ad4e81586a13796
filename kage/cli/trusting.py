"""Trust as every front end uses it: which entries count, why one does not, what to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from kage.cli.ground import Ground, ground
from kage.config.load import Loaded
from kage.config.loosening import held_back, loosenings
from kage.config.permissions import with_project
from kage.config.schema import PermissionSpec, ServerSpec, ToolRules
from kage.config.seen import changes, seen, variables, warnings, written_hash
from kage.config.trust import TrustBook
from kage.config.trustfile import masked
from kage.core.errors import ServerError, UsageError
from kage.core.servers import Fault, Stage
from kage.core.trust import Identity, Standing, TrustAnswer, TrustQuestion
from kage.mcp.client.servers.identity import identify
from kage.mcp.names import did_you_mean
from kage.permissions.decisions.log import DecisionLog

TRUST_FILE = "trust.toml"


class TrustDesk:
    """Knows the entries of all layers and what a person said about them.

    Args:
        loaded: What the files say.
        data: The folder of ``trust.toml`` and the decision log.
        environ: kage's own variables, which entries may name.
        workspace: Where entries of the person's own file run.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        data: Path,
        environ: Mapping[str, str],
        workspace: Path,
        log: DecisionLog | None = None,
    ) -> None:
        self.book = TrustBook(data / TRUST_FILE, log=log or DecisionLog(data / "decisions"))
        self._environ = environ
        self._workspace = workspace
        self._own = loaded.own  # rules that need no answer
        self._met: tuple[ToolRules, ...] = ()  # every rule of the project since the start
        self._waiting: frozenset[str] = frozenset()  # servers in force that are not trusted
        self.freed: frozenset[str] = frozenset()  # of those, what the last look found trusted
        self.loaded = self.settle(loaded)

    # ---- which entries count

    def settle(self, loaded: Loaded) -> Loaded:
        """Give ``loaded`` with the servers that count by what is trusted now, and remember it."""
        found = loaded.settled(self.counts)
        servers = {
            name: replace(spec, disabled=True)
            if spec.origin != "user" and self.book.refused(name, spec.origin)
            else spec
            for name, spec in found.settings.servers.items()
        }
        rules = self._rules(loaded)
        settings = replace(found.settings, servers=servers, permissions=rules)
        self.loaded = replace(found, settings=settings)
        before, self._waiting = (
            self._waiting,
            frozenset(
                name
                for name, spec in servers.items()
                if self.standing(spec) is not Standing.TRUSTED
            ),
        )
        self.freed = (before - self._waiting) & servers.keys()
        return self.loaded

    def resettle(self) -> Loaded:
        """Put the layers together anew after an answer."""
        return self.settle(self.loaded)

    def _rules(self, loaded: Loaded) -> PermissionSpec:
        """Give the rules that count: what is held of the person's own is taken back out.

        A project's rules only add friction, so nobody is asked about them: one that is taken out
        of its file while kage runs stays until the next start.
        """
        rules = (*self._met, *loaded.project_rules)
        self._met = tuple({replace(rule, place=None): rule for rule in rules}.values())
        return with_project(held_back(loaded.own, self.book.held_rules()), self._met)

    def reload(self, loaded: Loaded) -> tuple[Loaded, tuple[str, ...]]:
        """Take over files that changed while kage runs; what was held of them, in words."""
        before = [entry.spec for entry in self.loaded.entries]
        held = self.book.review((entry.spec for entry in loaded.entries), before)
        rules = self.book.review_rules(loosenings(self._own, loaded.own))
        return self.settle(loaded), (
            *(
                f"{record.name} was {'changed' if record.before else 'added'} while kage runs and "
                f"is not started: look at it with /mcp trust {record.name}"
                for record in held
            ),
            *(
                f"permissions.{piece.words}, which was written while kage runs; it does not count "
                "until you say so: kage mcp trust --rules"
                for piece in rules
            ),
        )

    def accept(self) -> None:
        """Take the person's own files as they are at the start of a kage as given."""
        self._own = held_back(self.loaded.own, self.book.held_rules())
        self.book.accept(entry.spec for entry in self.loaded.entries if entry.spec.origin == "user")

    def counts(self, spec: ServerSpec) -> bool:
        """Say whether an entry may replace another of its name."""
        return spec.origin == "user" or self.standing(spec) is Standing.TRUSTED

    # ---- how one stands

    def identity(self, spec: ServerSpec) -> Identity:
        """Give what trust in ``spec`` is bound to.

        Raises:
            ServerError: a variable in its command is not set.
        """
        if spec.origin != "user":
            return identify(spec, self._environ, workspace=self._workspace)
        try:
            parts = identify(spec, self._environ, workspace=self._workspace).seen
        except ServerError:
            parts = seen(spec)
        return Identity(
            name=spec.name, origin=spec.origin, entry_hash=written_hash(spec), seen=parts
        )

    def standing(self, spec: ServerSpec) -> Standing:
        """Say how an entry stands; one that cannot be put together is not trusted."""
        if spec.origin == "user":
            bare = Identity(name=spec.name, origin="user", entry_hash=written_hash(spec))
            return self.book.standing(bare)
        try:
            return self.book.standing(self.identity(spec))
        except ServerError:
            bare = Identity(name=spec.name, origin=spec.origin, entry_hash="")
            return self.book.standing(bare)

    def fault(self, spec: ServerSpec, entry_hash: str) -> Fault | None:
        """Say why ``spec`` may not start, None when it may.

        Args:
            spec: The entry.
            entry_hash: Of what is about to start; "" when that could not be put together.
        """
        if spec.origin == "user" or not entry_hash:
            standing = self.standing(spec)
        else:
            bare = Identity(name=spec.name, origin=spec.origin, entry_hash=entry_hash)
            standing = self.book.standing(bare)
        return None if standing is Standing.TRUSTED else fault_of(spec, standing)

    # ---- questions and answers

    def waiting(self) -> tuple[ServerSpec, ...]:
        """Give the enabled entries a person has still to decide about."""
        wanted = (Standing.NEW, Standing.CHANGED, Standing.HELD)
        settings = self.loaded.settings
        every = (*settings.servers.values(), *settings.project_servers)
        return tuple(spec for spec in every if not spec.disabled and self.standing(spec) in wanted)

    def entry(self, name: str) -> ServerSpec:
        """Give the entry called ``name`` that trust is about: one that waits before all others.

        Raises:
            UsageError: there is none; names the nearest.
        """
        settings = self.loaded.settings
        named = [spec for spec in settings.project_servers if spec.name == name]
        if name in settings.servers:
            named.append(settings.servers[name])
        if not named:
            known = (*settings.servers, *(spec.name for spec in settings.project_servers))
            raise UsageError(f"There is no server {name!r}", fix=did_you_mean(name, known))
        untrusted = [spec for spec in named if self.standing(spec) is not Standing.TRUSTED]
        return (untrusted or named)[0]

    def question(self, name: str) -> TrustQuestion:
        """Give everything to be shown about the entry called ``name``.

        Raises:
            UsageError: there is no such entry.
            ServerError: a variable in its command is not set.
        """
        spec = self.entry(name)
        identity = self.identity(spec)
        standing = self.book.standing(identity)
        before = self.book.before(identity)
        now = masked(seen(spec)) if spec.origin == "user" else identity.seen
        changed = before and standing in (Standing.CHANGED, Standing.HELD)
        return TrustQuestion(
            identity=identity,
            standing=standing,
            place=str(spec.place or spec.origin),
            variables=tuple((v, bool(self._environ.get(v))) for v in variables(spec)),
            changes=changes(before, now) if changed else (),
            warnings=warnings(spec, program=identity.seen.get("program", "")),
        )

    def answer(self, name: str, entry_hash: str, answer: TrustAnswer) -> bool:
        """Take the answer to a question; False when the entry is no longer the one shown.

        Raises:
            UsageError: there is no such entry any more.
            ServerError: a variable in its command is not set any more.
        """
        identity = self.identity(self.entry(name))
        if identity.entry_hash != entry_hash:
            return False
        match answer:
            case TrustAnswer.TRUST:
                self.book.trust(identity)
            case TrustAnswer.NEVER if identity.origin != "user":
                self.book.never(identity)
            case _:
                pass
        self.resettle()
        return True

    def listen(self, on_notice: Callable[[str], None]) -> None:
        """Tell ``on_notice`` what had to be dropped of the file, or could not be kept."""
        self.book.listen(on_notice)


def desk_of(here: Ground) -> TrustDesk:
    """Give the desk of this ground, whose settings then have the servers that count."""
    if not isinstance(here.trust, TrustDesk):
        desk = TrustDesk(
            here.loaded, data=here.paths.data, environ=here.environ, workspace=here.workspace
        )
        here.trust, here.loaded = desk, desk.loaded
    return here.trust


def record_entry_change(here: Ground, *names: str, trust: bool = False) -> None:
    """Note that a verb of the person changed or added these entries, so that no kage holds them.

    Call it after the file is written; the files are read again.

    Args:
        here: What the verb stood on.
        names: The servers.
        trust: The person gave the whole entry in this very command, so that one that went into a
            project file is trusted as it is.
    """
    desk = desk_of(ground(here.options))
    for entry in desk.loaded.entries:
        spec = entry.spec
        if spec.name not in names:
            continue
        if spec.origin == "user":
            desk.book.record_change(spec)
        elif trust:
            try:
                desk.book.trust(desk.identity(spec))
            except ServerError:
                continue  # a variable is missing: it is asked about once it can start


def fault_of(spec: ServerSpec, standing: Standing) -> Fault:
    """Say why an entry that is not trusted does not start, and what to do."""
    where = spec.place or spec.origin
    fix = f"Look at it: kage mcp trust {spec.name} (in the chat: /mcp trust {spec.name})"
    match standing:
        case Standing.CHANGED:
            what = f"{spec.name} has changed since you trusted it, so it is not started"
            why = f"what {where} says now is another entry"
        case Standing.HELD:
            what = f"{spec.name} was changed while kage was running, so it is held"
            why = f"nobody has confirmed what {where} says now"
        case Standing.NEVER:
            what = f"{spec.name} is not started: you do not want it"
            why = f"you said so about {where}"
        case _:
            what = f"{spec.name} is not trusted yet, so it is not started"
            why = f"it comes from {where}"
    return Fault(stage=Stage.CONFIG, what=what, why=why, fix=fix)

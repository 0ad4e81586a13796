"""The links of the chain ``kage mcp why`` shows, and what all of them are found out from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kage.cli.ground import Ground
from kage.cli.trusting import desk_of
from kage.config.layers import in_force, of_name
from kage.config.origin import origins
from kage.config.schema import ServerSpec
from kage.control.caller import Running
from kage.core.errors import ServerError
from kage.mcp.client.servers.identity import identify
from kage.mcp.client.servers.manifest import Manifest, Manifests
from kage.permissions.decisions.log import DecisionLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One link of the chain."""

    name: str
    text: str
    holds: bool = True  # False: this is why the tool is not there, or may not be called
    fix: str = ""


@dataclass(slots=True, kw_only=True)
class Trace:
    """Everything about one name."""

    name: str  # as typed
    tool: str = ""  # the exposed name, where it is known
    server: str = ""
    steps: list[Step] = field(default_factory=list)
    verdict: str = "missing"  # hidden, held, deny, ask, allow; a server: configured, down

    @property
    def broken(self) -> Step | None:
        """The step that answers why it is missing, None when it is there."""
        return next((step for step in self.steps if not step.holds), None)

    def add(self, name: str, text: str, *, holds: bool = True, fix: str = "") -> None:
        """Put a step at the end."""
        self.steps.append(Step(name=name, text=text, holds=holds, fix=fix))


@dataclass(slots=True, kw_only=True)
class Known:
    """What the steps share."""

    here: Ground
    log: DecisionLog
    kages: tuple[Running, ...]
    status: Mapping[str, Any] | None  # of a server that was started for this

    def manifest(self, spec: ServerSpec) -> Manifest | None:
        """Give what a server offered when it was last started as it is now."""
        here = self.here
        try:
            entry = identify(spec, here.environ, workspace=here.workspace).entry_hash
        except ServerError:
            return None
        return Manifests(here.paths.cache / "manifests").load(spec.name, spec.origin, entry)


def set_in(known: Known, spec: ServerSpec, key: str) -> str:
    """Say in which file a key of the entry is set, "" when that is not known."""
    declared = of_name(known.here.loaded.entries, spec.name)
    if not declared:
        return ""
    chosen = in_force(declared, desk_of(known.here).counts)
    for origin in origins(declared, chosen):
        if origin.key == key and origin.now.place is not None:
            return f" ({origin.now.place})"
    return ""

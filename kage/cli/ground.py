"""What every command stands on: the options, the places, the settings; nothing heavy."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kage.cli import lineage
from kage.config.load import Loaded, load
from kage.config.paths import Paths, workspace_of
from kage.config.project import costs_a_server
from kage.config.schema import ServerSpec, Settings
from kage.core.errors import ConfigError, ConfigFault, UsageError
from kage.core.redact import Redactor
from kage.core.sanitise import visible

AGENT_MARK = "KAGE_AGENT"  # set in the agent's shell; verbs that change or start refuse under it


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line said, before any command."""

    allow: tuple[str, ...] = ()
    model: str = ""
    max_turns: int | None = None
    resume: str = ""
    latest: bool = False
    config_file: Path | None = None
    mcp_config: tuple[str, ...] = ()
    strict_mcp_config: bool = False
    require_mcp: bool = False
    no_mcp: bool = False
    inherit_stderr: bool = False

    @classmethod
    def from_flags(cls, **flags: Any) -> Options:  # click gives each flag by name
        """Make the options from click's parameters."""
        return cls(**flags)


@dataclass(slots=True, kw_only=True)
class Ground:
    """What every command needs: places, settings and secrets."""

    options: Options
    environ: Mapping[str, str]
    cwd: Path
    workspace: Path
    paths: Paths
    loaded: Loaded
    redact: Redactor
    trust: object = None  # the ``trusting.TrustDesk``, once somebody asked for it
    tried: Mapping[str, ServerSpec] = field(default_factory=dict)  # by name: see ``with_server``

    @property
    def settings(self) -> Settings:
        """The settings with the command line laid over them."""
        settings = self.loaded.settings
        changes: dict[str, Any] = {}
        if self.options.no_mcp:
            changes["mcp_enabled"] = False
        if self.options.max_turns is not None:
            limits = dataclasses.replace(settings.limits, max_turns=self.options.max_turns)
            changes["limits"] = limits
        if self.tried:
            changes["servers"] = {**settings.servers, **self.tried}
        return dataclasses.replace(settings, **changes) if changes else settings

    def with_server(self, spec: ServerSpec) -> Ground:
        """Give this ground with ``spec`` in place of the entry of its name, for one verb.

        It is laid over the settings like a flag: whether trust is looked at before or after does
        not matter, and a trial needs the same trust as the entry it stands for.
        """
        return dataclasses.replace(self, tried={**self.tried, spec.name: spec})

    def sound(self) -> Ground:
        """Give this ground if no file has a mistake, but for those that cost servers of a project.

        Those are told on stderr; their servers are left out.

        Raises:
            ConfigError: with every mistake.
        """
        spared = self.spared
        if len(spared) < len(self.loaded.faults) or (spared and self.options.require_mcp):
            raise ConfigError(self.loaded.faults)
        for fault in spared:
            print(visible(f"kage: left out: {fault}"), file=sys.stderr)
        return self

    @property
    def spared(self) -> tuple[ConfigFault, ...]:
        """The mistakes that cost no more than servers of the project."""
        faults = self.loaded.faults
        return tuple(fault for fault in faults if costs_a_server(fault, self.workspace))


def ground(options: Options, *, settled: bool = True) -> Ground:
    """Read the configuration for the current folder; mistakes are kept, not raised.

    Args:
        options: What the command line said.
        settled: Find out which servers of the project are trusted; else none is yet.
    """
    environ = dict(os.environ)
    cwd = Path.cwd()
    root = workspace_of(cwd)
    paths = Paths.from_environ(environ)
    loaded = load(
        paths=paths,
        workspace=root,
        config_file=options.config_file,
        mcp_config=options.mcp_config,
        strict=options.strict_mcp_config,
    )
    here = Ground(
        options=options,
        environ=environ,
        cwd=cwd,
        workspace=root,
        paths=paths,
        loaded=loaded,
        redact=Redactor(),
    )
    if settled and any(entry.spec.origin != "user" for entry in loaded.entries):
        from kage.cli.trusting import desk_of

        desk_of(here)
    return here


def refuse_agent(environ: Mapping[str, str], verb: str) -> None:
    """Stop verbs that change, start or call something when the agent itself runs them.

    Raises:
        UsageError: the agent's mark is set, or was taken off on the way here.
    """
    if environ.get(AGENT_MARK) or lineage.marked(environ, AGENT_MARK):
        raise UsageError(
            f"kage {verb} does not run from the agent's own shell",
            fix="Run it in a terminal of your own.",
        )

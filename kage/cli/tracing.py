"""The chain from a tool's name to what the gate would say of it, each step with its reason.

Everything is found out from files and, where one answers, the kage that runs here; nothing is
started. The first step that does not hold is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kage.cli.ground import Ground
from kage.cli.steps import Known, Trace, set_in
from kage.cli.toolsteps import gate_step, list_step, tool_steps
from kage.cli.trusting import desk_of, fault_of
from kage.config.layers import in_force, of_name
from kage.config.schema import ServerSpec
from kage.control.caller import running
from kage.core.errors import UsageError
from kage.core.sanitise import visible
from kage.core.tools import ToolSpec
from kage.core.trust import Standing
from kage.mcp.client.servers.absence import look_up, tools_of
from kage.mcp.client.servers.manifest import Manifest
from kage.mcp.names import did_you_mean, owners
from kage.permissions.decisions.log import DecisionLog


def trace(here: Ground, name: str, *, status: Mapping[str, Any] | None = None) -> Trace:
    """Follow a name through everything that decides about it.

    Args:
        here: The settings and places.
        name: A tool in any spelling, or a server.
        status: How the server is, where it was just started for this.

    Raises:
        UsageError: nothing is called anything like it; names the nearest.
    """
    found = Trace(name=name)
    kages = tuple(kage for kage in running(here.paths.runtime) if kage.workspace == here.workspace)
    log = DecisionLog(here.paths.data / "decisions")
    known = Known(here=here, log=log, kages=kages, status=status)
    if (own := _own_tool(here, name)) is not None:
        found.tool = own.name
        found.add("built in", f"{own.name} is a tool of kage itself, always offered")
        gate_step(found, known, own, held="")
        return found
    spec, rest = _server(here, name, known)
    found.server = spec.name
    _entry_steps(found, known, spec)
    _state_step(found, known, spec)
    if rest:
        tool_steps(found, known, spec, rest)
    else:
        list_step(found, known, spec)
        found.verdict = "configured" if found.broken is None else "down"
    return found


# -- whose it is ---------------------------------------------------------------------------------


def server_of(here: Ground, name: str) -> str:
    """Give the configured server a name is about, "" for none.

    Raises:
        UsageError: nothing is called anything like it.
    """
    if _own_tool(here, name) is not None:
        return ""
    known = Known(here=here, log=DecisionLog(here.paths.data), kages=(), status=None)
    return _server(here, name, known)[0].name


def _own_tool(here: Ground, name: str) -> ToolSpec | None:
    from kage.mcp.client.watchdog import Watchdog
    from kage.tools import builtin

    if name not in builtin.NAMES:
        return None
    (tool,) = builtin.create(spawner=Watchdog(), environ=here.environ, names=(name,))
    return tool.spec


def _server(here: Ground, name: str, known: Known) -> tuple[ServerSpec, str]:
    servers = here.settings.servers
    meant = [(servers[server], rest) for server, rest in owners(name, servers)]
    for spec, rest in meant:  # one server's name may be the beginning of another's
        manifest = known.manifest(spec) if rest else None
        if manifest is not None and look_up(rest, spec, manifest.listing, servers) is not None:
            return spec, rest
    if meant:
        return meant[0]
    raise _unknown(here, name, known)


def _unknown(here: Ground, name: str, known: Known) -> UsageError:
    from kage.tools.builtin import NAMES

    shown = visible(name, single_line=True)
    asked = name.removeprefix("mcp__").removeprefix("mcp:").replace(":", "__").partition("__")
    faults = [
        str(fault)
        for fault in here.loaded.faults
        if f".{asked[0]}" in f".{fault.key}" or asked[0] in fault.key.split(".")
    ]
    if faults:
        why = "; ".join(faults)
        return UsageError(f"The server {asked[0]} has a mistake in its entry", why=why)
    names = [*NAMES, *here.settings.servers]
    for spec in here.settings.servers.values():
        manifest = known.manifest(spec)
        if manifest is not None:
            names += _exposed(spec, manifest, here)
    asked_for = name if any("__" in one for one in names) else asked[0]
    what = f"No tool and no server is called {shown!r}"
    return UsageError(what, fix=f"{did_you_mean(asked_for, names)} `kage mcp list` shows servers")


def _exposed(spec: ServerSpec, manifest: Manifest, here: Ground) -> list[str]:
    every = tools_of(spec, manifest.listing, entry="", servers=here.settings.servers)
    return [tool.spec.name for tool in every]


# -- the entry -----------------------------------------------------------------------------------


def _entry_steps(found: Trace, known: Known, spec: ServerSpec) -> None:
    here = known.here
    desk = desk_of(here)
    declared = of_name(here.loaded.entries, spec.name)
    chosen = in_force(declared, desk.counts) if declared else None
    place = chosen.where if chosen is not None else str(spec.place or spec.origin)
    layer = chosen.layer.words if chosen is not None else spec.origin
    lock = ", locked there" if spec.locked else ""
    found.add("declared", f"the server {spec.name} stands in {place} ({layer}{lock})")
    for entry in declared:
        if entry is chosen or chosen is None:
            continue
        if declared.index(entry) < declared.index(chosen):
            found.add("layers", f"it replaces the one in {entry.where} ({entry.layer.words})")
        elif spec.locked:
            found.add("layers", f"the one in {entry.where} does not count: this one is locked")
        else:
            fix = f"kage mcp trust {spec.name}"
            text = f"the one in {entry.where} would replace it, and is not trusted"
            found.add("layers", text, fix=fix)
    standing = desk.standing(spec)
    refused = standing is Standing.NEVER
    if not here.settings.mcp_enabled:
        flag = "--no-mcp" if here.options.no_mcp else "enabled = false under [mcp]"
        found.add("enabled", f"no server is started: {flag}", holds=False)
    if spec.disabled and not refused:
        where = set_in(known, spec, "disabled")
        fix = f"kage mcp enable {spec.name}"
        found.add("enabled", f"the server is disabled{where}", holds=False, fix=fix)
    if standing is Standing.TRUSTED:
        why = "it is your own entry" if spec.origin == "user" else "you trusted this entry"
        found.add("trust", why)
    else:
        fault = fault_of(spec, standing)
        found.add("trust", f"{fault.what}: {fault.why}", holds=False, fix=fault.fix)


def _state_step(found: Trace, known: Known, spec: ServerSpec) -> None:
    statuses: list[tuple[str, Mapping[str, Any]]] = []
    if known.status is not None:
        statuses.append(("started for this,", known.status))
    else:
        statuses += (
            (f"in the kage with pid {kage.pid}", server)
            for kage in known.kages
            for server in kage.servers
            if server.get("name") == spec.name
        )
    if not statuses and not known.kages:
        text = "no kage runs here; what follows is what the server offered last time"
        found.add("state", text)
    elif not statuses:
        pids = ", ".join(str(kage.pid) for kage in known.kages)
        found.add("state", f"the kage running here (pid {pids}) does not have this server")
    for where, status in statuses:
        state, fault = str(status.get("state", "")), status.get("fault")
        down = state in ("failed", "needs_auth", "untrusted", "stopped", "disabled")
        if not isinstance(fault, dict):
            why = "its tools are known, a call starts it" if state == "idle" else ""
            fix = f"kage mcp login {spec.name}" if state == "needs_auth" else ""
            text = f"{where} it is {state}{f': {why}' if why else ''}"
            found.add("state", text, holds=not down, fix=fix)
            continue
        said = ": ".join(filter(None, (str(fault.get("what", "")), str(fault.get("why", "")))))
        text = f"{where} it is {state} ({fault.get('stage', '')}): {said}"
        fix = str(fault.get("fix", ""))
        found.add("state", text, holds=not down, fix=fix)

"""The links of ``kage mcp why`` about a tool: listed, named, filtered, held, deferred, judged."""

from __future__ import annotations

from collections.abc import Iterator

from kage.agent.deferral import Deferral
from kage.cli.pinning import book_of
from kage.cli.steps import Known, Trace, set_in
from kage.cli.wiring import rules_of
from kage.config.schema import ServerSpec
from kage.core.events import Event, Noticed
from kage.core.tools import ToolSpec
from kage.mcp.client.calling.adapter import ServerToolAdapter
from kage.mcp.client.calling.definitions import wanted
from kage.mcp.client.servers.absence import Listed, look_up, tools_of
from kage.mcp.client.servers.judging import offered_by
from kage.mcp.client.servers.manifest import Manifest
from kage.mcp.names import nearest
from kage.permissions.grants import Grants
from kage.permissions.outlook import outlook
from kage.providers.base import ModelInfo


def tool_steps(found: Trace, known: Known, spec: ServerSpec, rest: str) -> None:
    manifest = known.manifest(spec)
    if manifest is None:
        fix = f"To start it and look: kage mcp why {found.name} --start"
        text = "kage does not know what this entry of the server offers: it has not been up yet"
        found.add("listed", text, holds=False, fix=fix)
        found.verdict = "missing"
        return
    listed = look_up(rest, spec, manifest.listing, known.here.settings.servers)
    if listed is None:
        names = [tool.name for tool in manifest.listing.tools]
        text = f"the server listed {len(names)} tools when it was last up, and none is {rest!r}"
        near = nearest(rest, names)
        fix = f"Did you mean {near}?" if near else f"To see them all: kage mcp tools {spec.name}"
        found.add("listed", text, holds=False, fix=fix)
        found.verdict = "missing"
        return
    if listed.dropped:
        text = f"the server lists {listed.original}, but it is no sound tool: {listed.dropped}"
        found.add("listed", text, holds=False, fix="Its author has to mend the definition")
        found.verdict = "missing"
        return
    found.tool = listed.exposed
    found.add("listed", f"the server lists it as {listed.original}")
    _named(found, spec, listed)
    if listed.setting:
        where = set_in(known, spec, listed.setting)
        found.add("filter", f"{listed.filtered}{where}", holds=False)
        found.verdict = "missing"
        return
    _offered(found, known, spec, manifest, listed)


def list_step(found: Trace, known: Known, spec: ServerSpec) -> None:
    """Say how many tools a server has."""
    manifest = known.manifest(spec)
    if manifest is None:
        found.add("listed", "what it offers is not known: it has not been up yet")
        return
    listing = manifest.listing
    kept, dropped = len(wanted(listing.tools, spec)), listing.dropped
    text = f"it listed {len(listing.tools)} sound tools when it was last up, {kept} are wanted"
    found.add("listed", f"{text}; left out: {'; '.join(dropped)}" if dropped else text)


def _named(found: Trace, spec: ServerSpec, listed: Listed) -> None:
    if listed.renamed:
        found.add("name", f"models see it as {listed.exposed}: {listed.renamed}")
    elif found.name != listed.exposed:
        found.add("name", f"{found.name} means {listed.exposed}, the one spelling models see")
    else:
        found.add("name", f"{spec.name} and {listed.original}, unchanged")


def _offered(
    found: Trace, known: Known, spec: ServerSpec, manifest: Manifest, listed: Listed
) -> None:
    here = known.here
    book = book_of(here, known.log, records=False)
    verdict = book.review(offered_by(spec, manifest.listing, manifest.instructions))
    change = verdict.held.get(listed.original)
    held = ""
    if change is None:
        found.add("pin", "its definition is not held")
    else:
        held = f"its definition {change.why}"
        fix = f"Look at it: kage mcp pins diff {spec.name}/{listed.original}"
        found.add("pin", f"the tool is held: {held}", holds=False, fix=fix)
    servers = here.settings.servers
    every = tools_of(spec, manifest.listing, entry=manifest.entry, servers=servers)
    tool = next(one.spec for one in every if one.spec.name == listed.exposed)
    missing = any(not step.holds and step.name != "pin" for step in found.steps)
    hidden = not missing and _deferral(found, known, listed.exposed)
    gate_step(found, known, tool, held=held)
    if missing:
        found.verdict = "missing"
    elif held:
        found.verdict = "held"
    elif hidden and found.verdict != "deny":
        found.verdict = "hidden"


def _deferral(found: Trace, known: Known, name: str) -> bool:
    """Say whether a model only reads the tool's name; its own window is not known here."""
    here = known.here
    said: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Noticed):
            said.append(event.what)

    every = {tool.spec.name: tool for tool in _every(known)}
    model = here.options.model or here.settings.model
    info = ModelInfo(id=model, name=model.partition(":")[2])
    offer = Deferral(here.settings.defer_tools, hear).offer(every, info)
    if not offer.deferred or any(spec.name == name for spec in offer.specs):
        found.add("deferral", "requests carry its definition")
        return False
    text = f"requests only name it until it is used: {said[0] if said else 'there are many tools'}"
    found.add("deferral", text, fix='To list all: defer_tools = "never" under [mcp]')
    return True


def _every(known: Known) -> Iterator[ServerToolAdapter]:
    servers = known.here.settings.servers
    for spec in servers.values():
        manifest = None if spec.disabled else known.manifest(spec)
        if manifest is not None:
            yield from tools_of(spec, manifest.listing, entry=manifest.entry, servers=servers)


def gate_step(found: Trace, known: Known, tool: ToolSpec, *, held: str) -> None:
    here = known.here
    grants = Grants(here.paths.data / "grants.toml", log=known.log).saved
    seen = outlook(tool, rules_of(here), grants, workspace=here.workspace, held=held)
    words = {"allow": "runs without a question", "ask": "asks before each call", "deny": "refuses"}
    text = f"the gate {words[seen.wish]}: {seen.reason}"
    found.add("gate", text, holds=seen.wish != "deny")
    for more in seen.some:
        found.add("gate", more)
    found.verdict = seen.wish

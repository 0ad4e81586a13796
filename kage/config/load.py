"""Read every layer of the configuration at once, and tell all mistakes in it at once.

Weakest first: defaults, the person's config.toml, the project's files, --mcp-config. Servers of a
project count once they are trusted, which is not decided here; its stricter permissions count
at once.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kage.config import keys
from kage.config.documents import INLINE, Document, Unreadable, parse_json, read_document
from kage.config.layers import Entry, Layer, Trusted, kept_strict, merge, only_own
from kage.config.paths import Paths
from kage.config.permissions import read_permissions
from kage.config.project import read_project
from kage.config.providers import key_variables, read_providers
from kage.config.schema import (
    Limits,
    PermissionSpec,
    SandboxSpec,
    Settings,
    ToolRules,
    UndoSpec,
)
from kage.config.servers import Defaults, read_defaults, read_server
from kage.config.tables import Report, Table, dotted, nearest
from kage.config.values import spell
from kage.core.errors import ConfigFault
from kage.core.sandbox import STRICTEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What the files say, as far as it is sound, and what is wrong with the rest."""

    settings: Settings
    faults: tuple[ConfigFault, ...] = ()
    files: tuple[Path, ...] = ()  # the files that were read, strongest last
    advice: tuple[str, ...] = ()  # what could be better, for ``kage config check``
    entries: tuple[Entry, ...] = ()  # every declaration of a server, of all layers
    notes: tuple[str, ...] = ()  # those of ``settings`` that are not about layers
    hints: tuple[str, ...] = ()  # likewise those of ``advice``
    own: PermissionSpec = field(default_factory=PermissionSpec)  # the person's rules alone
    project_rules: tuple[ToolRules, ...] = ()  # those a project adds to them

    def settled(self, trusted: Trusted, plugins: Iterable[Entry] = ()) -> Loaded:
        """Give the same with the servers that count, now that it is known what is trusted.

        Args:
            trusted: Whether a person trusts an entry as it is.
            plugins: What plugins declare; nothing of it when only ``--mcp-config`` counts.
        """
        merged = merge((*self.entries, *plugins), trusted)
        settings = dataclasses.replace(
            self.settings,
            servers=merged.servers,
            project_servers=merged.waiting,
            notes=(*self.notes, *merged.notes),
        )
        advice = (*self.hints, *merged.advice)
        return dataclasses.replace(self, settings=settings, advice=advice)


def load(
    *,
    paths: Paths,
    workspace: Path,
    config_file: Path | None = None,
    mcp_config: Sequence[Path | str] = (),
    strict: bool = False,
) -> Loaded:
    """Read all layers; whatever a file holds, this never raises and never writes.

    Args:
        paths: Where the person's files are.
        workspace: The root of the project.
        config_file: Used instead of ``paths.config_file``; must exist.
        mcp_config: What ``--mcp-config`` gave: files, or JSON as text.
        strict: Only servers of ``mcp_config`` count.
    """
    loading = _Loading(workspace)
    named = config_file is not None or paths.named
    loading.user(config_file or paths.config_file, named=named, servers=not strict)
    for given in mcp_config:
        loading.extra(given)
    loading.project(servers=not strict)
    return loading.result()


class _Loading:
    """The layers read so far."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._report = Report()
        self._files: list[Path] = []
        self._settings = Settings()
        self._defaults: dict[str, Any] = {}
        self._shared: tuple[Table, ...] = ()  # the person's [mcp]
        self._entries: list[Entry] = []
        self._own = PermissionSpec()

    def result(self) -> Loaded:
        notes = tuple(self._report.notes)
        loaded = Loaded(
            own=self._own,
            project_rules=self._settings.permissions.tools[len(self._own.tools) :],
            settings=dataclasses.replace(self._settings, notes=notes),
            faults=self._report.all_faults(),
            files=tuple(self._files),
            hints=(*self._report.advice, *_twins(self._entries)),
            entries=kept_strict(self._entries),
            notes=notes,
        )
        return loaded.settled(only_own)

    def user(self, file: Path, *, named: bool, servers: bool) -> None:
        """Read the person's own file."""
        document = self._document(file, named=named)
        if document is None:
            if self._report.faults:  # there may be rules in it that refuse something
                self._settings = Settings(permissions=PermissionSpec(mode="ask"))
                self._report.note(f"{file} cannot be used, so every call asks")
            return
        top = Table(document, document.data, self._report)
        found = top.read(keys.TOP)
        providers = top.child("providers")
        permissions = top.child("permissions")
        broken = "permissions" in top.data and permissions is None
        self._settings = Settings(
            model=self._model(top, found.get("model", "")),
            theme=found.get("theme", ""),
            providers=read_providers(providers) if providers else {},
            permissions=(
                read_permissions(permissions)
                if permissions
                else PermissionSpec(mode="ask" if broken else "default")
            ),
            limits=_limits(top),
            sandbox=_sandbox(top),
            undo=_undo(top),
            keys=_keys(top),
        )
        self._plugins(top)
        mcp = top.child("mcp")
        if mcp is not None:
            self._mcp(mcp, servers=servers)

    def extra(self, given: Path | str) -> None:
        """Read one ``--mcp-config``."""
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                document: Document | None = parse_json(INLINE, given)
            except Unreadable as error:
                self._report.add(error.fault)
                return
        else:
            document = self._document(Path(os.path.expanduser(given)), named=True)
        if document is None:
            return
        top = Table(document, document.data, self._report)
        if document.json:
            table = json_servers(top)
            if table is not None:
                self._read(table, Layer.EXTRA, self._defaults, self._shared)
            return
        for name in top.data:
            if name != "mcp":
                top.fault("is not read from an --mcp-config file", key=name, expected="mcp")
        mcp = top.child("mcp")
        if mcp is not None:
            defaults = read_defaults(mcp, self._defaults)
            servers = mcp.child("servers")
            if servers is not None:
                self._read(servers, Layer.EXTRA, defaults, (mcp, *self._shared))

    def project(self, *, servers: bool) -> None:
        """Find the project's files."""
        known = {os.path.realpath(file) for file in self._files}
        self._own = self._settings.permissions
        found = read_project(
            self._workspace, self._settings, self._defaults, self._report, known=known
        )
        self._settings = found.settings
        self._files.extend(found.files)
        if servers:
            self._entries += [dataclasses.replace(e, shared=self._shared) for e in found.entries]
        self._check_names()

    def _document(self, file: Path, *, named: bool) -> Document | None:
        try:
            document = read_document(file, named=named)
        except Unreadable as error:
            self._report.add(error.fault)
            return None
        if document is not None:
            self._files.append(file)
        return document

    def _model(self, top: Table, model: str) -> str:
        provider, _, name = model.partition(":")
        if model not in ("", "offline") and not (provider and name):
            top.fault(
                "names no provider", key="model", expected='"provider:model"', got=spell(model)
            )
            return ""
        return model

    def _mcp(self, table: Table, *, servers: bool) -> None:
        self._defaults = read_defaults(table, {})
        self._shared = (table,)
        enabled = table.data.get("enabled")
        # false by mistake ("no") is still meant as false: nothing starts that was not wanted
        off = enabled is not None and enabled is not True
        store: Literal["file", "keyring"] = (
            "keyring" if table.data.get("token_store") == "keyring" else "file"
        )
        spoken = table.data.get("defer_tools")
        defer: Literal["auto", "always", "never"] = (
            "always" if spoken == "always" else "never" if spoken == "never" else "auto"
        )
        self._settings = dataclasses.replace(
            self._settings, mcp_enabled=not off, token_store=store, defer_tools=defer
        )
        child = table.child("servers")
        if child is not None and servers:
            self._read(child, Layer.USER, self._defaults, self._shared)

    def _read(
        self, table: Table, layer: Layer, defaults: Defaults, shared: tuple[Table, ...]
    ) -> None:
        hidden = key_variables(self._settings.providers)
        for name in table.data:
            entry = table.table(name)
            spec = (
                None
                if entry is None
                else read_server(entry, name, origin="user", defaults=defaults)
            )
            if entry is None or spec is None:
                continue
            if taken := hidden.intersection(spec.env_pass):
                entry.fault(f"holds {min(taken)}: provider keys are never passed", key="env_pass")
                continue
            if spec.env_pass:
                spec = dataclasses.replace(spec, env_hidden=tuple(sorted(hidden)))
            self._entries.append(Entry(spec=spec, layer=layer, table=entry, shared=shared))

    def _plugins(self, top: Table) -> None:
        """Check that plugins are tables; what is in them is theirs."""
        child = top.child("plugins")
        for name in child.data if child is not None else ():
            if child is not None:
                child.table(name)

    def _check_names(self) -> None:
        """Point out rules for servers that do not exist."""
        known = {entry.spec.name for entry in self._entries}
        for name in self._settings.permissions.servers:
            near = "" if name in known else nearest(name, known)
            if near:
                self._report.note(
                    f"{dotted(('permissions', 'mcp', name))} names no server; did you mean {near}?"
                )


def _twins(entries: Iterable[Entry]) -> Iterable[str]:
    """Point out servers that are the same under two names: each tool would be offered twice."""
    first: dict[tuple[object, ...], Entry] = {}
    for entry in entries:
        spec = entry.spec
        if spec.disabled:
            continue
        same = (spec.command, spec.args, spec.cwd, spec.url, *sorted(spec.env.items()))
        other = first.setdefault(same, entry)
        if other.spec.name != spec.name:
            what = "connects to" if spec.url else "starts"
            yield f"{entry.where}: {spec.name} {what} the same as {other.spec.name} ({other.where})"


def json_servers(top: Table) -> Table | None:
    """Find the servers of a JSON file: ``mcpServers``, or ``servers`` inside ``mcp``."""
    if "mcpServers" in top.data:
        return top.child("mcpServers")
    mcp = top.data.get("mcp")
    if isinstance(mcp, dict) and "servers" in mcp:
        child = top.child("mcp")
        return None if child is None else child.child("servers")
    near = nearest("mcpServers", top.data)
    top.fault(f"has no mcpServers{f' (there is {near})' if near else ''}", expected="mcpServers")
    return None


def _limits(top: Table) -> Limits:
    child = top.child("limits")
    return Limits(**child.read(keys.LIMITS)) if child is not None else Limits()


def _sandbox(top: Table) -> SandboxSpec:
    child = top.child("sandbox")
    if child is None:
        return SandboxSpec(bash=STRICTEST if "sandbox" in top.data else "none")
    found = child.read(keys.SANDBOX)
    if "bash" in child.data:  # what cannot be read was meant to forbid something
        found.setdefault("bash", STRICTEST)
    return SandboxSpec(**found)


def _undo(top: Table) -> UndoSpec:
    child = top.child("undo")
    return UndoSpec(**child.read(keys.UNDO)) if child is not None else UndoSpec()


def _keys(top: Table) -> dict[str, str]:
    child = top.child("keys")
    found: dict[str, str] = {}
    for key, action in child.data.items() if child is not None else ():
        if isinstance(action, str) and key.strip():
            found[key] = action
        elif child is not None:
            child.fault(
                "has the wrong type", key=key, expected="the name of an action", got=spell(action)
            )
    return found

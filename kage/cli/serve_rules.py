"""Who judges the calls ``kage mcp serve`` gets: the person's deny and ask rules, no defaults."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from kage.config.paths import Paths
from kage.config.schema import PermissionSpec
from kage.core.tools import ToolSpec, overlong
from kage.mcp.server.service import Judge, Ruling


def friction(
    permissions: PermissionSpec, root: Path, names: Collection[str]
) -> Callable[[ToolSpec, Mapping[str, Any]], Ruling | None] | None:
    """Give the judge of the person's deny and ask rules; None when no rule is about ``names``."""
    if not any(
        _concerns(table.tool, names) and (table.deny or table.ask) for table in permissions.tools
    ):
        return None
    from kage.core.gate import CallRequest
    from kage.permissions.rules.rules import Rules

    rules = Rules.from_settings(permissions)

    def judge(spec: ToolSpec, arguments: Mapping[str, Any]) -> Ruling | None:
        request = CallRequest(call_id="", tool=spec, arguments=arguments, workspace=root)
        found = rules.friction(request)
        if found is None:
            return None
        reason = f"The person's rule {found.rule} refuses this call."
        return Ruling(
            verdict="deny" if found.wish == "deny" else "ask", rule=found.rule, reason=reason
        )

    return judge


def without_held(permissions: PermissionSpec, data: Path) -> PermissionSpec:
    """Give the rules as they were before a change nobody confirmed (DESIGN section 6)."""
    kept = data / "trust.toml"
    if not kept.exists():  # nothing was ever held, which is the rule: serving starts at once
        return permissions
    from kage.config.loosening import held_back
    from kage.config.trust import TrustBook
    from kage.permissions.decisions.log import DecisionLog

    held = TrustBook(kept, log=DecisionLog(data / "decisions")).held_rules()
    return held_back(permissions, held)


def guarding_own_files(rules: Judge | None, paths: Paths, root: Path) -> Judge:
    """Add to ``rules`` that changing kage's own files asks (SECURITY T22).

    ``bash`` is left to the calling host, which shows its person the command; kage's own verbs
    refuse in it.
    """
    protected: list[Callable[[Path], bool]] = []

    def added(spec: ToolSpec, arguments: Mapping[str, Any]) -> Ruling | str | None:
        if long := overlong(spec, arguments):
            return Ruling(verdict="deny", reason=f"Nothing was called: {long}")
        found = rules(spec, arguments) if rules is not None else None
        if found is not None or spec.risk != "write":
            return found
        from kage.core.locations import resolve
        from kage.permissions.protected import Protected

        raw = arguments.get(spec.subject.argument)
        if not protected:
            protected.append(Protected.of(paths, root))
        if not isinstance(raw, str) or "\0" in raw:
            return None  # the tool says what is wrong with it
        written = Path(os.path.normpath(os.path.join(root, raw)))
        if any(map(protected[0], (resolve(root, raw), written))):
            return Ruling(verdict="ask", rule="kage's own files")
        return None

    return added


def _concerns(tool: str, names: Collection[str]) -> bool:
    return tool in names or "*" in tool

"""What rules say about a call: the order of the gate, as one pure function over settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kage.config.schema import PermissionSpec, Wish
from kage.core.errors import ConfigFault
from kage.core.gate import CallRequest, Mode, Who
from kage.core.tools import Risk, ToolSpec
from kage.permissions.rules.intake import Entry, Intake
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import HOST_TOOLS, Rule, parse_rule

__all__ = ["Entry", "Hook", "Judgement", "Rule", "Rules", "parse_rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """What a plugin's hook wants; there is no word for allow."""

    wish: Literal["deny", "ask"]
    plugin: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What settings, grants and defaults say about one call, before anybody is asked."""

    wish: Wish
    who: Who
    rule: str  # the rule, grant or default that decided
    reason: str  # a clause: "the rule bash(rm *) in config.toml:3 says so"
    every_time: bool = False  # a question no grant or allow rule can answer
    red: bool = False  # touches kage's own files


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is known about one call beside the call itself."""

    mode: Mode = Mode.DEFAULT
    held: str = ""  # why the tool is held, "" when it is not
    hook: Hook | None = None
    guarded: Path | None = None  # the place among kage's own files it could change
    grant: str = ""  # the grant that covers it, "" for none


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Every rule of this kage; never changes while it runs."""

    mode: Mode = Mode.DEFAULT
    entries: tuple[Entry, ...] = ()
    defaults: tuple[Entry, ...] = ()
    server_wishes: tuple[tuple[str, Wish], ...] = ()
    servers: frozenset[str] = frozenset()
    faults: tuple[ConfigFault, ...] = ()  # rules that could not be read; closed until mended
    notes: tuple[str, ...] = field(default=())  # rules about servers nobody configured

    @classmethod
    def from_settings(
        cls,
        spec: PermissionSpec,
        *,
        allow: Sequence[str] = (),
        servers: Collection[str] = (),
        tools: Collection[str] = HOST_TOOLS,
    ) -> Rules:
        """Take the rules from the settings and the command line.

        A malformed rule of a file is closed and told in ``faults``: what denies or asks then does
        so for the whole tool, or every call asks when not even the tool can be read; what allows
        is left out.

        Args:
            spec: The merged ``[permissions]`` tables.
            allow: The rules of ``--allow``.
            servers: Every configured server's name.
            tools: The names of kage's own tools.

        Raises:
            UsageError: a rule of ``--allow`` is malformed, or names no tool there can be.
        """
        known = frozenset(servers)
        taken = Intake(servers=known, tools=frozenset(tools))
        for table in spec.tools:
            taken.table(table)
        for text in allow:
            rule = parse_rule(text, servers=known)
            taken.check_tool(rule.tool)
            entry = Entry(rule=rule, wish="allow", source="--allow", command_line=True)
            taken.entries.append(entry)
        for name in spec.servers:
            taken.check_server(name)
        return cls(
            mode=Mode(spec.mode),
            entries=tuple(taken.entries),
            defaults=tuple(taken.defaults),
            server_wishes=tuple(spec.servers.items()),
            servers=known,
            faults=tuple(taken.faults),
            notes=tuple(dict.fromkeys(taken.notes)),
        )

    def judge(self, reading: Reading, case: Case | None = None) -> Judgement:
        """Say what is to be done about a call, in the order of DESIGN section 6."""
        case = case or Case()
        verdict = self._refusal(reading, case)
        if verdict is not None:
            return verdict
        if reading.by_hand:
            return self._by_hand(reading)
        asked = self._must_ask(reading, case)
        if case.mode is not Mode.DEFAULT:
            return self._by_mode(reading, case, asked)
        if asked is not None:
            return asked
        if case.grant:
            return Judgement(
                wish="allow",
                who=Who.GRANT,
                rule=case.grant,
                reason=f"you granted {case.grant}",
            )
        return self._allowance(reading) or self._default(reading)

    def friction(self, request: CallRequest) -> Judgement | None:
        """Give the deny or ask pattern that is about this call, or None.

        For hosts where another program holds the person: defaults and allow rules say nothing
        there (DESIGN section 5, the server half).
        """
        reading = Reading.of(request)
        return self._pattern(reading, "deny") or self._pattern(reading, "ask")

    # -- the steps, in order -----------------------------------------------------------------

    def _refusal(self, reading: Reading, case: Case) -> Judgement | None:
        if case.held:
            return Judgement(wish="deny", who=Who.HOLD, rule="hold", reason=case.held)
        denied = self._pattern(reading, "deny")
        if denied is not None:
            return denied
        if self._server_wish(reading.tool) == "deny":
            return self._server_wide(reading.tool, "deny")
        if case.hook is not None and case.hook.wish == "deny":
            return _hooked(case.hook)
        return None

    def _by_hand(self, reading: Reading) -> Judgement:
        default = self._tool_default(reading)
        if default is not None and default.wish == "deny":
            return default
        return Judgement(wish="allow", who=Who.PERSON, rule="by hand", reason="you made this call")

    def _by_mode(self, reading: Reading, case: Case, asked: Judgement | None) -> Judgement:
        red = asked is not None and asked.red
        if case.mode is Mode.ASK:
            return Judgement(
                wish="ask",
                who=Who.MODE,
                rule="/permission ask",
                reason=asked.reason if asked else "every call asks in this session",
                every_time=True,
                red=red,
            )
        default = self._tool_default(reading)
        free = asked is None and (default is None or default.wish == "allow")
        if free and self._risk_default(reading).wish == "allow":
            return self._risk_default(reading)
        return Judgement(
            wish="deny",
            who=Who.MODE,
            rule="/permission deny",
            reason="this session refuses every call that would need an answer",
            red=red,
        )

    def _must_ask(self, reading: Reading, case: Case) -> Judgement | None:
        if case.guarded is not None:
            return Judgement(
                wish="ask",
                who=Who.DEFAULT,
                rule="kage's own files",
                reason=f"it could change kage's own files: {case.guarded}",
                every_time=True,
                red=True,
            )
        if reading.again:
            return Judgement(
                wish="ask",
                who=Who.DEFAULT,
                rule="repeated call",
                reason="the same call was sent before, its outcome is unknown: it may act twice",
                every_time=True,
            )
        asked = self._pattern(reading, "ask")
        if asked is not None:
            return asked
        return _hooked(case.hook) if case.hook is not None else None

    def _allowance(self, reading: Reading) -> Judgement | None:
        entries = [
            entry
            for entry in self.entries
            if entry.wish == "allow"
            and entry.rule.names(reading.tool, self.servers, strictly=True)
            and (entry.command_line or _users(reading.tool))
        ]
        used = reading.covering([entry.rule.pattern for entry in entries])
        if used:
            return _said(_named([entries[index] for index in used]), "allow")
        if self._server_wish(reading.tool) == "allow" and _users(reading.tool):
            return self._server_wide(reading.tool, "allow")
        return None

    def _default(self, reading: Reading) -> Judgement:
        wanted = self._tool_default(reading)
        if wanted is not None:
            return wanted
        if self._server_wish(reading.tool) == "ask":
            return self._server_wide(reading.tool, "ask")
        return self._risk_default(reading)

    def _tool_default(self, reading: Reading) -> Judgement | None:
        about = [
            entry
            for entry in self.defaults
            if entry.everywhere
            or entry.rule.names(reading.tool, self.servers, strictly=entry.wish == "allow")
        ]
        about = [
            entry
            for entry in about
            if entry.wish != "allow" or (_users(reading.tool) and not reading.outside)
        ]
        if not about:
            return None
        # where two are equally specific the stricter one counts
        chosen = max(about, key=lambda entry: (entry.rule.rank, _STRICT[entry.wish]))
        return Judgement(
            wish=chosen.wish,
            who=Who.DEFAULT,
            rule=str(chosen.rule),
            reason=f"the default of {chosen.rule} in {chosen.source} is {chosen.wish}",
        )

    def _risk_default(self, reading: Reading) -> Judgement:
        tool = reading.tool
        if tool.server is not None:
            return _by_default("ask", "every MCP tool asks", Risk.EXEC)
        if tool.risk is not Risk.READ:
            return _by_default("ask", f"{_RISKS[tool.risk]} asks", tool.risk)
        if not reading.at_home:
            return _by_default("ask", f"it is outside the workspace: {reading.path}", tool.risk)
        return _by_default("allow", "reading inside the workspace is free", tool.risk)

    # -- lookups -----------------------------------------------------------------------------

    def _pattern(self, reading: Reading, wish: Literal["deny", "ask"]) -> Judgement | None:
        entries = [
            entry
            for entry in self.entries
            if entry.wish == wish
            and (entry.everywhere or entry.rule.names(reading.tool, self.servers, strictly=False))
        ]
        broken = [entry for entry in entries if entry.everywhere]
        if broken:
            return _said(broken[0], wish)
        hit = reading.touching([entry.rule.pattern for entry in entries])
        return _said(_named([entries[index] for index in hit]), wish) if hit else None

    def _server_wish(self, tool: ToolSpec) -> Wish | None:
        if tool.server is None:
            return None
        found: list[Wish] = [
            wish
            for name, wish in self.server_wishes
            if Rule(tool=f"{name}__*").names(tool, self.servers, strictly=wish == "allow")
        ]
        if not found:
            return None
        return max(found, key=lambda wish: _STRICT[wish])

    def _server_wide(self, tool: ToolSpec, wish: Wish) -> Judgement:
        server = tool.server.server if tool.server else ""
        return Judgement(
            wish=wish,
            who=Who.DEFAULT if wish == "ask" else Who.RULE,
            rule=f"{server}__*",
            reason=f"[permissions.mcp] says {wish} for the server {server}",
        )


_STRICT: dict[Wish, int] = {"allow": 0, "ask": 1, "deny": 2}
_RISKS = {
    Risk.READ: "reading",
    Risk.WRITE: "changing files",
    Risk.EXEC: "running commands",
    Risk.NETWORK: "reaching the network",
}


def _users(tool: ToolSpec) -> bool:
    """Say whether the person's own file is about this tool.

    A server of a project or plugin that carries the name of one in the file is another server.
    """
    return tool.server is None or tool.server.origin == "user"


def _named(entries: Sequence[Entry]) -> Entry:
    return max(entries, key=lambda entry: entry.rule.rank)


def _said(entry: Entry, wish: Wish) -> Judgement:
    word = {"deny": "denies", "ask": "asks every time", "allow": "allows it"}[wish]
    reason = f"the rule {entry.rule} ({entry.source}) {word}"
    if entry.everywhere:
        reason = f"the rules for {entry.rule} ({entry.source}) cannot be read, so every call asks"
    return Judgement(
        wish=wish, who=Who.RULE, rule=str(entry.rule), reason=reason, every_time=wish == "ask"
    )


def _hooked(hook: Hook) -> Judgement:
    why = f": {hook.why}" if hook.why else ""
    return Judgement(
        wish=hook.wish,
        who=Who.HOOK,
        rule=f"hook {hook.plugin}",
        reason=f"the plugin {hook.plugin} says so{why}",
        every_time=hook.wish == "ask",
    )


def _by_default(wish: Wish, reason: str, risk: Risk) -> Judgement:
    return Judgement(wish=wish, who=Who.DEFAULT, rule=f"default for {risk}", reason=reason)

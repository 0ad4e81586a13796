"""Which rules would have saved the most questions, with the evidence (``kage log suggest``).

A rule is suggested only for calls a person was asked about and allowed, never where one like it
was refused, and no broader than what was seen: one tool of one server, never a compound shell
line, a folder or a site only when several places in it were allowed. Whether a rule would really
have answered a question is found out by judging each call again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kage.core.gate import CallRequest, Verdict, Who
from kage.core.tools import Risk, ServerTool, SubjectKind, ToolSpec
from kage.permissions.decisions.cases import Case
from kage.permissions.offers import MAX_RULE
from kage.permissions.rules import glob
from kage.permissions.rules.places import climbs, escape_argument, normal_url, spelled
from kage.permissions.rules.reading import Reading
from kage.permissions.rules.rule import Rule

MAX_CALLS = 5_000  # different calls that are looked at
_LEAST = 2  # questions a rule must save
_PLACES = 3  # different places before their folder or site is suggested
_CALLS = 5  # questions about a server's tool before the whole of it is suggested
_EXAMPLES = 3
_TRIED = 50  # rules of one kind that are tried for a tool
_REDACTED = "[redacted:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A rule, and the questions that speak for it."""

    rule: Rule
    saved: int  # questions it would have answered
    calls: int  # different calls among them
    folders: int  # workspaces they came from; the rule counts in every one
    first: str  # when the first was asked
    last: str
    examples: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Asked:
    """One call that was asked about, as often as it came."""

    reading: Reading
    first: str
    last: str
    times: int = 1


@dataclass(slots=True, kw_only=True)
class _Heard:
    """What was asked about one tool."""

    spec: ToolSpec
    allowed: list[_Asked] = field(default_factory=list)
    refused: list[_Asked] = field(default_factory=list)


class Evidence:
    """Collects the questions of the log.

    Args:
        specs: kage's own tools by name.
        servers: The configured servers of the person's own file.
        savable: Says whether a call asks now, in a way a rule could answer.
    """

    def __init__(
        self,
        *,
        specs: Mapping[str, ToolSpec],
        servers: Collection[str],
        savable: Callable[[Reading], bool],
    ) -> None:
        self._specs = specs
        self._servers = servers
        self._savable = savable
        self._heard: dict[str, _Heard] = {}
        self._asked: dict[str, _Asked] = {}
        self._closed: set[str] = set()  # tools of which a refusal cannot be read

    def take(self, case: Case) -> None:
        """Look at one case; what was no question is passed over."""
        said, when = _answer(case), case.text("time")
        if not said:
            return
        names = ("tool", "server", "origin", "pin", "workspace", "digest")
        key = "\0".join((said, *map(case.text, names)))
        known = self._asked.get(key)
        if known is not None:
            known.times += 1
            known.first, known.last = min(known.first, when), max(known.last, when)
            return
        no = said == Verdict.DENY
        reading = self._reading(case) if no or len(self._asked) < MAX_CALLS else None
        if reading is None:
            if no:  # it may have been like any other call
                self._closed.add(case.text("tool"))
            return
        self._asked[key] = asked = _Asked(reading=reading, first=when, last=when)
        heard = self._heard.setdefault(reading.tool.name, _Heard(spec=reading.tool))
        (heard.refused if no else heard.allowed).append(asked)

    def suggestions(self) -> tuple[Suggestion, ...]:
        """Give the rules, the one that saves the most first."""
        open_ = [heard for name, heard in self._heard.items() if name not in self._closed]
        found = [one for heard in open_ for one in self._about(heard)]
        return tuple(sorted(found, key=lambda one: (-one.saved, str(one.rule))))

    def _reading(self, case: Case) -> Reading | None:
        """Read the call anew, as rules see it; None where the log does not hold all of it."""
        arguments = case.fields.get("arguments")
        if not isinstance(arguments, dict) or _REDACTED in spelled(arguments):
            return None
        if arguments.keys() in ({"cut", "characters"}, {"unreadable"}):
            return None
        name, server = case.text("tool"), case.text("server")
        spec = self._specs.get(name) if not server else None
        if server in self._servers and case.text("origin") == "user":
            spec = _spec(case)
        if spec is None or not case.text("workspace"):
            return None
        request = CallRequest(
            call_id="", tool=spec, arguments=arguments, workspace=Path(case.text("workspace"))
        )
        return Reading.of(request)

    def _about(self, heard: _Heard) -> Iterator[Suggestion]:
        open_ = [one for one in heard.allowed if self._savable(one.reading)]
        fitting: list[tuple[int, Rule, list[_Asked]]] = []
        for rule in _candidates(open_):
            if not _sayable(rule) or any(_covers(rule, one.reading) for one in heard.refused):
                continue
            if not rule.names(heard.spec, self._servers, strictly=True):
                continue
            saves = [one for one in open_ if _covers(rule, one.reading)]
            fitting.append((sum(one.times for one in saves), rule, saves))
        done: set[int] = set()
        # of two rules that save as much the narrower one
        for _, rule, saves in sorted(fitting, key=lambda one: (-one[0], _breadth(one[1]))):
            new = [one for one in saves if id(one) not in done]
            if sum(one.times for one in new) < _LEAST:
                continue
            done.update(id(one) for one in new)
            yield _suggestion(rule, new)


def refused(case: Case) -> bool:
    """Say whether a person said no to a question about a call."""
    return _answer(case) == Verdict.DENY


def _answer(case: Case) -> str:
    """Give what a person said to a question about a call, "" when nobody was asked."""
    if case.kind != "decision" or case.text("who") != Who.PERSON or case.fields.get("by_hand"):
        return ""
    if case.text("rule") in ("by hand", "sealed"):
        return ""
    said = case.text("verdict")
    return said if said in (Verdict.ALLOW, Verdict.DENY) else ""


def _spec(case: Case) -> ToolSpec:
    server = ServerTool(
        server=case.text("server"),
        origin=case.text("origin"),
        original=case.text("original"),
        entry_hash=case.text("entry_hash"),
        pin=case.text("pin"),
        connection="",
    )
    return ToolSpec(
        name=case.text("tool"), description="", schema={}, risk=Risk.EXEC, server=server
    )


def _covers(rule: Rule, reading: Reading) -> bool:
    return bool(reading.covering([rule.pattern]))


def _breadth(rule: Rule) -> tuple[bool, bool, int]:
    return not rule.pattern, glob.literal(rule.pattern) is None, -glob.weight(rule.pattern)


def _sayable(rule: Rule) -> bool:
    """Say whether a person can read the rule and paste it."""
    text = str(rule)
    return len(text) <= MAX_RULE and text.isprintable()


def _suggestion(rule: Rule, asked: Sequence[_Asked]) -> Suggestion:
    often = sorted(asked, key=lambda one: -one.times)
    return Suggestion(
        rule=rule,
        saved=sum(one.times for one in asked),
        calls=len(asked),
        folders=len({one.reading.workspace for one in asked}),
        first=min(one.first for one in asked),
        last=max(one.last for one in asked),
        examples=tuple(_example(one.reading) for one in often[:_EXAMPLES]),
    )


def _example(reading: Reading) -> str:
    if reading.kind is SubjectKind.ARGUMENTS:
        return spelled(dict(reading.arguments))
    return str(reading.path) if reading.path is not None else reading.text


# -- candidates ----------------------------------------------------------------------------------


def _candidates(asked: Sequence[_Asked]) -> Iterator[Rule]:
    if not asked:
        return
    exact: Counter[str] = Counter()
    for one in asked:
        if pattern := _exact(one.reading):
            exact[pattern] += one.times
    found = [pattern for pattern, times in exact.most_common(_TRIED) if times >= _LEAST]
    tool, kind = asked[0].reading.tool.name, asked[0].reading.kind
    match kind:
        case SubjectKind.PATH:
            found += _folders(asked)
        case SubjectKind.URL:
            found += _sites(asked)
        case SubjectKind.ARGUMENTS:
            found += _constants(asked)
    for pattern in dict.fromkeys(found):
        yield Rule(tool=tool, pattern=pattern)


def _exact(reading: Reading) -> str:
    """Give the pattern for this very call, "" where it is none to suggest."""
    match reading.kind:
        case SubjectKind.COMMAND:
            line, text = reading.line, reading.text.strip()
            plain = not (line.opaque or line.broken or line.targets or line.feeds)
            one = len(line.commands) == 1 and line.commands[0].raw == text
            return glob.escape(text) if plain and one and not line.commands[0].assignments else ""
        case SubjectKind.PATH:
            return glob.escape(str(reading.path))
        case SubjectKind.URL:
            url = normal_url(reading.text)
            return glob.escape(url) if url is not None and not climbs(reading.text) else ""
        case SubjectKind.ARGUMENTS:
            pairs = sorted((name, spelled(value)) for name, value in reading.arguments.items())
            return ",".join(escape_argument(*pair) for pair in pairs)


def _folders(asked: Iterable[_Asked]) -> Iterator[str]:
    """Give the folders inside a workspace in which several files were allowed."""
    met: dict[Path, set[Path]] = {}
    for reading in (one.reading for one in asked):
        if reading.path is None or reading.path.parent == reading.workspace:
            continue
        if reading.path.is_relative_to(reading.workspace):
            met.setdefault(reading.path.parent, set()).add(reading.path)
    for folder, paths in met.items():
        if len(paths) >= _PLACES:
            yield f"{glob.escape(str(folder))}/*"


def _sites(asked: Iterable[_Asked]) -> Iterator[str]:
    met: dict[str, set[str]] = {}
    for reading in (one.reading for one in asked):
        url = normal_url(reading.text)
        if url is not None:
            parts = urlsplit(url)
            site = f"{parts.scheme}://{glob.escape(parts.netloc)}/*"
            met.setdefault(site, set()).add(url)
    yield from (site for site, urls in met.items() if len(urls) >= _PLACES)


def _constants(asked: Sequence[_Asked]) -> Iterator[str]:
    """Give arguments that stayed the same while others changed, and the tool as a whole."""
    same: Counter[tuple[str, str]] = Counter()
    for one in asked:
        same.update((name, spelled(value)) for name, value in one.reading.arguments.items())
    for pair, count in same.most_common(_TRIED):
        if count >= _PLACES:
            yield escape_argument(*pair)
    if len(asked) >= _PLACES and sum(one.times for one in asked) >= _CALLS:
        yield ""

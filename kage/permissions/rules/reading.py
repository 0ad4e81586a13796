"""One call as rules see it: the line, path, address or arguments a person would read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kage.core.gate import CallRequest
from kage.core.locations import is_inside, resolve
from kage.core.tools import Risk, SubjectKind, ToolSpec
from kage.permissions.rules import commands, places, shell
from kage.permissions.rules.line import Line, word_set

_MOVERS = word_set("rm mv rmdir unlink shred chmod chown")
_MAX_PLACES = 400
_QUOTED = re.compile(r"""['"]([^'"\s]+)(?=['"])""")  # in a program that is one word: python -c …


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a call is about; paths are resolved when it is made and never again."""

    tool: ToolSpec
    arguments: Mapping[str, Any]  # JSON
    workspace: Path  # resolved
    roots: tuple[Path, ...] = ()  # resolved: where read-risk tools are at home beside the workspace
    text: str = ""  # the subject as written
    path: Path | None = None  # what a file tool is about, resolved
    odd: bool = False  # the subject is no text; no pattern can judge it
    by_hand: bool = False
    again: bool = False  # repeats a call whose outcome is unknown

    @classmethod
    def of(cls, request: CallRequest, *, roots: Sequence[Path] = ()) -> Reading:
        """Read ``request``; touches the file system only to follow links."""
        subject = request.tool.subject
        workspace = resolve(request.workspace, "")
        value = request.arguments.get(subject.argument, subject.default)
        if value is None:
            value = subject.default
        text = value if isinstance(value, str) else ""
        about_path = subject.kind is SubjectKind.PATH
        return cls(
            tool=request.tool,
            arguments=request.arguments,
            workspace=workspace,
            roots=tuple(resolve(workspace, str(root)) for root in roots),
            text=text,
            path=resolve(workspace, text) if about_path else None,
            odd=not isinstance(value, str),
            by_hand=request.by_hand,
            again=request.again,
        )

    @property
    def kind(self) -> SubjectKind:
        """What patterns for this tool are matched against."""
        return self.tool.subject.kind

    @property
    def outside(self) -> bool:
        """Whether a file tool leaves the workspace."""
        return self.path is not None and not is_inside(self.path, (self.workspace,))

    @property
    def at_home(self) -> bool:
        """Whether a read-risk file tool stays where it may read without a question."""
        return self.path is None or is_inside(self.path, (self.workspace, *self.roots))

    @cached_property
    def line(self) -> Line:
        """The shell line, taken apart."""
        return shell.parse(self.text)

    def covering(self, patterns: Sequence[str]) -> tuple[int, ...]:
        """Give the indexes of the allow patterns that cover the whole call together; () if none.

        The empty pattern is a whole tool's: it covers every call, except that for a file tool it
        ends at the workspace.
        """
        whole = tuple(index for index, pattern in enumerate(patterns) if not pattern)
        some = [(index, pattern) for index, pattern in enumerate(patterns) if pattern]
        if not self.odd and some:
            if self.kind is SubjectKind.COMMAND:
                used = commands.covering(self.line, [pattern for _, pattern in some])
                found = tuple(some[index][0] for index in used)
            else:
                found = tuple(index for index, pattern in some if self._allowed(pattern))
            if found:
                return found
        return () if self.outside else whole

    def touching(self, patterns: Sequence[str]) -> tuple[int, ...]:
        """Give the indexes of the deny or ask patterns that fit any reading of the call."""
        whole = {index for index, pattern in enumerate(patterns) if not pattern or self.odd}
        some = [(index, pattern) for index, pattern in enumerate(patterns) if index not in whole]
        if self.kind is SubjectKind.COMMAND:
            hit = commands.touching(self.line, [pattern for _, pattern in some]) if some else ()
            whole |= {some[index][0] for index in hit}
        else:
            whole |= {index for index, pattern in some if self._touched(pattern)}
        return tuple(sorted(whole))

    def _allowed(self, pattern: str) -> bool:
        match self.kind:
            case SubjectKind.PATH:
                assert self.path is not None
                return places.path_allowed(pattern, self.text, self.path, self.workspace)
            case SubjectKind.URL:
                return places.url_allowed(pattern, self.text)
            case _:
                return places.arguments_allowed(pattern, self.arguments)

    def _touched(self, pattern: str) -> bool:
        match self.kind:
            case SubjectKind.PATH:
                assert self.path is not None
                return places.path_touched(pattern, self.text, self.path, self.workspace)
            case SubjectKind.URL:
                return places.url_touched(pattern, self.text)
            case _:
                return places.arguments_touched(pattern, self.arguments, self.workspace)

    def guarded(self, protected: Callable[[Path], bool]) -> Path | None:
        """Give the first place among kage's own files this call could change, None if none."""
        for count, place in enumerate(self._touchable()):
            if protected(place):
                return place
            if count >= _MAX_PLACES:
                break
        return None

    def _touchable(self) -> Iterator[Path]:
        match self.kind:
            case SubjectKind.PATH:
                if self.tool.risk is not Risk.READ and self.path is not None:
                    yield self.path
                    yield places.lexical(self.workspace, self.text)
            case SubjectKind.COMMAND:
                yield from self._named_by_line()
            case SubjectKind.ARGUMENTS:
                for text in places.path_like(dict(self.arguments)):
                    yield resolve(self.workspace, text)
                    yield places.lexical(self.workspace, text)

    def _named_by_line(self) -> Iterator[Path]:
        seen: set[Path] = set()
        bases = [self.workspace]
        for command in commands.named(self.line, frozenset(("cd", "pushd"))):
            bases += [resolve(self.workspace, self._filled(word)) for word in command.words[1:3]]
        for word in commands.words(self.line):
            for text in _spellings(self._filled(word)):
                for base in bases[:8]:
                    for place in (resolve(base, text), places.lexical(base, text)):
                        if place not in seen:
                            seen.add(place)
                            yield place

    def uprooted(self) -> Iterator[Path]:
        """Yield the places a shell line may move or remove as a whole."""
        if self.kind is not SubjectKind.COMMAND:
            return
        for command in commands.named(self.line, _MOVERS):
            moved = [word for word in command.words[1:] if not word.startswith("-")]
            if "mv" in command.words and len(moved) > 1:
                moved.pop()  # where to
            for word in moved:
                yield resolve(self.workspace, self._filled(word))

    def _filled(self, word: str) -> str:
        """Put in variables: what the line itself gives them, else kage's own."""
        if "$" not in word:
            return word
        return os.path.expandvars(commands.with_values(word, self.line))


def _spellings(word: str) -> Iterator[str]:
    """Give what a shell word may mean as a path: whole, behind ``=`` or ``:``, quoted in it."""
    parts = {word, *re.split(r"[=:,@]", word), re.sub(r"^-[A-Za-z]", "", word)}
    for text in parts.union(_QUOTED.findall(word)):
        if text and len(text) < 4096 and "\n" not in text and text not in (".", "/"):
            yield text

"""Match patterns against a shell line: ``allow`` needs every command, ``deny`` and ``ask`` any.

``allow`` reads a command only as it is written. ``deny`` and ``ask`` also read it without quotes,
without its folder, behind wrappers such as ``sudo`` and inside lines handed to another shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import dropwhile

from kage.permissions.rules import glob, powers
from kage.permissions.rules.line import Command, Line, word_set
from kage.permissions.rules.places import climbs
from kage.permissions.rules.shell import parse

# run a program named by their arguments
_RUNNERS = word_set(
    "sudo doas su env xargs nohup time nice ionice timeout command exec builtin setsid stdbuf"
    " unbuffer watch script parallel chroot unshare nsenter systemd-run runuser pkexec flock"
    " strace ltrace chrt taskset caffeinate arch entr busybox ssh find fd coproc"
)
# read a shell line from an argument or their input
_SHELLS = word_set("sh bash dash zsh ksh mksh ash fish rbash")
_LINES = _SHELLS | word_set("eval su env watch script ssh trap parallel xargs flock")
_JOINS = word_set("eval watch ssh parallel")  # put their arguments together to one line
_SOURCES = frozenset(("source", "."))
# change how the rest of the line is read, or run what is put into a variable later
_STATES = word_set(
    "alias unalias enable hash trap set shopt bind complete compgen read mapfile readarray getopts"
)
# an allow pattern names these itself, or does not match them
_GUARDED = (_RUNNERS - {"find", "fd"}) | _LINES | _SOURCES | _STATES
_MOVES = frozenset(("cd", "pushd", "popd"))
# builtins that evaluate a subscript in an argument, quoted or not: printf -v 'a[$(rm x)]'
_EVALUATES = word_set(
    "printf test [ read unset declare typeset local export readonly let wait mapfile readarray"
    " getopts"
)
_ECHOES = frozenset(("echo", "printf", "cat"))
_SPLIT = re.compile(r"[;|&\n(){}`]+|\$\(|\b(?:then|do|else)\b")
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_MAX_NESTING = 6
_MAX_READINGS = 20_000
_MAX_ARGUMENTS = 1_000  # of a wrapper


class _TooMuch(Exception):
    """The line is built to be unreadable; every deny and ask pattern counts as hit."""


def matches(pattern: str, text: str) -> bool:
    """Say whether ``pattern`` fits a command; a last `` *`` also stands for no arguments."""
    if glob.matches(pattern, text):
        return True
    return pattern.endswith(" *") and glob.matches(pattern[:-2], text)


def covering(line: Line, patterns: Sequence[str]) -> tuple[int, ...]:
    """Give the indexes of the patterns that together allow every command of ``line``; () if not.

    A pattern without wildcards also allows the whole line it spells.
    """
    whole = line.text.strip()
    for index, pattern in enumerate(patterns):
        if whole and glob.literal(pattern) == whole:
            return (index,)
    if line.opaque or not line.commands or _elsewhere(line):
        return ()
    used: set[int] = set()
    for command in line.commands:
        fitting = [index for index, pattern in enumerate(patterns) if _allows(pattern, command)]
        if not fitting:
            return ()
        used.add(max(fitting, key=lambda index: glob.weight(patterns[index])))
    return tuple(sorted(used))


def touching(line: Line, patterns: Sequence[str]) -> tuple[int, ...]:
    """Give the indexes of the patterns that fit any reading of any command of ``line``."""
    if not patterns:
        return ()
    hit: set[int] = set()
    try:
        for text in _readings(line):
            hit |= {index for index, pattern in enumerate(patterns) if matches(pattern, text)}
    except _TooMuch:
        return tuple(range(len(patterns)))
    return tuple(sorted(hit))


def words(line: Line) -> tuple[str, ...]:
    """Give every word, target and assigned value of ``line``, nested lines included."""
    found: dict[str, None] = {}
    for part in _parts(line):
        found.update(dict.fromkeys(part.targets))
        for command in part.commands:
            found.update(dict.fromkeys(with_values(word, part) for word in command.words))
        if part.broken:
            found.update(dict.fromkeys(re.split(r"[\s;|&<>(){}`'\"]+", part.text)))
    return tuple(found)


def named(line: Line, names: frozenset[str]) -> tuple[Command, ...]:
    """Give the commands of ``line`` called one of ``names``, nested lines included."""
    return tuple(
        command
        for part in _parts(line)
        for command in part.commands
        if any(_base(word) in names for word in command.words[:8])
    )


def _elsewhere(line: Line) -> bool:
    """Say whether a program named by a relative path is looked for where the line went to."""
    names = [command.words[0] for command in line.commands]
    if not any(_base(name) in _MOVES for name in names):
        return False
    return any(
        ("/" in name and not name.startswith("/")) or _base(name) in _SHELLS | _SOURCES
        for name in names
    )


def _allows(pattern: str, command: Command) -> bool:
    name = command.words[0]
    base = _base(name)
    fixed = glob.head(pattern)
    if base in _GUARDED and fixed != name and not fixed.startswith(f"{name} "):
        return False
    if any(f" {word} " not in f"{fixed} " for word in powers.of(base, command)):
        return False
    if base in _EVALUATES and _evaluated(base, command.words[1:], fixed):
        return False
    if command.assignments and not fixed.startswith(command.assignments):
        return False
    if command.redirected:
        return _covers_redirection(pattern, command)
    if glob.in_folder(pattern) and any(_climbs(word) for word in command.words):
        return False
    readings = [command.raw]
    if command.exact and not command.assignments:
        readings.append(" ".join(map(shlex.quote, command.words)))
    return any(_fits(pattern, reading) for reading in readings)


def _climbs(word: str) -> bool:
    """Say whether a path goes up, or a wildcard in it could: ``.?`` and ``.*`` are ``..`` too."""
    return climbs(word) or any(
        part.startswith(".") and fnmatchcase("..", part) for part in word.split("/")
    )


def _fits(pattern: str, text: str) -> bool:
    """Match as ``matches`` does, but a wildcard of a path or address ends with its word."""
    if glob.matches_words(pattern, text):
        return True
    return pattern.endswith(" *") and glob.matches_words(pattern[:-2], text)


def _evaluated(base: str, arguments: Sequence[str], fixed: str) -> bool:
    """Say whether a builtin could run what stands in an argument, or change a variable."""
    if any("$(" in word or "`" in word for word in arguments):
        return True
    if base == "printf":
        first = next(iter(arguments), "")
        return first[:1] in ("-", "$", "{", "[", "*", "?") and not fixed.startswith("printf -v ")
    return any("$" in word for word in arguments)


def _covers_redirection(pattern: str, command: Command) -> bool:
    """Say whether ``pattern`` spells the redirections itself, behind its last wildcard."""
    spelled = glob.literal(pattern)
    if spelled is not None:
        return spelled == command.redirected
    return glob.tail(pattern).endswith(f" {command.redirections}") and glob.matches(
        pattern, command.redirected
    )


def _nested(line: Line, depth: int) -> Iterator[Line]:
    """Yield ``line`` and every line it hands to another shell, as far as that can be seen."""
    yield line
    shells = any(_base(word) in _LINES for command in line.commands for word in command.words)
    inner: list[str] = list(line.feeds)
    for command in line.commands:
        base = _base(command.words[0])
        if any(_base(word) in _LINES for word in command.words):
            inner += [word for word in command.words[1:] if re.search(r"\s|[;|&$`]", word)]
            if base in _JOINS:
                inner.append(" ".join(command.words[1:]))
        elif shells and base in _ECHOES:
            inner += command.words[1:]
    for text in dict.fromkeys(inner):
        if text.strip() and text != line.text:
            if depth >= _MAX_NESTING:
                raise _TooMuch
            yield from _nested(parse(with_values(text, line)), depth + 1)


def _parts(line: Line) -> Iterator[Line]:
    """Like ``_nested``, but ends where it becomes too much."""
    try:
        yield from _nested(line, 0)
    except _TooMuch:
        return


def _readings(line: Line) -> Iterator[str]:
    count = 0
    yield line.text.strip()
    for part in _nested(line, 0):
        for text in _part_readings(part):
            yield text
            count += 1
            if count >= _MAX_READINGS:
                raise _TooMuch


def _part_readings(part: Line) -> Iterator[str]:
    yield part.text.strip()
    if part.broken:
        for piece in _SPLIT.split(part.text):
            yield " ".join(piece.split())
            yield " ".join(piece.replace(",", " ").split())
            rough = [word.strip("'\"\\") for word in piece.split()]
            yield from _word_readings(list(dropwhile(_ASSIGNS.match, rough)))
    for command in part.commands:
        yield command.raw
        yield command.redirected or command.raw
        filled = [with_values(word, part) for word in command.words]
        yield from _word_readings(command.words)
        yield from _word_readings(" ".join(filled).split())
        if any("{" in word for word in filled):
            yield from _word_readings(re.sub(r"[{},]", " ", " ".join(filled)).split())


def _word_readings(words: Sequence[str]) -> Iterator[str]:
    """Yield the command as plain text: as called, by its bare name, and behind wrappers."""
    if not words:
        return
    starts = [0]
    if _base(words[0]) in _RUNNERS | _LINES:
        if len(words) > _MAX_ARGUMENTS:
            raise _TooMuch
        starts += range(1, len(words))
    for start in starts:
        rest = words[start:]
        yield " ".join(rest)
        base = _base(rest[0])
        if base != rest[0]:
            yield " ".join((base, *rest[1:]))


def with_values(word: str, line: Line) -> str:
    """Put in the values the line itself gives to its variables."""
    if "$" not in word:
        return word
    return _VARIABLE.sub(lambda match: line.variables.get(match[1], match[0]), word)


def _base(word: str) -> str:
    return word.rsplit("/", 1)[-1]

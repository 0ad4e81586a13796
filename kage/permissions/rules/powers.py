"""Arguments that give an everyday program another power: to run others, to write, to delete.

A person who allows ``find *`` or ``git *`` thinks of looking and of git; what is listed here has
to stand in the rule itself. A word the shell still expands counts when it could become one.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from kage.permissions.rules.line import Command, word_set

# "-x" also inside a bundle "-Hx", "--exec" also with "=value" and cut short, others as they are
_POWERS = {
    "find": word_set(
        "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from"
    ),
    "fd": word_set("-x -X --exec --exec-batch"),
    "git": word_set(
        "-c -x -O --config-env --exec-path --exec --extcmd --upload-pack --receive-pack --config"
        " --open-files-in-pager --ext-diff --textconv foreach filter-branch bisect config --output"
    ),
    "rg": word_set("--pre --hostname-bin"),
    "ag": word_set("--pager"),
    "tar": word_set(
        "-I -F --to-command --checkpoint-action --use-compress-program --rsh-command --rmt-command"
        " --info-script --new-volume-script"
    ),
    "sort": word_set("-o --output --compress-program"),
    "rsync": word_set("-e --rsh --rsync-path"),
    "man": word_set("-P -H --pager --html"),
    "sed": word_set("-i --in-place"),
}
_POWERS["fdfind"] = _POWERS["fd"]
_SINGLE = frozenset(("find",))  # its options are whole words behind one dash
_BUNDLE = re.compile(r"-[A-Za-z0-9]+")
_EXTERNAL = re.compile(r"ext::|(?:-[a-zA-Z]|--[a-z-]+=)ext::")
_EXPANDS = re.compile(r"[*?\[{$]")


def of(base: str, command: Command) -> tuple[str, ...]:
    """Give the words of ``command`` that carry such a power, or could once they are expanded."""
    known = _POWERS.get(base)
    if known is None:
        return ()
    return tuple(word for word in command.words[1:] if _carries(base, word, known))


def _carries(base: str, word: str, known: frozenset[str]) -> bool:
    if word in known or (base == "git" and _EXTERNAL.match(word)):
        return True
    if _EXPANDS.search(word):
        return _could_become(word, known)
    if base in _SINGLE or not word.startswith("-"):
        return False
    name, _, _ = word.partition("=")
    if word.startswith("--"):
        return len(name) > 2 and any(option.startswith(name) for option in known)
    return bool(_BUNDLE.match(word)) and any(
        option[1] in _BUNDLE.match(word)[0][1:]  # type: ignore[index]  # it matched
        for option in known
        if len(option) == 2
    )


def _could_become(word: str, known: frozenset[str]) -> bool:
    """Say whether the shell could make one of ``known`` of ``word``; quotes are not known here."""
    if "$" in word:  # without quotes it can be several words
        return True
    if "{" in word:
        start = word.split("{", maxsplit=1)[0]
        name = start.split("=", maxsplit=1)[0]
        return (name.startswith("-") and "=" not in start) or any(o.startswith(name) for o in known)
    return any(fnmatchcase(option, word) for option in known)

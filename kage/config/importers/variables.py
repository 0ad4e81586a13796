"""The ways other hosts spell a variable, put into kage's one way: ``${NAME}``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SOUND = re.compile(rf"\$\{{{_NAME}(:-[^}}$]*)?\}}")
_ANY = re.compile(r"\$\{[^}\n]{0,80}\}?")
_SHOUTED = re.compile(r"\$\{[A-Z_][A-Z0-9_]*(:-[^}$]*)?\}")  # an editor's own words are not
_EDITOR = re.compile(r"\$\{([^}]*)\}")
_BARE = re.compile(rf"\$({_NAME})|\$\{{({_NAME})\}}")
_BRACED = re.compile(r"\{(env|file):([^}]*)\}")
_WORKSPACE = ("${workspaceFolder}", "${workspaceRoot}")


class Untranslatable(ValueError):
    """A value uses something kage has no word for; the text says what."""


@dataclass(slots=True)
class Words:
    """What the values of one entry are put through, and what there is to tell about it."""

    translate: Callable[[str, Words], str]
    inputs: Mapping[str, str] = field(default_factory=dict)  # an editor's questions by their id
    notes: list[str] = field(default_factory=list)
    here: bool = True  # whether the server runs in the workspace, so that "." means it

    def __call__(self, text: str) -> str:
        """Give ``text`` with every variable in kage's spelling.

        Raises:
            Untranslatable: something in it has none.
        """
        found = self.translate(text, self)
        for match in _ANY.finditer(found):
            if not _SOUND.fullmatch(match[0]):
                raise Untranslatable(f"kage has no word for {match[0]}")
        return found

    def note(self, text: str) -> None:
        """Tell something once."""
        if text not in self.notes:
            self.notes.append(text)


def same(text: str, words: Words) -> str:
    """Take ``${NAME}`` and ``${NAME:-default}``, which mean the same here."""
    return text


def literal(text: str, words: Words) -> str:
    """Take text that the other host does not read variables in."""
    if _ANY.search(text):
        words.note("kage puts variables in where ${…} stands; the other host does not")
    return text


def editor(text: str, words: Words) -> str:
    """Translate ``${env:NAME}``, ``${input:id}``, ``${userHome}`` and ``${workspaceFolder}``."""

    def replace(match: re.Match[str]) -> str:
        kind, _, rest = match[1].partition(":")
        if kind == "env" and re.fullmatch(_NAME, rest):
            return f"${{{rest}}}"
        if kind == "input" and rest:
            return _asked(rest, words)
        if match[0] == "${userHome}":
            return "${HOME}"
        if match[0] in {"${pathSeparator}", "${/}"}:
            return "/"
        if match[0] in _WORKSPACE and words.here:
            words.note("the workspace is written as ., the folder the server runs in")
            return "."
        if _SHOUTED.fullmatch(match[0]):
            return literal(match[0], words)
        raise Untranslatable(f"kage has no word for {match[0]}")

    return _EDITOR.sub(replace, text)


def _asked(name: str, words: Words) -> str:
    variable = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper() or "INPUT"
    variable = f"_{variable}" if variable[0].isdigit() else variable
    about = f" ({words.inputs[name]})" if words.inputs.get(name) else ""
    words.note(f"set the variable {variable}{about}: the other host asks for {name}, kage does not")
    return f"${{{variable}}}"


def dollars(text: str, words: Words) -> str:
    """Translate ``$NAME`` and ``${NAME}``."""
    return _BARE.sub(lambda match: f"${{{match[1] or match[2]}}}", text)


def braces(text: str, words: Words) -> str:
    """Translate ``{env:NAME}``."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "env" and re.fullmatch(_NAME, match[2]):
            return f"${{{match[2]}}}"
        raise Untranslatable(f"kage has no word for {match[0]}")

    literal(text, words)
    return _BRACED.sub(replace, text)

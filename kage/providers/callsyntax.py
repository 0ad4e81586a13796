"""Read a tool call a person typed: ``tool key=value key:=JSON word`` or ``tool {JSON}``.

Shell words; values take the type the tool's schema gives them; bare words fill the required
arguments in their order (DESIGN section 9).
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kage.core.errors import UsageError
from kage.core.tools import ToolSpec
from kage.providers.schemas import project_schema

LONG = "mcp__"  # another host's spelling, taken wherever a person types a tool name (SPEC L30)
COLON = "mcp:"  # and a third's

_PAIR = re.compile(r"([^\s=:\"'{}\[\]]+)(:=|=)(.*)", re.DOTALL)
_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


class CallSyntaxError(UsageError):
    """What was typed is no call; says which word and what was expected."""


def tool_name(word: str, names: Iterable[str]) -> str | None:
    """Give the exposed name ``word`` means, in any of its spellings; None when unknown."""
    known = set(names)
    return next((name for name in (word, _short(word)) if name in known), None)


def _short(word: str) -> str:
    """Turn ``mcp__server__tool`` and ``mcp:server:tool`` into ``server__tool``."""
    if word.startswith(COLON):
        return word.removeprefix(COLON).replace(":", "__", 1)
    return word.removeprefix(LONG)


def nearest(word: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Give the names closest to ``word``, best first; its last part counts as well."""
    pool = sorted(set(names))
    short = _short(word)
    found = difflib.get_close_matches(short, pool, count, 0.6)
    tails = {name.rpartition("__")[2]: name for name in pool}
    for tail in difflib.get_close_matches(short.rpartition("__")[2], list(tails), count, 0.7):
        if tails[tail] not in found:
            found.append(tails[tail])
    return found[:count]


def parse_call(text: str, tools: Mapping[str, ToolSpec]) -> tuple[ToolSpec, dict[str, Any]]:
    """Read a whole line and give the tool and its arguments.

    Raises:
        CallSyntaxError: the line is no call, or names no tool.
    """
    head, _, rest = text.strip().partition(" ")
    if "\n" in head or "\t" in head:
        head = text.split(maxsplit=1)[0]
        rest = text.strip()[len(head) :]
    name = tool_name(head, tools)
    if name is None:
        close = nearest(head, tools)
        raise CallSyntaxError(
            f"There is no tool {head!r}",
            fix=f"Did you mean {' or '.join(close)}?" if close else "",
        )
    spec = tools[name]
    shape = _Shape(spec.schema, name)
    if rest.lstrip().startswith("{"):
        return spec, _object(rest.strip(), shape)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise CallSyntaxError(
            "The line has an open quote",
            why=str(error).lower(),
            fix="Close the quote, or put a backslash before it.",
        ) from error
    return spec, _read(words, shape)


def parse_arguments(
    words: Sequence[str], schema: Mapping[str, Any], *, name: str = "the tool"
) -> dict[str, Any]:
    """Read arguments from shell words, or from one word that is a JSON object.

    ``schema`` is the tool's raw schema, ``name`` what messages call it.

    Raises:
        CallSyntaxError: names the word and what was expected.
    """
    return _read(words, _Shape(schema, name))


class _Shape:
    """What a tool takes."""

    def __init__(self, raw: Mapping[str, Any], name: str) -> None:
        schema = project_schema(raw)
        self.name = name
        self.properties: dict[str, dict[str, Any]] = schema["properties"]
        self.required: list[str] = schema.get("required", [])
        # one argument needs no name
        self.order = self.required or list(self.properties)[:1]
        extra = raw.get("additionalProperties")
        self.free = not self.properties or extra is True or isinstance(extra, Mapping)

    @property
    def usage(self) -> str:
        """One line that shows how to call it."""
        parts = [f"{name}={_kind(self.properties[name]).upper()}" for name in self.required]
        optional = [name for name in self.properties if name not in self.required]
        parts += [f"[{name}={_kind(self.properties[name]).upper()}]" for name in optional[:6]]
        if len(optional) > 6:
            parts.append("…")
        return " ".join([self.name, *parts])


def _read(words: Sequence[str], shape: _Shape) -> dict[str, Any]:
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0], shape)
    found: dict[str, Any] = {}
    bare: list[str] = []
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is not None and (pair[1] in shape.properties or shape.free):
            _put(found, pair[1], pair[2], pair[3], shape.properties.get(pair[1], {}))
        elif pair is not None and not _fits_bare(shape.order, found, bare, word):
            raise _unknown(pair[1], shape)
        else:
            bare.append(word)
    _fill(found, bare, shape)
    missing = [name for name in shape.required if name not in found]
    if missing:
        raise CallSyntaxError(
            f"{shape.name} needs {' and '.join(missing)}", fix=f"Usage: {shape.usage}"
        )
    return found


def usage(spec: ToolSpec) -> str:
    """Give one line that shows how to call the tool."""
    return _Shape(spec.schema, spec.name).usage


def _fits_bare(
    order: Sequence[str], found: Mapping[str, Any], bare: Sequence[str], word: str
) -> bool:
    """Tell whether a word with ``=`` is rather a value: it has blanks, or starts like no name."""
    open_names = [name for name in order if name not in found]
    looks_like_value = bool(re.search(r"\s", word)) or not re.match(r"[A-Za-z_][\w.-]*:?=", word)
    return looks_like_value and len(bare) < len(open_names)


def _unknown(name: str, shape: _Shape) -> CallSyntaxError:
    close = difflib.get_close_matches(name, list(shape.properties), 1, 0.6)
    hint = f"Did you mean {close[0]}? " if close else ""
    return CallSyntaxError(
        f"{shape.name} has no argument {name!r}", fix=f"{hint}Usage: {shape.usage}"
    )


def _put(
    found: dict[str, Any], name: str, operator: str, text: str, schema: Mapping[str, Any]
) -> None:
    if operator == ":=":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CallSyntaxError(
                f"The value of {name} is no JSON",
                why=_place(error, text),
                fix=f"Write {name}=text for text, {name}:=JSON for anything else.",
            ) from error
    else:
        value = coerce(name, text, schema)
    if name in found:
        if _kind(schema) != "array" or operator == ":=":
            raise CallSyntaxError(f"{name} is given twice", fix="Leave one of them out.")
        value = [*found[name], *value]
    found[name] = value


def _fill(found: dict[str, Any], bare: Sequence[str], shape: _Shape) -> None:
    names = [name for name in shape.order if name not in found]
    for word in bare:
        if not names:
            raise CallSyntaxError(
                f"{shape.name} has no place for {word!r}",
                why="every required argument has a value",
                fix=f"Name the argument, or quote text with blanks. Usage: {shape.usage}",
            )
        name = names.pop(0)
        found[name] = coerce(name, word, shape.properties.get(name, {}))


def _object(text: str, shape: _Shape) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallSyntaxError(
            f"The arguments of {shape.name} are no JSON object",
            why=_place(error, text),
            fix=f"Usage: {shape.usage}",
        ) from error
    if not isinstance(value, dict):
        raise CallSyntaxError(f"The arguments of {shape.name} must be one JSON object")
    return value


def _place(error: Exception, text: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at character {error.pos + 1} of {text[:60]!r}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    found = [kind for option in schema.get("anyOf", ()) for kind in _kinds(option)]
    return list(dict.fromkeys(found))


def _kind(schema: Mapping[str, Any]) -> str:
    kinds = _kinds(schema)
    return kinds[0] if kinds else "text"


def coerce(name: str, text: str, schema: Mapping[str, Any]) -> Any:
    """Give ``text`` the type that ``schema`` (a projected one) asks for; text where it allows it.

    Raises:
        CallSyntaxError: the text cannot be that type.
    """
    for value in schema.get("enum", ()):
        if text == value or (not isinstance(value, str) and text == json.dumps(value)):
            return value
    kinds = _kinds(schema)
    if "enum" in schema:
        allowed = ", ".join(v if isinstance(v, str) else json.dumps(v) for v in schema["enum"])
        raise CallSyntaxError(f"{name} cannot be {text!r}", fix=f"It is one of: {allowed}.")
    if not kinds or "string" in kinds:
        return text
    for kind in kinds:
        try:
            return _converted(text, kind, schema)
        except ValueError:
            continue
    expected = " or ".join(_ARTICLES.get(kind, kind) for kind in kinds)
    raise CallSyntaxError(f"{name} must be {expected}, not {text!r}")


_ARTICLES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a JSON list",
    "object": "a JSON object",
    "null": "null",
}


def _converted(text: str, kind: str, schema: Mapping[str, Any]) -> Any:
    match kind:
        case "integer":
            if not re.fullmatch(r"[+-]?\d{1,300}", text.strip(), re.ASCII):
                raise ValueError(text)
            return int(text)
        case "number":
            number = float(text)
            if not math.isfinite(number):
                raise ValueError(text)
            whole = re.fullmatch(r"[+-]?\d{1,300}", text.strip(), re.ASCII)
            return int(text) if whole else number
        case "boolean":
            word = text.strip().lower()
            if word not in (*_TRUE, *_FALSE):
                raise ValueError(text)
            return word in _TRUE
        case "array" if not text.lstrip().startswith("["):
            return [coerce("an item", text, schema.get("items", {}))]
        case "array" | "object" | "null":
            return _json_of(text, _PYTHON[kind])
        case _:
            raise ValueError(text)


_PYTHON: dict[str, type] = {"array": list, "object": dict, "null": type(None)}


def _json_of(text: str, kind: type) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(text) from None
    if not isinstance(value, kind):
        raise ValueError(text)
    return value

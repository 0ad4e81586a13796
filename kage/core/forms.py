"""A form a person fills in: its fields, what stands there already, and what fits.

``formreading`` makes one from a JSON Schema; screens and terminals show it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kage.core.formats import misspelt

MAX_ANSWER = 1_000_000  # characters of one value


class Kind(StrEnum):
    """How a field is filled in."""

    TEXT = "text"
    NUMBER = "number"
    INTEGER = "integer"
    FLAG = "flag"
    ONE = "one"  # of its choices
    MANY = "many"  # of its choices
    JSON = "json"  # whatever no other kind can show


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value to choose, and the words for it."""

    value: Any  # any JSON value
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field; texts are as the server wrote them, clipped and not yet sanitised."""

    name: str
    kind: Kind
    title: str = ""
    description: str = ""
    required: bool = False
    default: Any = None  # None: nothing is filled in
    format: str = ""
    shortest: int = 0  # characters, or chosen values
    longest: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None  # exclusive bounds
    below: float | None = None
    choices: tuple[Choice, ...] = ()
    shape: tuple[str, ...] = ()  # JSON types a raw value may have; () = any
    secret: bool = False  # looks like something no form may ask for
    multiline: bool = False

    @property
    def label(self) -> str:
        """The words in front of the field."""
        return self.title or self.name

    def read(self, text: str) -> Any:
        """Turn what was typed into a value; "" is no value (None).

        Raises:
            ValueError: it is no value of this kind; the text says why.
        """
        typed = text if self.kind in (Kind.TEXT, Kind.ONE) else text.strip()
        if not typed:
            return None
        match self.kind:
            case Kind.INTEGER | Kind.NUMBER:
                return _number(typed, whole=self.kind is Kind.INTEGER)
            case Kind.FLAG:
                return _flag(typed)
            case Kind.JSON:
                return _json(typed)
            case Kind.ONE:
                return self._choice(typed)
            case Kind.MANY:
                return [self._choice(part.strip()) for part in typed.split(",") if part.strip()]
            case _:
                return typed

    def write(self, value: object) -> str:
        """Spell a value the way :meth:`read` takes it."""
        if value is None:
            return ""
        if isinstance(value, str) and self.kind is not Kind.JSON:
            return value
        if self.kind is Kind.MANY and isinstance(value, list):
            return ", ".join(self._word(item) for item in value)
        if self.kind is Kind.FLAG:
            return "yes" if value else "no"
        return json.dumps(value, ensure_ascii=False, indent=2 if self.kind is Kind.JSON else None)

    def complaint(self, value: object) -> str:
        """Say what is wrong with ``value`` (None: not given), "" when nothing is."""
        if value is None:
            return "this is needed" if self.required else ""
        match self.kind:
            case Kind.TEXT:
                return self._text_complaint(value)
            case Kind.NUMBER | Kind.INTEGER:
                return self._number_complaint(value)
            case Kind.FLAG:
                return "" if isinstance(value, bool) else "yes or no"
            case Kind.ONE:
                return "" if self._offers(value) else "this is not one of the choices"
            case Kind.MANY:
                return self._many_complaint(value)
            case Kind.JSON:
                return self._json_complaint(value)

    def _text_complaint(self, value: object) -> str:
        if not isinstance(value, str):
            return "this has to be text"
        if len(value) > MAX_ANSWER:
            return f"this is too long: {len(value):,} characters"
        if len(value) < self.shortest:
            return f"at least {self.shortest} characters"
        if self.longest is not None and len(value) > self.longest:
            return f"at most {self.longest} characters, this has {len(value)}"
        return misspelt(self.format, value)

    def _number_complaint(self, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "this has to be a number"
        if self.kind is Kind.INTEGER and isinstance(value, float) and not value.is_integer():
            return "this has to be a whole number"
        if self.minimum is not None and value < self.minimum:
            return f"at least {self.minimum:g}"
        if self.maximum is not None and value > self.maximum:
            return f"at most {self.maximum:g}"
        if self.above is not None and value <= self.above:
            return f"more than {self.above:g}"
        if self.below is not None and value >= self.below:
            return f"less than {self.below:g}"
        return ""

    def _many_complaint(self, value: object) -> str:
        if not isinstance(value, list | tuple):
            return "this has to be a list"
        if not all(self._offers(item) for item in value):
            return "not all of these are among the choices"
        if len(value) < self.shortest:
            return f"choose at least {self.shortest}"
        if self.longest is not None and len(value) > self.longest:
            return f"choose at most {self.longest}"
        return ""

    def _json_complaint(self, value: object) -> str:
        if self.shape and not any(_is(name, value) for name in self.shape):
            return f"this has to be a JSON {' or '.join(self.shape)}"
        return ""

    def _offers(self, value: object) -> bool:
        return any(_same(choice.value, value) for choice in self.choices)

    def _choice(self, typed: str) -> Any:
        for choice in self.choices:
            if typed in (spelt(choice.value), choice.label):
                return choice.value
        near = [c for c in self.choices if c.label.casefold() == typed.casefold()]
        if len(near) == 1:
            return near[0].value
        raise ValueError("this is not one of the choices")

    def _word(self, value: object) -> str:
        return next((spelt(c.value) for c in self.choices if _same(c.value, value)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The fields of one form, in the order of the schema."""

    fields: tuple[Field, ...]
    notes: tuple[str, ...] = ()  # what of the schema was left out, in words

    def field(self, name: str) -> Field:
        """Give a field by its name.

        Raises:
            KeyError: there is none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    @property
    def secrets(self) -> tuple[Field, ...]:
        """The fields that look like they ask for a secret."""
        return tuple(field for field in self.fields if field.secret)

    def initial(self) -> dict[str, Any]:
        """Give the defaults, which are what is sent where nothing is changed."""
        return {f.name: f.default for f in self.fields if f.default is not None}

    def complaints(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Say what is wrong, per field; {} when ``values`` may be sent."""
        wrong = {f.name: f.complaint(values.get(f.name)) for f in self.fields}
        known = {field.name for field in self.fields}
        wrong |= {name: "there is no such field" for name in values if name not in known}
        return {name: text for name, text in wrong.items() if text}


def spelt(value: object) -> str:
    """Give a constant of a schema as a person would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _number(typed: str, *, whole: bool) -> int | float:
    try:
        value = int(typed) if len(typed) < 400 else 0
    except ValueError:
        try:
            value = float(typed)  # type: ignore[assignment]  # either is a number
        except ValueError:
            raise ValueError("this has to be a number") from None
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124
            raise ValueError("this has to be a number") from None
        if whole and float(value).is_integer():
            return int(value)
    else:
        if len(typed) >= 400:
            raise ValueError("this number is too long")
    if whole and not float(value).is_integer():
        raise ValueError("this has to be a whole number")
    return value


def _flag(typed: str) -> bool:
    word = typed.casefold()
    if word in ("y", "yes", "true", "1", "on"):
        return True
    if word in ("n", "no", "false", "0", "off"):
        return False
    raise ValueError("yes or no")


def _json(typed: str) -> Any:
    try:
        return json.loads(typed)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"this is no valid JSON{where}") from None


def _is(name: str, value: object) -> bool:
    match name:
        case "object":
            return isinstance(value, Mapping)
        case "array":
            return isinstance(value, list | tuple)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number" | "integer":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _same(one: object, other: object) -> bool:
    # JSON tells true from 1, Python does not
    return isinstance(one, bool) == isinstance(other, bool) and one == other

"""Tool definitions in the form model endpoints accept: names, descriptions and schemas.

The raw schema is never changed; arguments are checked against it, not against the copy (SPEC N12).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kage.core.messages import Part, ToolCall
from kage.core.tools import ToolSpec
from kage.providers.schemas import (
    MAX_TEXT,
    Schema,
    drop_unknown_required,
    nodes,
    project_schema,
)

MAX_DESCRIPTION = 2_048  # bytes of a tool's description (SPEC N17)

_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """One tool as an endpoint sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]  # JSON Schema, root an object, self-contained
    renamed: Mapping[str, str] = field(default_factory=dict)  # name in the copy -> real argument

    def restore(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give arguments their real names back."""
        if not self.renamed:
            return arguments
        return {self.renamed.get(name, name): value for name, value in arguments.items()}


class Projections:
    """Projects specs, each one once."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[ToolSpec, Projection]] = {}

    def __call__(self, spec: ToolSpec) -> Projection:
        """Give the projection of ``spec``; the same object as long as the spec is the same."""
        held = self._made.get(spec.name)
        if held is None or held[0] is not spec:
            held = (spec, project(spec))
            self._made[spec.name] = held
        return held[1]

    def restore(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """Give the calls among ``parts`` the real names of their arguments."""
        return tuple(self._restored(part) for part in parts)

    def _restored(self, part: Part) -> Part:
        held = self._made.get(part.name) if isinstance(part, ToolCall) else None
        if held is None or not isinstance(part, ToolCall) or not held[1].renamed:
            return part
        return replace(part, arguments=held[1].restore(part.arguments))


def project(spec: ToolSpec) -> Projection:
    """Make the copy of a tool's definition that goes to a model."""
    schema = project_schema(spec.schema)
    renamed = _rename(schema)
    return Projection(name=spec.name, description=describe(spec), schema=schema, renamed=renamed)


def describe(spec: ToolSpec) -> str:
    """Give the description the model sees: it names the server and is at most 2 KB."""
    text = spec.description.strip() or spec.title.strip()
    if spec.server is not None:
        prefix = f"[server {spec.server.server}] "
        text = text if text.startswith(prefix) else prefix + text
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_DESCRIPTION:
        return data.decode() or spec.name
    return data[: MAX_DESCRIPTION - 3].decode("utf-8", "ignore").rstrip() + "…"


def _rename(schema: Schema) -> dict[str, str]:
    """Give illegal argument names legal ones; deeper ones, which cannot be mapped, are left out."""
    renamed: dict[str, str] = {}
    properties: Schema = {}
    for name, part in schema["properties"].items():
        legal = name
        if not _PROPERTY.fullmatch(name):
            legal = _legal(name, {*schema["properties"], *renamed})
            renamed[legal] = name
            part = {**part, "description": _named(name, part.get("description", ""))}  # noqa: PLW2901
        properties[legal] = part
    schema["properties"] = properties
    if "required" in schema:
        back = {real: legal for legal, real in renamed.items()}
        schema["required"] = [back.get(name, name) for name in schema["required"]]
    for node in nodes(schema):
        held = node.get("properties")
        if node is schema or not held:
            continue
        illegal = [name for name in held if not _PROPERTY.fullmatch(name)]
        for name in illegal:
            del held[name]
            drop_unknown_required(node)
        if illegal:
            node.pop("additionalProperties", None)
            listed = ", ".join(json.dumps(name)[:80] for name in illegal[:10])
            text = f"{node.get('description', '')} Also takes {listed}."
            node["description"] = text.strip()[:MAX_TEXT]
    return renamed


def _named(name: str, description: str) -> str:
    clean = name.encode("utf-8", "replace").decode()
    return f"(argument {clean[:80]!r}) {description}".strip()[:MAX_TEXT]


def _legal(name: str, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:48].strip("_") or "argument"
    if base not in taken:
        return base
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{base}_{mark}"

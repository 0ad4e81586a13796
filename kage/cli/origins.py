"""``kage mcp get NAME --origin``: where each value of an entry comes from."""

from __future__ import annotations

import json
from typing import Any

from kage.cli.ground import Ground
from kage.cli.output import as_json, table
from kage.cli.trusting import desk_of
from kage.config.layers import Layer, in_force, of_name
from kage.config.origin import Origin, Value, origins


def show_origins(here: Ground, name: str, *, json_: bool) -> None:
    """Print every key of the entry called ``name``, which is there: value, layer, file and line.

    In the table stand the keys that a file sets; JSON has them all.
    """
    declared = of_name(here.loaded.entries, name)
    found = origins(declared, in_force(declared, desk_of(here).counts))
    if json_:
        as_json({item.key: _explained(item) for item in found})
        return
    rows = []
    for item in found:
        if item.now.layer == Layer.DEFAULT.words and not item.replaced:
            continue
        rows.append((item.key, _text(item.now), item.now.layer, str(item.now.place or "")))
        rows += [
            ("", f"instead of {_text(value)}", value.layer, str(value.place or ""))
            for value in item.replaced
            if value.value not in ("", [], {})
        ]
    table(("KEY", "VALUE", "FROM", "PLACE"), rows)


def _explained(item: Origin) -> dict[str, Any]:
    return {**_plain(item.now), "replaced": [_plain(value) for value in item.replaced]}


def _plain(value: Value) -> dict[str, Any]:
    place = value.place
    return {
        "value": value.value,
        "layer": value.layer,
        "file": str(place.file) if place is not None else "",
        "line": place.line if place is not None else 0,
    }


def _text(value: Value) -> str:
    return value.value if isinstance(value.value, str) else json.dumps(value.value)

"""What an entry of a file not one's own may not say: what hands a server more than its tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kage.config.importers.foreign import Foreign
from kage.config.servers import OWN_ONLY, OWN_ONLY_OAUTH

FLAG = "--with-powers"


def without_powers(one: Foreign) -> Foreign:
    """Leave out what only a person's own file may say, and tell each."""
    table: dict[str, Any] = dict(one.table)
    notes = list(one.notes)
    for key, reason in OWN_ONLY.items():
        if table.get(key) and key != "env_pass":
            del table[key]
            notes.append(f"{key} is left out: {reason}; {FLAG} takes it")
    passed = table.get("env_pass")
    if isinstance(passed, list) and "*" in passed:  # names are what other hosts can say, too
        table["env_pass"] = [name for name in passed if name != "*"]
        notes.append(f'env_pass "*" is left out: {OWN_ONLY["env_pass"]}; {FLAG} takes it')
        if not table["env_pass"]:
            del table["env_pass"]
    oauth = table.get("oauth")
    if isinstance(oauth, Mapping):
        kept = {key: value for key, value in oauth.items() if key not in OWN_ONLY_OAUTH}
        notes += [
            f"oauth.{key} is left out: {OWN_ONLY_OAUTH[key]}; {FLAG} takes it"
            for key in oauth
            if key in OWN_ONLY_OAUTH
        ]
        table["oauth"] = kept
        if not kept:
            del table["oauth"]
    return dataclasses.replace(one, table=table, notes=tuple(notes))

"""The eight tools as hosts see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kage.config.schema import BUILTIN_NAMES
from kage.core.errors import UsageError
from kage.core.tools import Risk, SubjectKind
from kage.tools import builtin, programs

_HEAVY = (
    "anyio",
    "click",
    "jsonschema",
    "pydantic",
    "httpx2",
    "httpcore2",
    "bs4",
    "textual",
    "mcp",
)
_PROBE = f"""
import os, sys, json
from kage.tools import builtin, programs
builtin.create(spawner=programs.Groups(), environ=os.environ)
print(json.dumps([name for name in {_HEAVY!r} if name in sys.modules]))
"""


def created(**options: object) -> dict[str, object]:
    made = builtin.create(spawner=programs.Groups(), environ=os.environ, **options)  # type: ignore[arg-type]
    return {tool.spec.name: tool for tool in made}


def test_the_eight_tools_stand_in_their_fixed_order() -> None:
    assert tuple(created()) == builtin.NAMES == BUILTIN_NAMES


def test_chosen_tools_keep_the_order() -> None:
    assert list(created(names={"grep", "read"})) == ["read", "grep"]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="nonsense"):
        created(names={"nonsense"})


def test_bash_needs_a_spawner_and_the_others_do_not() -> None:
    with pytest.raises(UsageError):
        builtin.create(spawner=None, environ=os.environ)
    names = set(builtin.NAMES) - {"bash"}
    assert len(builtin.create(spawner=None, environ=os.environ, names=names)) == 7


def test_every_tool_says_what_it_risks_and_what_is_judged() -> None:
    expected = {
        "read": (Risk.READ, SubjectKind.PATH, "path", ""),
        "write": (Risk.WRITE, SubjectKind.PATH, "path", ""),
        "edit": (Risk.WRITE, SubjectKind.PATH, "path", ""),
        "bash": (Risk.EXEC, SubjectKind.COMMAND, "command", ""),
        "ls": (Risk.READ, SubjectKind.PATH, "path", "."),
        "find": (Risk.READ, SubjectKind.PATH, "path", "."),
        "grep": (Risk.READ, SubjectKind.PATH, "path", "."),
        "web_fetch": (Risk.NETWORK, SubjectKind.URL, "url", ""),
    }
    for tool in builtin.create(spawner=programs.Groups(), environ=os.environ):
        spec = tool.spec
        subject = spec.subject
        found = (spec.risk, subject.kind, subject.argument, subject.default)
        assert found == expected[spec.name]


def test_every_schema_is_flat_closed_and_described() -> None:
    for tool in builtin.create(spawner=programs.Groups(), environ=os.environ):
        schema = tool.spec.schema
        json.dumps(schema)
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        for described in schema["properties"].values():
            assert described["type"] in ("string", "integer", "boolean")
            assert described["description"]
        assert tool.spec.title
        assert len(tool.spec.description) > 80


def test_making_the_tools_imports_nothing_heavy() -> None:
    root = Path(builtin.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], cwd=root, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []

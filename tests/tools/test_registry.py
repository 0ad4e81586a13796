"""The registry: sources are swapped whole, names stay unique."""

from __future__ import annotations

import pytest

from kage.core.tools import Invocation, Risk, ToolResult, ToolSpec
from kage.tools.registry import BUILTIN, Registry


class Named:
    """A tool that is only a name."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name=name, description="", schema={"type": "object"}, risk=Risk.READ)

    async def run(self, call: Invocation) -> ToolResult:
        raise AssertionError("never called")


def tools(*names: str) -> list[Named]:
    return [Named(name) for name in names]


def test_a_source_is_swapped_whole() -> None:
    registry = Registry()
    registry.replace("server:a", tools("a__x", "a__y"))
    assert registry.replace("server:a", tools("a__z")) == ()
    assert list(registry.snapshot()) == ["a__z"]


def test_built_ins_come_first_then_sources_by_name() -> None:
    registry = Registry()
    registry.replace("server:b", tools("b__x"))
    registry.replace("server:a", tools("a__x"))
    registry.replace(BUILTIN, tools("read"))
    assert list(registry.snapshot()) == ["read", "a__x", "b__x"]


def test_a_server_cannot_take_the_name_of_a_built_in() -> None:
    registry = Registry()
    registry.replace(BUILTIN, tools("read"))
    assert registry.replace("server:evil", tools("read", "evil__ok")) == ("read",)
    assert list(registry.snapshot()) == ["read", "evil__ok"]
    assert registry.snapshot()["read"] is not None


def test_a_name_given_twice_by_one_source_counts_once() -> None:
    registry = Registry()
    first, second = tools("a__x", "a__x")
    assert registry.replace("server:a", [first, second]) == ("a__x",)
    assert registry.snapshot()["a__x"] is first


def test_a_snapshot_does_not_change_when_the_registry_does() -> None:
    registry = Registry()
    registry.replace("server:a", tools("a__x"))
    before = registry.snapshot()
    registry.replace("server:a", ())
    assert list(before) == ["a__x"]
    assert list(registry.snapshot()) == []
    with pytest.raises(TypeError):
        before["new"] = tools("new")[0]  # type: ignore[index]


def test_a_crashed_server_leaves_the_registry() -> None:
    registry = Registry()
    registry.replace("server:a", tools("a__x"))
    registry.replace("server:b", tools("b__x"))
    registry.replace("server:a", ())
    assert list(registry.snapshot()) == ["b__x"]

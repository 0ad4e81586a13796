"""Arguments are checked against whatever a server calls a schema, in bounded time."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from kage.agent.arguments import MAX_FAULTS, Checker
from kage.core.tools import Risk, ToolSpec

_DOUBLING = {
    **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
    "d30": {},
}
BOMBS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "a pattern": ({"properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 60 + "!"}),
    "a name pattern": ({"patternProperties": {"(a+)+$": {}}}, {"a" * 60 + "!": 1}),
    "references": ({"$defs": _DOUBLING, "properties": {"a": {"$ref": "#/$defs/d0"}}}, {"a": 1}),
    "a circle": ({"properties": {"a": {"$ref": "#/properties/a"}}}, {"a": 1}),
    "another draft": (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"a": {"pattern": "^(a|a)*$"}},
        },
        {"a": "a" * 60 + "!"},
    ),
}


def _spec(schema: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name="s__t", description="", schema={"type": "object", **schema}, risk=Risk.EXEC
    )


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_schema_that_would_take_for_ever_is_left_to_the_server(bomb: str) -> None:
    schema, arguments = BOMBS[bomb]
    checker, spec = Checker(), _spec(schema)
    before = signal.getsignal(signal.SIGVTALRM)
    assert checker.faults(spec, arguments) == ()
    start = time.process_time()
    assert all(checker.faults(spec, arguments) == () for _ in range(200))
    assert time.process_time() - start < 5  # what cost too much once is not tried again
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "("}}},
        {"$schema": "urn:nobody"},
        {"$schema": 5},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#"},
        {"properties": {"a": []}},
        {"required": "a"},
    ],
)
def test_a_schema_that_makes_no_sense_checks_nothing(schema: Mapping[str, Any]) -> None:
    assert Checker().faults(_spec(schema), {"a": "b"}) == ()


def test_what_is_wrong_is_told_briefly_however_big_the_arguments_are() -> None:
    spec = _spec({"additionalProperties": {"type": "integer"}})
    faults = Checker().faults(spec, {str(n) * 1000: "x" * 100_000 for n in range(20)})
    assert len(faults) == MAX_FAULTS
    assert all(len(fault) < 600 for fault in faults)


def test_off_the_main_thread_nothing_is_checked_and_nothing_breaks() -> None:
    found: list[tuple[str, ...]] = []
    checker, spec = Checker(), _spec({"properties": {"a": {"type": "integer"}}})
    assert checker.faults(spec, {"a": "x"}) != ()
    thread = threading.Thread(target=lambda: found.append(checker.faults(spec, {"a": "x"})))
    thread.start()
    thread.join()
    assert found == [()]


def test_a_circle_never_runs_the_clean_up_of_others_without_a_stack() -> None:
    schema, arguments = BOMBS["a circle"]
    checker, spec = Checker(), _spec(schema)
    checker.faults(spec, arguments)
    collected: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.append(phase)

    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        gc.set_threshold(20)  # the circle makes hundreds of objects on its way down
        checker.faults(spec, arguments)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
    assert gc.isenabled()
    assert len(collected) < 10  # before and after, not at each step

"""Check the arguments of a call against the tool's raw schema, before the gate sees them."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, TypeVar

from kage.core.sanitise import clip
from kage.core.tools import ToolSpec

MAX_FAULTS = 5  # told to the model at once
TIME = 0.05  # seconds of processor time one check may take
_MAX_PATH = 200  # characters of the place named in a fault

T = TypeVar("T")


class _Spent(BaseException):
    """The time is used up; no Exception, so that nothing in between takes it for its own."""


class Checker:
    """Compiles each schema once; jsonschema is imported with the first check."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[ToolSpec, Any]] = {}  # a jsonschema validator

    def faults(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Give what is wrong, one sentence each; () when the arguments fit.

        A schema that is itself broken, or costs more than ``TIME``, checks nothing: the server
        will judge for itself. No reference is ever fetched.
        """
        validator = self._validator(spec)
        if validator is None:
            return ()
        try:
            return _in_time(lambda: _faults(validator, arguments))
        except _Spent:
            self._compiled[spec.name] = (spec, None)  # the next call need not pay again
        except Exception:  # a hostile schema can fail in any way; the server judges then
            pass
        return ()

    def _validator(self, spec: ToolSpec) -> Any:  # a jsonschema validator, or None
        held = self._compiled.get(spec.name)
        if held is None or held[0] is not spec:
            held = (spec, _compile(spec.schema))
            self._compiled[spec.name] = held
        return held[1]


def _faults(validator: Any, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for error in validator.iter_errors(dict(arguments)):
        found.append(_sentence(error))
        if len(found) == MAX_FAULTS:
            break
    return tuple(found)


def _in_time(work: Callable[[], T]) -> T:
    """Do ``work``, at most ``TIME`` seconds of processor time of it.

    A pattern of a schema can run for years, and nothing but a signal stops the matching. Only
    the main thread gets signals; anywhere else there is no check. Garbage is not collected
    meanwhile: clean-up of other parts of kage would run where a circle of references used up
    the stack, and fail there.

    Raises:
        _Spent: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        raise _Spent
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise _Spent

    before = signal.signal(signal.SIGVTALRM, ring)
    collecting = gc.isenabled()
    gc.disable()
    try:
        # it rings again, should the first one be lost where Python swallows exceptions
        signal.setitimer(signal.ITIMER_VIRTUAL, TIME, TIME)
        return work()
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if collecting:
            gc.enable()


def _compile(schema: Mapping[str, Any]) -> Any:
    from jsonschema import validators
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import NoSuchResource

    def refuse(uri: str) -> Any:
        raise NoSuchResource(uri)

    try:
        cls = validators.validator_for(schema, default=validators.Draft202012Validator)
        cls.check_schema({})  # reads its own files first, which is not the schema's doing
        _in_time(lambda: cls.check_schema(dict(schema)))
        registry: Registry[Any] = Registry(retrieve=refuse)  # type: ignore[call-arg]  # attrs alias
        return cls(dict(schema), registry=registry)
    except (SchemaError, RecursionError, TypeError, ValueError, AttributeError, _Spent):
        return None


def _sentence(error: Any) -> str:  # a jsonschema ValidationError
    path = clip(".".join(str(step) for step in error.absolute_path), _MAX_PATH)
    message = error.message if len(error.message) <= 300 else f"{error.message[:297]}..."
    return f"{path}: {message}" if path else message

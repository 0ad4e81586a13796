"""The decision log: one record before each effect and one after, chained, by many kages at once.

``chain`` says how a line looks, ``proof`` proves the chain, ``appender`` writes lines. Here is what
a kage writes through: records that wait at the same time are written under one lock, and the disk
is waited for once. A disk that cannot take a record does not stop a call: that is told once a
minute, and the next record that can be written stands behind a ``gap`` record with the number
missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kage.core.files import content
from kage.core.redact import Redactor
from kage.core.sanitise import clip
from kage.permissions.decisions.appender import Appender
from kage.permissions.decisions.chain import HEAD, Head, Problem, Record, files, lines, parse, read
from kage.permissions.decisions.proof import Proof, prove, verify

__all__ = ["DecisionLog", "Problem", "Proof", "Record", "prove", "read", "verify"]

VERSION = 1
MAX_ARGUMENTS = 16_384  # characters of the arguments one record holds
MAX_TEXT = 4_096  # characters of any other text
WARN_EVERY = 60.0  # seconds
_BATCH = 256  # records written under one lock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One record somebody wants written."""

    kind: str
    fields: Mapping[str, Any]
    sync: bool
    done: Future[bool] = field(default_factory=Future)


class DecisionLog:
    """Appends to ``<data>/decisions``; safe to use from several processes and threads."""

    def __init__(
        self,
        directory: Path,
        *,
        redact: Redactor | None = None,
        on_trouble: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Write nothing yet.

        Args:
            directory: Made with the first record.
            redact: Applied to every text before it is written.
            on_trouble: Told in words, at most once a minute, that records cannot be written;
                called from the thread that found out.
            clock: Seconds since the epoch.
        """
        self.directory = directory
        self.redact = redact or Redactor()
        self._on_trouble = on_trouble
        self._clock = clock
        self._missed = 0
        self._missed_since = 0.0
        self._warned = float("-inf")
        self._alone = threading.Lock()
        self._waiting: deque[_Wanted] = deque()
        self._writer: ThreadPoolExecutor | None = None

    async def write(self, kind: str, fields: Mapping[str, Any], *, sync: bool = False) -> bool:
        """Append one record without holding up the loop; see ``append``.

        A record that was handed over is written even when the caller is cancelled.
        """
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="decisions")
        wanted = _Wanted(kind=kind, fields=fields, sync=sync)
        wanted.done.set_running_or_notify_cancel()
        self._waiting.append(wanted)
        self._writer.submit(self._write_waiting)
        return await asyncio.shield(asyncio.wrap_future(wanted.done))

    def close(self) -> None:
        """Wait for records under way and end the writer's thread; it can be used again.

        What is missing is noted now if the disk takes it, since nobody else knows of it.
        """
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None
        with self._alone:
            if self._missed:
                with (
                    contextlib.suppress(OSError),
                    Appender(self.directory, self._found_wrong) as log,
                ):
                    log.put(self._gap(self._missed))
                    self._missed = 0

    def append(self, kind: str, fields: Mapping[str, Any], *, sync: bool = False) -> bool:
        """Append one record; whether it stands on disk. Never raises for a disk that refuses.

        Args:
            kind: "decision", "outcome", "trust" or "pin".
            fields: JSON; texts are redacted and cut.
            sync: Wait until the disk has it.
        """
        return self._append([_Wanted(kind=kind, fields=fields, sync=sync)])[0]

    def _write_waiting(self) -> None:
        """Write everything that waits; what came with a job of its own finds nothing left."""
        taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH))]
        if not taken:
            return
        try:
            written = self._append(taken)
        except BaseException as error:  # whoever waits hears of it
            for wanted in taken:
                wanted.done.set_exception(error)
            return
        for wanted, stands in zip(taken, written, strict=True):
            wanted.done.set_result(stands)

    def _append(self, wanted: Sequence[_Wanted]) -> list[bool]:
        """Write records under one lock and wait for the disk once; which of them stand."""
        bodies = [self._body(each.kind, each.fields) for each in wanted]
        stands: list[bool] = []
        with self._alone:
            try:
                with Appender(self.directory, self._found_wrong) as log:
                    for body in bodies:
                        stands.append(self._put(log, body))
                    if any(each.sync and ok for each, ok in zip(wanted, stands, strict=True)):
                        log.flush()
            except OSError as error:
                missed = len(bodies) - len(stands)
                self._trouble(error, missed)
                if missed:
                    return [*stands, *([False] * missed)]
                return [ok and not each.sync for each, ok in zip(wanted, stands, strict=True)]
        return stands

    def _put(self, log: Appender, body: Mapping[str, Any]) -> bool:
        try:
            if self._missed:
                log.put(self._gap(self._missed))
                self._missed = 0
            log.put(body)
        except OSError as error:
            self._trouble(error, 1)
            return False
        return True

    def find(self, wanted: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """Give the decision records with these ids.

        Args:
            wanted: For each id the month (YYYY-MM) it was made in; only files of that month and
                the one after are read.
        """
        found: dict[str, Mapping[str, Any]] = {}
        kept = files(self.directory)
        for month in sorted(set(wanted.values())):
            ids = {name for name, when in wanted.items() if when == month}
            needle = re.compile(b"|".join(re.escape(json.dumps(name).encode()) for name in ids))
            for file in [file for file in kept if file.name >= f"{month}.jsonl"][:2]:
                for _, raw, finished in lines(file):
                    data = parse(raw) if finished and needle.search(raw) else None
                    if data is None or data.get("kind") != "decision":
                        continue
                    if data.get("id") in ids:
                        found[data["id"]] = data
        return found

    def every(self, kind: str) -> list[Mapping[str, Any]]:
        """Give the records of one kind, oldest first; what cannot be read is passed over.

        Raises:
            OSError: a file cannot be read.
        """
        needle = f'"kind":{json.dumps(kind)}'.encode()
        found: list[Mapping[str, Any]] = []
        for file in files(self.directory):
            raw = content(file)
            if needle not in raw:  # the rule: such records are few
                continue
            for line in raw.split(b"\n")[:-1]:
                data = parse(line) if needle in line else None
                if data is not None and data.get("kind") == kind:
                    found.append(data)
        return found

    def head(self) -> Head:
        """Give count and hash of the last record, to be shown or kept elsewhere."""
        try:
            return Head.decode(content(self.directory / HEAD)) or Head()
        except OSError:
            return Head()

    # -- records -----------------------------------------------------------------------------

    def _body(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {"v": VERSION, "kind": kind, "time": self._stamp()}
        for name, value in fields.items():
            body[name] = self._arguments(value) if name == "arguments" else self._text(value)
        return body

    def _text(self, value: Any) -> Any:
        return clip(self.redact(value), MAX_TEXT) if isinstance(value, str) else value

    def _arguments(self, value: Any) -> Any:
        clean = _redacted(value, self.redact, 0)
        try:
            text = json.dumps(clean, ensure_ascii=False, allow_nan=False)
        except (ValueError, TypeError, RecursionError):
            return {"unreadable": clip(self.redact(repr(value)), MAX_TEXT)}
        if len(text) <= MAX_ARGUMENTS:
            return clean
        return {"cut": text[:MAX_ARGUMENTS], "characters": len(text)}

    def _gap(self, missed: int) -> dict[str, Any]:
        since = _iso(self._missed_since)
        why = "records could not be written"
        return {**self._body("gap", {}), "missed": missed, "since": since, "reason": why}

    def _stamp(self) -> str:
        return _iso(self._clock())

    def _found_wrong(self, what: str) -> Mapping[str, Any]:
        return {**self._body("gap", {}), "missed": 0, "reason": what}

    def _trouble(self, error: OSError, missed: int) -> None:
        if not self._missed:
            self._missed_since = self._clock()
        self._missed += missed
        now = time.monotonic()
        if self._on_trouble is None or now - self._warned < WARN_EVERY:
            return
        self._warned = now
        why = error.strerror or type(error).__name__
        self._on_trouble(
            f"The decision log cannot be written ({why}: {self.directory}); calls go on, "
            f"{self._missed} not recorded so far"
        )


def _redacted(value: Any, redact: Redactor, depth: int) -> Any:
    if depth > 100:
        return "…"
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {
                redact(str(key)): _redacted(item, redact, depth + 1) for key, item in value.items()
            }
        case list() | tuple():
            return [_redacted(item, redact, depth + 1) for item in value]
        case _:
            return value


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

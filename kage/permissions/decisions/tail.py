"""Follow the decision log while kages write to it (``kage log --follow``)."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from kage.core.files import reading
from kage.permissions.decisions.cases import OUTCOME, Case, backwards
from kage.permissions.decisions.chain import files, parse

_HELD = 10_000  # decisions whose outcome is waited for


class Tail:
    """Gives what was written since it was last asked.

    Args:
        directory: The folder of the log; need not exist yet.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        kept = files(directory)
        self._file = kept[-1].name if kept else ""
        self._at = _end(kept[-1]) if kept else 0
        self._decided: OrderedDict[str, Case] = OrderedDict()

    def fresh(self) -> Iterator[Case]:
        """Yield the new cases; a call that ended comes again, with its outcome.

        Raises:
            OSError: the log cannot be read.
        """
        for file in files(self._directory):
            if file.name < self._file:
                continue
            if file.name > self._file:
                self._file, self._at = file.name, 0
            yield from self._rest(file)

    def _rest(self, file: Path) -> Iterator[Case]:
        with reading(file) as stream:
            stream.seek(self._at)
            for raw in stream:
                if not raw.endswith(b"\n"):
                    return
                self._at += len(raw)
                data = parse(raw)
                if data is None:
                    continue
                case = Case(fields=data, file=file.name)
                if case.kind == OUTCOME:
                    decided = self._decided.pop(case.text("decision"), None)
                    if decided is not None:
                        yield dataclasses.replace(decided, ended=data)
                    continue
                if case.kind == "decision":
                    self._decided[case.text("id")] = case
                    if len(self._decided) > _HELD:
                        self._decided.popitem(last=False)
                yield case


def _end(file: Path) -> int:
    """Give where the last finished line of ``file`` ends."""
    offset, raw = next(backwards(file), (-1, b""))
    return offset + len(raw) + 1

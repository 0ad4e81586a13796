"""Pins as every command uses them: where they are kept, which lock counts, how one is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kage.cli.ground import Ground
from kage.permissions.decisions.log import DecisionLog
from kage.permissions.pins import file as pinfile
from kage.permissions.pins import lock as pinlock
from kage.permissions.pins.book import PinBook

FOLDER = "pins"  # in the data folder


def book_of(here: Ground, log: DecisionLog, *, records: bool) -> PinBook:
    """Give the book of this ground.

    Args:
        records: Whether what is offered for the first time counts as known from now on.
    """
    return PinBook(
        here.paths.data / FOLDER,
        log=log,
        records=records,
        lock=pinlock.LockFile(lock_file(here)),
        redact=here.redact,
    )


def lock_file(here: Ground) -> Path:
    """Give where the project's lock file is, or would be."""
    return here.workspace / pinlock.NAME


def watched(here: Ground) -> Iterator[Path]:
    """Give the files whose change may change what is held: another shell may decide."""
    yield lock_file(here)
    folder = here.paths.data / FOLDER
    for spec in here.settings.servers.values():
        yield pinfile.path_of(folder, spec.name, spec.origin)

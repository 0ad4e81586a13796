"""Write a changed settings file: whole or not at all, under a lock, mode and links kept."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from kage.config.documents import Unreadable, read_text
from kage.config.edit import TomlText
from kage.core.errors import ConfigError, KageError
from kage.core.files import replace
from kage.core.locks import take

PRIVATE = 0o600  # of a file kage makes: an entry may hold a secret


def preview(file: Path, change: Callable[[TomlText], None]) -> TomlText:
    """Apply ``change`` to what ``file`` holds, without writing; a missing file is empty.

    Raises:
        ConfigError: the file cannot be read, or is no valid TOML.
        KageError: what ``change`` raises.
    """
    draft = TomlText(file, _held(file))
    change(draft)
    return draft


def rewrite(file: Path, change: Callable[[TomlText], None]) -> TomlText:
    """Apply ``change`` to ``file`` and write it when something differs.

    The file is read again under the lock: what another program wrote meanwhile is kept. A link is
    followed, the mode stays; a new file can be read by its owner only.

    Raises:
        ConfigError: the file cannot be read, or is no valid TOML; it stays as it is.
        KageError: it cannot be written; it stays as it is.
    """
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            draft = preview(file, change)
            if draft.changed:
                _replace(target, draft.text)
            return draft
    except OSError as error:
        raise KageError(
            f"{file} cannot be written",
            why=error.strerror or str(error),
            fix="It is as it was; see who may write to it and to its folder",
        ) from error


def _held(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        return ""
    except Unreadable as error:
        raise ConfigError((error.fault,)) from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other kages out of ``folder`` meanwhile; the folder itself is the lock."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        take(handle)
        yield
    finally:
        os.close(handle)


def _replace(target: Path, text: str) -> None:
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mode = PRIVATE
    replace(target, text.encode(), mode=mode)

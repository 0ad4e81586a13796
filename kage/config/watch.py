"""Tell when one of the configuration's files may say something else, in this process or not yet.

Folders are watched, not files: an editor puts another file in a file's place, and a file that is
not there today may be written tomorrow. What is reported is only that something happened; reading
the files again tells what.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Names = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a burst of changes is told as one; both in milliseconds."""

    step: int = 400  # without a change, after which it is over; also how soon the end is noticed
    burst: int = 2_000  # it may last before it is told anyway


async def watch(
    files: Callable[[], Iterable[Path]], stop: asyncio.Event, *, pace: Pace = Pace()
) -> AsyncGenerator[Names, None]:
    """Yield after each burst of changes of one of ``files``, until ``stop`` is set.

    It yields first of all when the watch is in place, and each time it had to be set up anew: what
    changed before that nobody tells. Each time the paths that changed, none of them then.

    Args:
        files: Every file that is read, or would be if it existed; asked again after each burst.
        stop: Ends it within a moment.

    Raises:
        OSError: they cannot be watched here.
    """
    rust: Any = await asyncio.to_thread(importlib.import_module, "watchfiles._rust_notify")
    ended = threading.Event()
    ending = asyncio.create_task(_pass_on(stop, ended), name="end of the watch")
    failed: Names | None = None
    try:
        while not stop.is_set():
            wanted = await asyncio.to_thread(_wanted, files)
            try:
                notify = await asyncio.to_thread(_set_up, rust, wanted)
                async with contextlib.aclosing(_follow(notify, wanted, ended, pace)) as bursts:
                    async for changed in bursts:
                        failed = None
                        yield changed
                        if await asyncio.to_thread(_outdated, files, wanted, changed):
                            break
            except (RuntimeError, OSError) as error:  # how it reports a folder that went
                if failed == wanted and not stop.is_set():
                    raise OSError(str(error)) from None
                failed = wanted
    finally:
        ended.set()
        ending.cancel()


async def _pass_on(stop: asyncio.Event, ended: threading.Event) -> None:
    await stop.wait()
    ended.set()


def _set_up(rust: Any, names: Names) -> Any:
    """Watch the folders of ``names`` from now on."""
    folders = sorted({os.path.dirname(name) for name in names})
    return rust.RustNotify(folders, False, False, 300, False, True)


async def _follow(
    notify: Any, names: Names, ended: threading.Event, pace: Pace
) -> AsyncGenerator[Names, None]:
    """Yield once, then after each burst that concerns ``names``."""
    try:
        yield frozenset()
        while True:
            seen = await asyncio.to_thread(notify.watch, pace.burst, pace.step, 0, ended)
            if isinstance(seen, str):
                if seen == "stop":
                    return
                continue
            changed = frozenset(path for _, path in seen if _concerns(path, names))
            if changed:
                yield changed
    finally:
        with contextlib.suppress(RuntimeError):  # it is in use: its thread sees the end by itself
            notify.close()


def _wanted(files: Callable[[], Iterable[Path]]) -> Names:
    """Give every path at which a change matters: the file, what it links to, its missing folders.

    Of a file whose folder is not there, the first missing folder stands in.
    """
    found: set[str] = set()
    for file in files():
        found.add(_watchable(os.path.abspath(file)))
        found.add(_watchable(os.path.realpath(file)))
    return frozenset(found)


def _outdated(files: Callable[[], Iterable[Path]], names: Names, changed: Names) -> bool:
    """Say whether what is watched for ``names`` may no longer be the right folders.

    A folder came or went, or a link leads elsewhere. Also where all is spelled as before: of a
    folder that went and came again by now the new one is not watched.
    """
    return any(_is_folder_of(path, names) for path in changed) or _wanted(files) != names


def _watchable(path: str) -> str:
    """Give the path, or the one above it whose folder is there."""
    while not os.path.isdir(os.path.dirname(path)):
        path = os.path.dirname(path)
    return path


def _concerns(path: str, names: Names) -> bool:
    """Say whether a change at ``path``, as the system spells it, is one of ``names``.

    So is one of a folder they are in: once it is gone nothing of it is told any more.
    """
    if path in names or _is_folder_of(path, names):
        return True
    return _spelled(path) in map(_spelled, names)


def _is_folder_of(path: str, names: Names) -> bool:
    return _spelled(path) in (os.path.realpath(os.path.dirname(name)) for name in names)


def _spelled(path: str) -> str:
    """Resolve the links above ``path``, not the one it may be itself."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))

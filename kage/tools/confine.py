"""Open files so that nothing outside a call's roots is ever touched, whatever moves meanwhile.

A path is resolved once, checked against the roots, and then walked from ``/`` by descriptor with
no link followed: a folder swapped for a link between check and use is refused, not followed
(SECURITY T17, T18). Hard links cannot be told apart from files and count as inside.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kage.core.errors import ToolError
from kage.core.locations import is_inside, resolve
from kage.core.sanitise import clip, visible
from kage.core.tools import Invocation

MAX_PATH = 4096  # bytes; PATH_MAX of every system kage runs on is at most this

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_REASONS = {
    errno.ENOENT: "it does not exist",
    errno.ENOTDIR: "a part of the path is a file or was swapped for a link",
    errno.ELOOP: "the path is a loop of links or was swapped for a link",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "the system does not permit it",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.ENXIO: "it is no regular file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A resolved place inside the roots; ``shown`` is safe to print."""

    path: Path
    shown: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names from ``/`` down."""
        return self.path.parts[1:]


def locate(call: Invocation, raw: str, *, reading: bool = False) -> Place:
    """Resolve what the model wrote and check it against the roots.

    ``reading`` also admits the scratch folder, where the rest of a cut result is kept.

    Raises:
        ToolError: the path cannot exist or lies outside the roots.
    """
    if "\0" in raw:
        raise ToolError("The path holds a NUL character, which no file name can have")
    if len(raw.encode("utf-8", "surrogatepass")) > MAX_PATH:
        raise ToolError(
            f"The path is longer than {MAX_PATH} bytes",
            why=clip(visible(raw, single_line=True), 80),
        )
    path = resolve(call.workspace, raw)
    workspace = call.workspace
    if not is_inside(path, call.roots):
        workspace = _outside(call, path, raw, reading=reading)
    place = Place(path=path, shown=shown_path(path, workspace))
    if path.parts[1:2] in (("proc",), ("sys",)):
        raise special(place.shown, "part of the kernel's own file system")
    return place


def _outside(call: Invocation, path: Path, raw: str, *, reading: bool) -> Path:
    """Look again with the workspace and the scratch folder resolved; the resolved workspace."""
    workspace = Path(os.path.realpath(call.workspace))
    roots = [workspace if root == call.workspace else root for root in call.roots]
    if reading:
        roots.append(Path(os.path.realpath(call.scratch)))
    if is_inside(path, roots):
        return workspace
    raise ToolError(
        f"{clip(visible(raw, single_line=True), 200)} is outside the folders this call may touch",
        why="" if str(path) == raw else f"it leads to {visible(str(path), single_line=True)}",
        fix=f"Use a path inside {visible(str(workspace), single_line=True)}",
    )


def shown_path(path: Path, workspace: Path) -> str:
    """Give ``path`` as a person reads it: relative to the workspace where it is inside."""
    shown, above = str(path), str(workspace)
    if shown == above:
        return "."
    return visible(shown.removeprefix(f"{above.rstrip('/')}/"), single_line=True)


def special(shown: str, kind: str) -> ToolError:
    """Make the error for something that is no regular file."""
    return ToolError(f"{shown} is {kind}, not a regular file", fix="Only regular files are opened")


def failure(error: OSError | ValueError, shown: str, doing: str) -> ToolError:
    """Turn a system error into what the model reads; ``doing`` completes "cannot be …"."""
    if isinstance(error, OSError) and error.errno is not None:
        why = _REASONS.get(error.errno) or os.strerror(error.errno)
    else:
        why = "the name cannot be written in the file system's encoding"
    return ToolError(f"{shown} cannot be {doing}", why=why)


@contextlib.contextmanager
def folder(parts: Sequence[str], *, start: int | None = None, make: bool = False) -> Iterator[int]:
    """Walk ``parts`` from ``/`` (or the descriptor ``start``) and give the last one's descriptor.

    No link is followed. ``make`` creates what is missing. The descriptor serves as ``dir_fd``
    only; ``listing`` gives one that can be read.

    Raises:
        OSError: as the system says; ENOTDIR or ELOOP where a link stands.
    """
    held = os.open("/", _FOLDER) if start is None else os.dup(start)
    try:
        for name in parts:
            below = _enter(held, name, make=make)
            os.close(held)
            held = below
        yield held
    finally:
        os.close(held)


def _enter(parent: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def listing(parent: int, name: str = ".") -> int:
    """Open the folder ``name`` below ``parent`` for reading its entries; the caller closes it."""
    return os.open(name, _LISTING, dir_fd=parent)


def open_folder(place: Place) -> int:
    """Open the folder at ``place`` for listing; the caller closes the descriptor.

    Raises:
        ToolError: there is no folder there, or it cannot be read.
    """
    try:
        with folder(place.parts) as held:
            descriptor = listing(held)
    except (OSError, ValueError) as error:
        raise failure(error, place.shown, "listed") from error
    if _kernel_file(os.fstat(descriptor)):
        os.close(descriptor)
        raise special(place.shown, "part of the kernel's own file system")
    return descriptor


def open_at(parent: int, name: str) -> tuple[int, os.stat_result]:
    """Open the regular file ``name`` below ``parent`` for reading, without ever blocking.

    Raises:
        OSError: it cannot be opened; ENXIO when it is no regular file.
    """
    before = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(before.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(before.st_mode) or _kernel_file(before):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    descriptor = os.open(name, _READ, dir_fd=parent)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or _kernel_file(status):  # swapped after the look
        os.close(descriptor)
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
    return descriptor, status


def open_file(call: Invocation, place: Place) -> tuple[int, os.stat_result]:
    """Open the regular file at ``place`` for reading; the caller closes the descriptor.

    Raises:
        ToolError: nothing is there, it is special, or it cannot be read.
    """
    try:
        with folder(place.parts[:-1]) as held:
            return open_at(held, place.parts[-1] if place.parts else ".")
    except FileNotFoundError as error:
        raise missing(call, place) from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise _not_regular(place) from error
        raise failure(error, place.shown, "read") from error


def _not_regular(place: Place) -> ToolError:
    status = status_of(place)
    kind = "special" if status is None else describe(status)
    if kind == "a folder":
        return ToolError(f"{place.shown} is a folder", fix="Use ls to see what is in it")
    return special(place.shown, kind or "special")


def status_of(place: Place) -> os.stat_result | None:
    """Look at what is at ``place`` without following a link; None when nothing is there.

    Raises:
        ToolError: the way there cannot be walked.
    """
    try:
        if not place.parts:
            return os.stat("/")
        with folder(place.parts[:-1]) as held:
            return os.stat(place.parts[-1], dir_fd=held, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise failure(error, place.shown, "reached") from error


def kind_of(parent: int, name: str) -> str:
    """Say in words what ``name`` is when it is no regular file, else ""; raises OSError."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    return describe(status)


def describe(status: os.stat_result) -> str:
    """Say in words what a status is of when it is no regular file, else ""."""
    for test, words in _KINDS:
        if test(status.st_mode):
            return words
    return "part of the kernel's own file system" if _kernel_file(status) else ""


def _kernel_file(status: os.stat_result) -> bool:
    return status.st_dev in _kernel_devices()


@functools.cache
def _kernel_devices() -> frozenset[int]:
    """Give the devices of /proc and /sys, so that they are known where else they are mounted."""
    found = set()
    for mount in ("/proc", "/sys"):
        with contextlib.suppress(OSError):
            found.add(os.stat(mount).st_dev)
    return frozenset(found - {os.stat("/").st_dev})


def missing(call: Invocation, place: Place) -> ToolError:
    """Make the error for a place where nothing is, with names that are close."""
    from kage.tools import nearby  # only after a miss

    return ToolError(f"{place.shown} does not exist", fix=nearby.hint(call, place))

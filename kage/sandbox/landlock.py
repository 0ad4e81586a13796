"""The command line that makes a sandbox by Landlock and a system call filter."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from kage.sandbox.places import is_below, without

LEAST = 3  # before this version a program may cut any file to nothing
MACHINES = ("x86_64", "aarch64")  # whose system call numbers the filter knows
_LAUNCHER = Path(__file__).with_name("landlock_exec.py")
_DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    *("/dev/tty", "/dev/ptmx", "/dev/pts"),
)


def version() -> int:
    """Ask the kernel which version of Landlock it has; 0: none, or it is off."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return 0
    library = ctypes.CDLL(None, use_errno=True)
    return max(int(library.syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1))), 0)


def command(
    *,
    network: bool,
    write: Collection[str],
    hide: Collection[str],
    show: Collection[str],
    argv: Sequence[str],
) -> tuple[str, ...]:
    """Give what runs ``argv`` with these rights and no others; all places are resolved."""
    words: list[str] = []
    for flag, places in (
        ("r", (*without("/", hide), *_trees(show, hide))),
        ("w", _trees(write, hide)),
        ("d", _DEVICES),
    ):
        words += [f"{flag}{place}" for place in places]
    python = (sys.executable, "-I", "-S", str(_LAUNCHER))
    return (*python, "net" if network else "none", *words, "--", *argv)


def _trees(places: Collection[str], hide: Collection[str]) -> Iterator[str]:
    for place in places:
        # who names a folder inside something hidden means it
        yield from without(place, [other for other in hide if is_below(other, place)])

"""The watchdog's own process: ends what kage started once kage is gone.

Run as a script with ``python -I -S``, so it imports nothing but the standard library and nothing
of kage. Its stdin is a pipe only kage holds. Lines on it: ``+pgid`` and ``-pgid`` register and
forget a process group, ``~seconds`` sets the grace between TERM and KILL. When the pipe closes,
for whatever reason, every registered group and, on Linux, every process that carries kage's tag
in its environment is ended; then the process exits.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator

GRACE = 2.0  # seconds between TERM and KILL
LIMIT = 5.0  # seconds after which the sweep gives up, whatever is left
STEP = 0.05  # seconds between two looks
_PROC = "/proc"
_IGNORED = ("SIGINT", "SIGHUP", "SIGTERM", "SIGQUIT", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGPIPE")


def signal_group(pgid: int, number: int) -> bool:
    """Send a signal to a group (0 only asks); False when there is nobody to receive it."""
    if pgid <= 1:  # 0 and 1 would mean "my own group" and "everybody"
        return False
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
        return False
    return True


def group_alive(pgid: int) -> bool:
    """Say whether a group has a member that is more than an unreaped zombie."""
    if not signal_group(pgid, 0):
        return False
    if not os.path.isdir(f"{_PROC}/self"):
        return True
    return any(group == pgid and state not in "ZX" for _, state, group in _processes())


def tagged(tag: str) -> set[int]:
    """Find the living processes whose environment carries ``tag``; Linux only, else none.

    ``tag`` may go on: with a NUL at its end it is one child's and not those of longer numbers.
    """
    needle = tag.encode()
    found = set()
    for pid, state, _ in _processes():
        if state in "ZX" or pid == os.getpid():
            continue
        try:
            with open(f"{_PROC}/{pid}/environ", "rb") as file:
                if needle in file.read():
                    found.add(pid)
        except OSError:  # gone meanwhile, or another user's
            continue
    return found


def sweep(groups: Iterable[int], tag: str, grace: float = GRACE) -> bool:
    """End the groups and the tagged: TERM, ``grace`` seconds, KILL until none is left.

    Returns:
        False when something survived ``LIMIT`` seconds (unkillable, or another user's).
    """
    start = time.monotonic()
    living = {group for group in groups if signal_group(group, signal.SIGTERM)}
    told: set[int] = set()
    empty = 0
    while True:
        killing = time.monotonic() - start >= grace
        living = {group for group in living if group_alive(group)}
        strays = tagged(tag)
        if not living and not strays:
            empty += 1
            if empty == 2:  # one look can miss a child that was forked during it
                return True
        else:
            empty = 0
        if killing:
            for group in living:
                signal_group(group, signal.SIGKILL)
            _signal_all(strays, signal.SIGKILL)
        else:
            _signal_all(strays - told, signal.SIGTERM)
            told |= strays
        if time.monotonic() - start > LIMIT:
            return False
        time.sleep(STEP if living or strays else STEP / 10)


def main(tag: str, pipe: int = 0) -> None:
    """Serve until the pipe closes, then sweep."""
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    groups: set[int] = set()
    grace = GRACE
    for line in _lines(pipe):
        try:
            if line.startswith(b"+"):
                groups.add(int(line[1:]))
            elif line.startswith(b"-"):
                groups.discard(int(line[1:]))
            elif line.startswith(b"~"):
                grace = min(max(float(line[1:]), 0.0), GRACE)
        except ValueError:  # half a line: kage died while it wrote
            continue
    sweep(groups, tag, grace)


def _lines(pipe: int) -> Iterator[bytes]:
    rest = b""
    while chunk := os.read(pipe, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines


def _processes() -> Iterator[tuple[int, str, int]]:
    """Give pid, state letter and group of each process that /proc shows."""
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"{_PROC}/{name}/stat", "rb") as file:
                # the command name stands in brackets and may hold anything, brackets too
                fields = file.read().rpartition(b")")[2].split()
            yield int(name), fields[0].decode(), int(fields[2])
        except (OSError, ValueError, IndexError):
            continue


def _signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


if __name__ == "__main__":
    main(sys.argv[1])

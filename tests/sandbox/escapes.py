"""Run inside a sandbox: tries to get out of it and prints what worked, and why the rest did not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def tried(action: Callable[[], object]) -> str:
    """Give "" when it worked, else why not."""
    try:
        action()
    except (OSError, subprocess.SubprocessError) as error:
        return str(error) or type(error).__name__
    return ""


def attempts(outside: Path, host: int, tcp: int, udp: int) -> dict[str, Callable[[], object]]:
    """Give every attempt by name; ``outside`` holds ``victim``, ``secret/key`` and a listener."""
    here = Path.cwd()
    victim, secret = outside / "victim", outside / "secret"

    def through_link() -> None:
        (here / "link").symlink_to(victim)
        (here / "link").write_text("changed")

    def through_hard_link() -> None:
        os.link(victim, here / "hard")
        (here / "hard").write_text("changed")

    def environment() -> None:
        if b"HOST_CANARY" not in Path(f"/proc/{host}/environ").read_bytes():
            raise OSError("it is not in there")

    def service() -> None:
        with socket.socket(socket.AF_UNIX) as peer:
            os.chdir(secret)
            peer.connect("listens")

    def remount() -> None:
        line = f"mount -o remount,rw {outside} && echo x > {victim}"
        subprocess.run(["unshare", "-Urm", "sh", "-c", line], check=True, capture_output=True)

    def datagram() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.sendto(b"out", ("127.0.0.1", udp))

    return {
        "write beside": lambda: (outside / "new").write_text("x"),
        "write": lambda: victim.write_text("changed"),
        "truncate": lambda: os.truncate(victim, 0),
        "remove": victim.unlink,
        "rename in": lambda: os.rename(victim, here / "taken"),
        "symbolic link": through_link,
        "hard link": through_hard_link,
        "read what is hidden": (secret / "key").read_bytes,
        "environment of the host": environment,
        "signal to the host": lambda: os.kill(host, signal.SIGCONT),
        "remount": remount,
        "tcp": lambda: socket.create_connection(("127.0.0.1", tcp), 5).close(),
        "udp": datagram,
        "own file": lambda: (here / "own").write_text("x"),
        "own folder": (here / "folder").mkdir,
        "rename own": lambda: os.rename(here / "own", here / "folder" / "own"),
        "temporary": lambda: (Path(os.environ["TMPDIR"]) / "t").write_text("x"),
        "null": lambda: Path("/dev/null").write_text("x"),
        "pair": socket.socketpair,
        "read": victim.read_bytes,
        "run": lambda: subprocess.run(["/bin/sh", "-c", "exit 0"], check=True),
        "service": service,  # last: it goes elsewhere
    }


if __name__ == "__main__":
    outside, *numbers = sys.argv[1:]
    every = attempts(Path(outside), *map(int, numbers))
    print(json.dumps({name: tried(action) for name, action in every.items()}))

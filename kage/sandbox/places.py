"""Which places a sandbox hides, and how a tree is given out without what is hidden in it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

# what opens doors elsewhere; a program that needs one of them gets it in its environment
_KEYS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials"),
    *(".pypirc", ".npmrc", ".password-store", ".config/gcloud", ".config/gh", ".config/op"),
    *(".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium"),
    ".Xauthority",
)
# who listens there does things for whoever asks, outside of the sandbox
_SERVICES = (
    *("/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd", "/run/podman"),
    *("/run/crio", "/run/snapd.socket", "/run/libvirt", "/run/systemd/private"),
)


def hidden_places(
    environ: Mapping[str, str], own: Collection[Path], more: Collection[Path]
) -> tuple[Path, ...]:
    """Give what no sandboxed process may read: kage's ``own`` folders, keys, services, ``more``."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    runtime = environ.get("XDG_RUNTIME_DIR")
    named = (
        *own,
        *more,
        *(home / name for name in _KEYS),
        *map(Path, _SERVICES),
        *((Path(runtime),) if runtime else ()),
    )
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in named))


def without(place: str, hidden: Collection[str]) -> Iterator[str]:
    """Give the largest trees that together are ``place`` without what is hidden in it.

    ``place`` itself where nothing is; nothing where all of it is hidden. What is made later
    beside something hidden is in none of them.
    """
    if any(is_below(place, other) for other in hidden):
        return
    if not any(is_below(other, place) for other in hidden):
        yield place
        return
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        below = os.path.join(place, name)
        if not os.path.islink(below):  # what a link leads to is given out where it stands
            yield from without(below, hidden)


def is_below(place: str, other: str) -> bool:
    """Say whether ``place`` is ``other`` or inside it; both are resolved."""
    return place == other or place.startswith(f"{other.rstrip('/')}/")

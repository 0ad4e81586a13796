"""Where kage keeps its files, and which folder is the workspace.

The places are those of the XDG base directory specification on Linux and macOS alike, each ending
in ``kage``; an unset, empty or relative variable counts as not given. Nothing is created here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONFIG_NAME = "config.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The folders of DESIGN section 7, and the one settings file."""

    config: Path  # the person's files
    data: Path  # what kage remembers
    cache: Path  # what can be thrown away
    runtime: Path  # sockets; mode 0700, gone after a reboot
    config_file: Path  # config.toml, or what KAGE_CONFIG names

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Paths:
        """Find the folders from ``environ`` (HOME, XDG_*, KAGE_CONFIG)."""
        home = _home(environ)
        config = _xdg(environ, "XDG_CONFIG_HOME", home / ".config")
        named = environ.get("KAGE_CONFIG", "").strip()
        file = Path(os.path.abspath(os.path.expanduser(named))) if named else config / CONFIG_NAME
        return cls(
            config=config,
            data=_xdg(environ, "XDG_DATA_HOME", home / ".local" / "share"),
            cache=_xdg(environ, "XDG_CACHE_HOME", home / ".cache"),
            runtime=_runtime(environ),
            config_file=file,
        )

    @property
    def named(self) -> bool:
        """Whether the person named the settings file, so that it must exist."""
        return self.config_file != self.config / CONFIG_NAME


def _home(environ: Mapping[str, str]) -> Path:
    given = environ.get("HOME", "")
    return Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~"))


def _xdg(environ: Mapping[str, str], variable: str, default: Path) -> Path:
    given = environ.get(variable, "").strip()
    return (Path(given) if os.path.isabs(given) else default) / "kage"


def _runtime(environ: Mapping[str, str]) -> Path:
    """Take the first runtime folder that is ours alone, else one of our own below /tmp."""
    uid = os.getuid()
    for place in (environ.get("XDG_RUNTIME_DIR", "").strip(), f"/run/user/{uid}"):
        if os.path.isabs(place) and _private(place, uid):
            return Path(place) / "kage"
    temporary = environ.get("TMPDIR", "").strip()
    base = temporary if os.path.isabs(temporary) else "/tmp"
    return Path(base) / f"runtime-{uid}" / "kage"


def _private(place: str, uid: int) -> bool:
    try:
        found = os.lstat(place)
    except (OSError, ValueError):
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == uid
        and stat.S_IMODE(found.st_mode) & 0o077 == 0
    )


def workspace_of(cwd: Path) -> Path:
    """Give the root of the git work tree ``cwd`` is in, else ``cwd``; links resolved."""
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        if os.path.exists(folder / ".git"):  # a folder, or a file in work trees and submodules
            return folder
    return start

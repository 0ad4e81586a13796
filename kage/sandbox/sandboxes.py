"""The sandbox of this kage: which one there is, what it hides, its temporary folders."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kage.core.sandbox import Places, SandboxLevel, SandboxRefused, Wrapped
from kage.sandbox import bubblewrap, landlock
from kage.sandbox.mechanism import Mechanism, look
from kage.sandbox.places import hidden_places, is_below

_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")


class Sandboxes:
    """Implements ``core.sandbox.Sandbox``; looks at the system with the first one wanted.

    Args:
        environ: Where programs are looked up, and where home is.
        own: kage's own folders, which no sandboxed process may read.
        hide: What the person hides besides.
        mechanism: What to use; None: find out.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        own: Collection[Path] = (),
        hide: Collection[Path] = (),
        mechanism: Mechanism | None = None,
    ) -> None:
        self._environ = environ
        self._own = tuple(own)
        self._hide = tuple(hide)
        self._mechanism = mechanism
        self._folder: Path | None = None
        self._lock = threading.Lock()

    @property
    def mechanism(self) -> Mechanism:
        """What there is; the first look starts a process for a moment."""
        with self._lock:
            if self._mechanism is None:
                self._mechanism = look(self._environ.get("PATH", os.defpath))
            return self._mechanism

    async def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], *, level: SandboxLevel, places: Places
    ) -> Wrapped:
        """Give what starts ``argv`` (its first word an absolute path) in a sandbox.

        Raises:
            SandboxRefused: this system has none, or a place it may write to is not there.
        """
        if level == "none":
            return Wrapped(argv=tuple(argv), env=env)
        return await asyncio.to_thread(self._wrapped, argv, env, level, places)

    def close(self) -> None:
        """Remove the temporary folders now; it happens by itself when the program ends."""
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            _remove(folder)

    def _wrapped(
        self, argv: Sequence[str], env: Mapping[str, str], level: SandboxLevel, places: Places
    ) -> Wrapped:
        found = self.mechanism
        if not found.kind:
            raise SandboxRefused(
                f'The sandbox "{level}" was asked for, so nothing was started',
                why=found.why,
                fix=found.fix,
            )
        write = [_resolved(place) for place in places.write]
        show = [os.path.realpath(place) for place in places.show if place.exists()]
        show = [place for place in show if not any(is_below(place, other) for other in write)]
        hide = [str(p) for p in hidden_places(self._environ, self._own, self._hide)]
        network = level != "no-network"
        temporary = self._temporary(places.name)
        if found.kind == "bubblewrap":
            words = bubblewrap.command(
                found.program,
                network=network,
                write=write,
                hide=hide,
                show=show,
                temporary=temporary,
                argv=argv,
            )
            return Wrapped(argv=words, env={**env, **dict.fromkeys(_TEMPORARY, "/tmp")})
        words = landlock.command(
            network=network, write=(*write, temporary), hide=hide, show=show, argv=argv
        )
        return Wrapped(argv=words, env={**env, **dict.fromkeys(_TEMPORARY, temporary)})

    def _temporary(self, name: str) -> str:
        """Give the temporary folder of what is called ``name``."""
        with self._lock:
            try:
                if self._folder is None or not self._folder.is_dir():
                    self._folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="kage-")))
                    weakref.finalize(self, _remove, self._folder)
                folder = self._folder / _UNFIT.sub("_", name)
                folder.mkdir(mode=0o700, exist_ok=True)
            except OSError as error:
                raise SandboxRefused(
                    "The sandbox has no temporary folder, so nothing was started",
                    why=error.strerror or str(error),
                ) from error
        return str(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _resolved(place: Path) -> str:
    resolved = os.path.realpath(os.path.expanduser(place))
    if not os.path.exists(resolved):
        raise SandboxRefused(
            f"The sandbox may write to {place}, which does not exist, so nothing was started",
            fix="Make it, or take it out of the settings",
        )
    return resolved

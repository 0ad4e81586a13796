"""Make the sandboxes of one kage from its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kage.config.paths import Paths
from kage.config.schema import SandboxSpec
from kage.core.sandbox import Cage
from kage.sandbox.sandboxes import Sandboxes


def sandboxes_for(spec: SandboxSpec, paths: Paths, environ: Mapping[str, str]) -> Sandboxes:
    """Give what makes sandboxes; nothing is looked at before the first one is wanted."""
    own = (paths.config, paths.config_file.parent, paths.data, paths.cache, paths.runtime)
    return Sandboxes(environ=environ, own=own, hide=_folders(spec.hide))


def shell_cage(spec: SandboxSpec, sandboxes: Sandboxes) -> Cage:
    """Give the sandbox of the agent's shell."""
    return Cage(sandbox=sandboxes, level=spec.bash, write=_folders(spec.write))


def _folders(places: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(Path(os.path.abspath(os.path.expanduser(place))) for place in places)

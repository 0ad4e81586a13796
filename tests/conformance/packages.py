"""The suite's packages: where they are kept, how they get there, how they are run."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SUITE = "@modelcontextprotocol/conformance"
VERSIONS = {"latest": "0.1.16", "alpha": "0.2.0-alpha.12"}
NODE = "node@22"  # the suite needs it; the package brings the program itself
_INSTALL_LIMIT = 300.0  # seconds


class Missing(Exception):
    """The suite cannot be had; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One version of the suite, installed."""

    name: str  # "latest" or "alpha"
    folder: Path

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line that runs it."""
        modules = self.folder / "node_modules"
        node, entry = modules / "node" / "bin" / "node", modules / SUITE / "dist" / "index.js"
        return (str(node), str(entry))


def installed(name: str) -> Suite:
    """Give a version of the suite, installed with npm where it is not yet.

    Raises:
        Missing: there is no npm, or it could not install it.
    """
    suite = Suite(name=name, folder=_cache() / VERSIONS[name])
    if all(Path(part).is_file() for part in suite.argv):
        return suite
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not on PATH")
    suite.folder.mkdir(parents=True, exist_ok=True)
    wanted = (f"{SUITE}@{VERSIONS[name]}", NODE)
    quiet = ("--no-audit", "--no-fund", "--no-save", "--loglevel=error")
    command = (npm, "install", "--prefix", str(suite.folder), *quiet, *wanted)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"npm did not come to an end within {_INSTALL_LIMIT:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Missing(f"npm could not install it: {' / '.join(said)}")
    return suite


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "kage-tests" / "conformance"

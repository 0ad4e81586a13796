"""Make the repository kage looks with, and read the little it takes from the person's own."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from kage.core.files import reading

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfileMode = true
\tsymlinks = true
\tfsmonitor = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tautocrlf = false
\tprotectNTFS = false
\tprotectHFS = false
\tlooseCompression = 1
\tfsync = none
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
# the strongest attributes there are: bytes stay as they are, whatever .gitattributes says
_ATTRIBUTES = "* -text -ident -filter !eol !working-tree-encoding\n"
_SPECIAL = re.compile(rb"[\\*?\[\] !#]")  # in patterns of ignore files
_SMALL = 1 << 20  # bytes of a file of the repository that is read


def make(folder: Path, workspace: Path, *, without: Sequence[bytes] = ()) -> None:
    """Make the repository, with an empty index; objects that are there stay.

    Args:
        folder: Where it is made.
        workspace: The work tree.
        without: Beginnings of paths in it that are ignored.

    Raises:
        OSError: it cannot be written.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("", "objects", "objects/info", "refs", "info"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    for name in ("index", "index.lock"):
        (folder / name).unlink(missing_ok=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text(_CONFIG)
    (folder / "info" / "attributes").write_text(_ATTRIBUTES)
    common = _common(workspace)
    ignored = b""
    with contextlib.suppress(OSError, ValueError):
        ignored = _small(common / "info" / "exclude") if common is not None else b""
    own = b"".join(b"/" + _SPECIAL.sub(rb"\\\g<0>", path) + b"\n" for path in without)
    (folder / "info" / "exclude").write_bytes(ignored + b"\n" + own)
    if common is None:
        return
    objects = str(common / "objects")
    if not ({"\n", '"'} & set(objects)) and b"sha256" not in _config(common):
        alternates = folder / "objects" / "info" / "alternates"
        alternates.write_bytes(os.fsencode(objects) + b"\n")


def index_of(workspace: Path) -> Path | None:
    """Give the index of the person's repository, None where there is none."""
    own = _own(workspace)
    index = None if own is None else own / "index"
    return index if index is not None and index.is_file() and not index.is_symlink() else None


def _common(workspace: Path) -> Path | None:
    """Find what all work trees of the person's repository share; by reading, not by git."""
    own = _own(workspace)
    if own is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        return own / os.fsdecode(_small(own / "commondir").strip())
    return own


def _own(workspace: Path) -> Path | None:
    place = workspace / ".git"
    if place.is_dir():
        return place
    with contextlib.suppress(OSError, ValueError):
        text = _small(place)
        if text.startswith(b"gitdir: "):
            return workspace / os.fsdecode(text[8:].strip())
    return None


def _config(common: Path) -> bytes:
    try:
        return _small(common / "config").lower()
    except (OSError, ValueError):
        return b""


def _small(path: Path) -> bytes:
    with reading(path) as file:
        return file.read(_SMALL)

"""The sandboxes there are, each a parameter; one that is missing here says why it is skipped."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from kage.sandbox import landlock
from kage.sandbox.mechanism import Mechanism, look

_FOUND = look(os.environ.get("PATH", os.defpath))
BUBBLEWRAP = _FOUND if _FOUND.kind == "bubblewrap" else None
_VERSION = landlock.version()
LANDLOCK = Mechanism(kind="landlock", version=_VERSION) if _VERSION >= landlock.LEAST else None


def _parameter(name: str, found: Mechanism | None, reason: str) -> Any:
    marks = () if found is not None else (pytest.mark.skip(reason=reason),)
    return pytest.param(found, id=name, marks=marks)


EACH = (
    _parameter("bubblewrap", BUBBLEWRAP, f"bubblewrap is missing or does not work: {_FOUND.why}"),
    _parameter("landlock", LANDLOCK, f"the kernel has version {_VERSION} of Landlock"),
)
ANY = pytest.mark.skipif(
    not _FOUND.kind, reason=f"{sys.platform} has no sandbox here: {_FOUND.why}"
)

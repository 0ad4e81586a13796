"""Suggest names that are close to one that does not exist."""

from __future__ import annotations

import contextlib
import itertools
import os

from kage.core.locations import is_inside
from kage.core.sanitise import visible
from kage.core.tools import Invocation
from kage.tools import confine
from kage.tools.confine import Place

_MOST = 2000  # names compared; more would take long in a folder of millions


def hint(call: Invocation, place: Place) -> str:
    """Name up to three entries of the same folder that are close to ``place``, or say nothing."""
    parent = place.path.parent
    if not is_inside(parent, [*call.roots, call.workspace]):
        return ""
    names: list[str] = []
    with contextlib.suppress(OSError), confine.folder(place.parts[:-1]) as held:
        descriptor = confine.listing(held)
        try:
            with os.scandir(descriptor) as entries:
                names = [entry.name for entry in itertools.islice(entries, _MOST)]
        finally:
            os.close(descriptor)
    from difflib import get_close_matches  # only after a miss

    close = get_close_matches(place.path.name, names, n=3, cutoff=0.6)
    if not close:
        return "Use ls or find to see what is there"
    return "Did you mean " + " or ".join(visible(name, single_line=True) for name in close) + "?"

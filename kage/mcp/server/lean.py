"""Load the standard library for serving without OpenSSL: 8 MB and 10 ms less in every client.

asyncio and hashlib import OpenSSL whether or not they need it, and both do without when it is not
there. Serving needs neither TLS in asyncio's own streams nor anything but SHA-2. Whoever imports
``ssl`` afterwards gets it: httpx2 does, and runs its TLS by itself.
"""

from __future__ import annotations

import importlib
import sys

_HEAVY = ("ssl", "_hashlib")


def load() -> None:
    """Import asyncio and hashlib lightly; does nothing where they are loaded already."""
    hidden = [name for name in _HEAVY if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # how an import is made to fail
    try:
        for name in ("asyncio", "hashlib", "hmac"):
            importlib.import_module(name)
    finally:
        for name in hidden:
            del sys.modules[name]


load()

"""Identifiers that sort by time and cannot be guessed."""

from __future__ import annotations

import os
import time

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"  # 32: five bits each


def new_id(prefix: str = "") -> str:
    """Make an id: ``prefix``, then 8 characters of time (ms) and 10 random ones, lower case."""
    stamp = time.time_ns() // 1_000_000
    head = "".join(_DIGITS[(stamp >> shift) & 31] for shift in range(40, -1, -5))
    # what the secrets module would give, without its import, which every start would pay for
    tail = "".join(_DIGITS[byte & 31] for byte in os.urandom(10))
    return f"{prefix}{head}{tail}"

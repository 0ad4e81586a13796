"""Every proof happens in a house of its own."""

from __future__ import annotations

from tests.proof.house import house

__all__ = ["house"]

"""How loud something is that a person is told."""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How loud a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

"""Scanners: deterministic looks at untrusted text; their flags are shown and never block."""

from kage.permissions.scanners.flag import Code, Flag, Kind
from kage.permissions.scanners.table import (
    argument_flags,
    definition_flags,
    instruction_flags,
    scan,
    scan_all,
)

__all__ = [
    "Code",
    "Flag",
    "Kind",
    "argument_flags",
    "definition_flags",
    "instruction_flags",
    "scan",
    "scan_all",
]

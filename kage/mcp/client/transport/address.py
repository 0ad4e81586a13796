"""Where a server that is not started but reached answers, and what is sent along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One server behind a url; nothing in it is expanded any further."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)  # for this url's origin alone
    command: tuple[str, ...] = ()  # prints further headers; () = there is none
    cwd: Path  # of the command
    env: Mapping[str, str] = field(default_factory=dict)  # the command's whole environment
    proxies: Mapping[str, str] = field(default_factory=dict)  # scheme, "all" or "no": value

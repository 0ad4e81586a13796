"""One key of a settings table: its check, its spellings, and what the example says of it."""

from __future__ import annotations

from dataclasses import dataclass

from kage.config.values import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of one table."""

    name: str  # as it is written
    doc: str
    check: Check | None = None  # None: a table with keys of its own
    field: str = ""  # the field in schema, when it is called otherwise
    aliases: tuple[str, ...] = ()
    sample: str = ""  # TOML to show where the default is empty
    later: bool = False  # checked, but does nothing yet
    secret: bool = False  # holds text that must not stand in messages

    @property
    def target(self) -> str:
        """The name of the field in schema."""
        return self.field or self.name

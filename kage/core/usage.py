"""Tokens a model read and wrote, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more model replies; ``input`` excludes what came from or went to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    @property
    def context(self) -> int:
        """Tokens the window holds after this reply."""
        return self.input + self.cache_read + self.cache_write + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Give the price of ``usage`` in US dollars."""
        total = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        )
        return total / 1_000_000

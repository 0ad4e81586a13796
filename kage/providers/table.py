"""What kage knows about models by heart: windows, prices, how they think (as of 2026-11-20).

Prices are the vendors' list prices in US dollars per million tokens; prices for very long
prompts, batches and regions are not in here. A model that is not listed has no price: unknown,
not free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from kage.core.usage import Price

AS_OF = "2026-11-20"
ANTHROPIC_DEFAULT = "claude-sonnet-5-5"
OPENAI_DEFAULT = "gpt-6-sol"


class Thought(Enum):
    """How a model's thinking is asked for in the Messages API."""

    NEVER = "never"
    BUDGET = "budget"  # thinking.type enabled, with a number of tokens
    ADAPTIVE = "adaptive"  # thinking.type adaptive, off unless asked for
    ALWAYS = "always"  # adaptive, and on by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One model of a vendor; tokens and prices."""

    window: int
    output: int
    price: Price
    thought: Thought = Thought.NEVER


def _claude(
    price: tuple[float, float],
    thought: Thought,
    *,
    reads: float = 0.1,
    window: int = 1_000_000,
    output: int = 128_000,
) -> Known:
    """Describe a Claude model; ``reads`` is the price of a cache read as a share of input's."""
    into, out = price
    cost = Price(input=into, output=out, cache_read=into * reads, cache_write=into * 1.25)
    return Known(window=window, output=output, price=cost, thought=thought)


def _gpt(price: tuple[float, float, float], *, writes: float = 1.0, window: int) -> Known:
    """Describe an OpenAI model; ``price`` is for input, cached input and output."""
    into, cached, out = price
    cost = Price(input=into, output=out, cache_read=cached, cache_write=into * writes)
    return Known(window=window, output=128_000, price=cost)


ANTHROPIC: dict[str, Known] = {
    "claude-fable-5-2": _claude((8, 40), Thought.ALWAYS, reads=0.025),
    "claude-fable-5-1": _claude((10, 50), Thought.ALWAYS, reads=0.025),
    "claude-opus-5-5": _claude((4, 20), Thought.ALWAYS, reads=0.05),
    "claude-sonnet-5-5": _claude((2, 10), Thought.ALWAYS, reads=0.05),
    "claude-haiku-5-5": _claude((0.1, 0.5), Thought.ALWAYS),
    "claude-opus-5": _claude((5, 25), Thought.ALWAYS),
    "claude-sonnet-5": _claude((2, 10), Thought.ALWAYS),
    "claude-opus-4-8": _claude((5, 25), Thought.ADAPTIVE),
    "claude-opus-4-7": _claude((5, 25), Thought.ADAPTIVE),
    "claude-opus-4-6": _claude((5, 25), Thought.ADAPTIVE),
    "claude-sonnet-4-6": _claude((3, 15), Thought.ADAPTIVE, output=64_000),
    "claude-opus-4-5": _claude((5, 25), Thought.BUDGET, window=200_000, output=64_000),
    "claude-sonnet-4-5": _claude((3, 15), Thought.BUDGET, window=200_000, output=64_000),
    "claude-haiku-4-5": _claude((1, 5), Thought.BUDGET, window=200_000, output=64_000),
}

OPENAI: dict[str, Known] = {
    "gpt-6-sol": _gpt((2, 0.2, 10), writes=1.25, window=1_050_000),
    "gpt-5.5": _gpt((5, 0.5, 30), window=1_050_000),
    "gpt-5.4": _gpt((2.5, 0.25, 15), window=1_050_000),
}

_LISTENS = re.compile(r"^(gpt-audio|gpt-4o(-mini)?-audio)")  # these see no pictures
_DATED = re.compile(r"-(latest|20\d{6}|20\d\d-\d\d-\d\d)$")


def known(kind: str, name: str) -> Known | None:
    """Give what is known about a vendor's model; dated names count as their undated ones."""
    listed = ANTHROPIC if kind == "anthropic" else OPENAI
    return listed.get(_DATED.sub("", name))


def listens(kind: str, name: str) -> bool:
    """Tell whether a vendor's model takes sounds; such a model takes no pictures."""
    return kind == "openai" and _LISTENS.match(name) is not None


def thought_of(name: str) -> Thought:
    """Give how an Anthropic model thinks; a model that is not listed gets a budget if asked."""
    found = known("anthropic", name)
    return found.thought if found is not None else Thought.BUDGET

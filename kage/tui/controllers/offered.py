"""Completion of server prompts: their names behind ``/``, then their arguments and values."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.agent import prompts
from kage.core.errors import UsageError
from kage.tui.controllers.naming import Item
from kage.tui.text import shown
from kage.tui.widgets.palette import Choice

if TYPE_CHECKING:
    from kage.core.offers import CompletionWish, Offers, PromptOffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A prompt line under the cursor: its prompt, the whole words, and the one being typed."""

    written: prompts.Written
    offer: PromptOffer
    before: str  # the draft up to the word
    word: str


def names(offers: Iterable[Offers]) -> list[Item]:
    """Give every prompt as a command."""
    found: list[Item] = []
    for held in offers:
        for prompt in held.prompts:
            if " " in prompt.name:
                continue  # no word of a line
            needs = " ".join(
                item.name if item.required else f"[{item.name}]" for item in prompt.arguments
            )
            about = prompt.title or prompt.description
            text = f"/{held.server}:{prompt.name}"
            found.append(Item(text, text, f"{about}  {needs}".strip(), not prompt.arguments))
    return found


def line(draft: str, offers: Mapping[str, Offers]) -> Line | None:
    """Take a draft apart whose last word is an argument of a prompt; None when it is none."""
    written = prompts.written(draft, offers)
    offer = prompts.lookup(offers, written) if written is not None else None
    start = _word_start(draft)
    if written is None or offer is None or not offer.arguments or start == 0:
        return None
    return Line(written=written, offer=offer, before=draft[:start], word=draft[start:])


def wish(found: Line) -> CompletionWish | None:
    """Give the question for the values of the argument being typed; None: a name is typed."""
    name, equals, value = found.word.partition("=")
    if not equals or name not in {item.name for item in found.offer.arguments}:
        return None
    from kage.core.offers import CompletionWish, RefKind

    return CompletionWish(
        server=found.written.server,
        kind=RefKind.PROMPT,
        name=found.offer.name,
        argument=name,
        value=_unquoted(value),
        known={key: text for key, text in _given(found).items() if key != name},
    )


def arguments(found: Line) -> tuple[Choice, ...]:
    """Give the arguments that have no value yet."""
    given = _given(found)
    typed = found.word.lower()
    return tuple(
        Choice(
            label=f"{item.name}=",
            insert=f"{found.before}{item.name}=",
            help=shown(("needed  " if item.required else "") + item.description, 120),
            complete=False,
        )
        for item in found.offer.arguments
        if item.name not in given and item.name.lower().startswith(typed) and " " not in item.name
    )


def values(found: Line, texts: Iterable[str]) -> tuple[Choice, ...]:
    """Give the values a server named for the argument being typed."""
    name = found.word.partition("=")[0]
    return tuple(
        Choice(
            label=shown(text, 80),
            insert=f"{found.before}{name}={shlex.quote(text)} ",
            help=name,
        )
        for text in texts
    )


def _given(found: Line) -> dict[str, str]:
    rest = found.before.split(maxsplit=1)
    try:
        words = prompts.split(rest[1] if len(rest) > 1 else "", None)
        return prompts.arguments(words, found.offer, name="it", complete=False)
    except UsageError:
        return {}


def _word_start(draft: str) -> int:
    """Give where the last word of a line begins; blanks inside quotes end no word."""
    quote, start = "", 0
    for at, letter in enumerate(draft):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter.isspace():
            start = at + 1
    return start


def _unquoted(text: str) -> str:
    return text[1:].rstrip(text[0]) if text[:1] in ("'", '"') else text

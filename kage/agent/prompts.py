"""A server's prompt as a person writes it (``/server:prompt path=a.py``), and as it is sent."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.core.content import Content, Text
from kage.core.errors import UsageError

if TYPE_CHECKING:
    from kage.core.offers import FilledPrompt, Offers, PromptOffer

_HEAD = re.compile(r"/([A-Za-z0-9._-]+):(\S+)")
_PAIR = re.compile(r"([^\s=]+)=(.*)", re.DOTALL)
_ASSISTANT = "[the prompt has the assistant say here:]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A prompt taken apart: whose, which one, and the rest of the line."""

    server: str
    name: str
    rest: str


def written(text: str, servers: Collection[str]) -> Written | None:
    """Take ``/server:prompt …`` apart; None when it starts otherwise or names no server."""
    found = _HEAD.match(text)
    if found is None or found[1] not in servers:
        return None
    return Written(server=found[1], name=found[2], rest=text[found.end() :].strip())


def offered(offers: Offers | None, name: str) -> PromptOffer | None:
    """Find a prompt among what its server offers."""
    prompts = offers.prompts if offers is not None else ()
    return next((prompt for prompt in prompts if prompt.name == name), None)


def arguments(
    words: Collection[str], prompt: PromptOffer | None, *, name: str, complete: bool = True
) -> dict[str, str]:
    """Read ``key=value`` words, and bare ones in the order of what is still open.

    Args:
        words: As the shell, or :func:`split`, gives them.
        prompt: What the server says it takes; None when that is not known.
        name: What messages call it.
        complete: Every required argument has to be there.

    Raises:
        UsageError: a word fits nowhere, or one that is required is missing.
    """
    known = {argument.name: argument for argument in prompt.arguments} if prompt else {}
    found: dict[str, str] = {}
    bare: list[str] = []
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is not None and (pair[1] in known or prompt is None):
            if pair[1] in found:
                raise UsageError(f"{pair[1]} is given twice", fix="Leave one of them out.")
            found[pair[1]] = pair[2]
        else:
            bare.append(word)
    _place(bare, found, prompt, name)
    missing = [key for key, argument in known.items() if argument.required and key not in found]
    if complete and missing:
        raise UsageError(f"{name} needs {' and '.join(missing)}", fix=_usage(prompt, name))
    return found


def split(rest: str, prompt: PromptOffer | None) -> list[str]:
    """Split the rest of a line as a shell does; a lone argument takes it as it is.

    Raises:
        UsageError: a quote is open.
    """
    only = prompt.arguments[0].name if prompt is not None and len(prompt.arguments) == 1 else ""
    if only and rest and not rest.startswith((f"{only}=", '"', "'")):
        return [rest]
    try:
        return shlex.split(rest)
    except ValueError as error:
        why = str(error).lower()
        fix = "Close the quote, or put a backslash before it."
        raise UsageError("The line has an open quote", why=why, fix=fix) from None


def content(filled: FilledPrompt) -> tuple[Content, ...]:
    """Give the parts of one user message that says all a prompt says.

    A server cannot put words into the model's own mouth: what it has the assistant say is marked.
    """
    parts: list[Content] = []
    for message in filled.messages:
        if message.role == "assistant":
            parts.append(Text(_ASSISTANT))
        parts += message.content
    return tuple(parts) or (Text(f"(the prompt {filled.name} of {filled.server} is empty)"),)


def _place(bare: list[str], found: dict[str, str], prompt: PromptOffer | None, name: str) -> None:
    if bare and prompt is None:
        raise UsageError(
            f"{name}: {bare[0]!r} is no key=value", fix="Write each argument as key=value."
        )
    order = sorted(prompt.arguments, key=lambda item: not item.required) if prompt else []
    free = [argument.name for argument in order if argument.name not in found]
    for word in bare:
        if not free:
            raise UsageError(f"{name} has no argument for {word!r}", fix=_usage(prompt, name))
        found[free.pop(0)] = word


def _usage(prompt: PromptOffer | None, name: str) -> str:
    taken = prompt.arguments if prompt is not None else ()
    words = (f"{item.name}=…" if item.required else f"[{item.name}=…]" for item in taken)
    return f"Usage: {' '.join([name, *words])}"


def lookup(servers: Mapping[str, Offers], written: Written) -> PromptOffer | None:
    """Find the prompt a line names among what servers offer."""
    return offered(servers.get(written.server), written.name)

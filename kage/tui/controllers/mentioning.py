"""What the list over the prompt offers behind an ``@``, and behind ``/`` for prompts of servers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kage.tui.controllers import offered
from kage.tui.controllers.naming import Item, Names, words
from kage.tui.controllers.sheets import Stage
from kage.tui.controllers.templates import Place, place
from kage.tui.controllers.values import Values
from kage.tui.text import shown
from kage.tui.widgets.palette import Choice
from kage.tui.widgets.prompt import PromptArea

if TYPE_CHECKING:
    from kage.agent.host import Host
    from kage.core.offers import CompletionWish, Offers

_TOKEN = re.compile(r'(?<![\w@./:+=-])@(?:"([^"\n]*)|([^\s"@][^\s"]*)?)$')
_FRESH = 10.0  # seconds a list of files is good for
_MAX_TEMPLATES = 200  # that are looked at for each key


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A mention under the cursor: what is typed of it, and where it stands in the draft."""

    text: str
    start: tuple[int, int]  # line and column of the @
    end: tuple[int, int]


class Mentioning:
    """Collects what can be named while it is typed.

    Args:
        prompt: Gives the prompt widget.
        stage: The app.
        arrived: Called when there is more to offer than before.
    """

    def __init__(
        self, prompt: Callable[[], PromptArea], stage: Stage, arrived: Callable[[], None]
    ) -> None:
        self._prompt = prompt
        self._stage = stage
        self._arrived = arrived
        self._names = Names(())
        self._commands = Names(())
        self._offers: dict[str, Offers] = {}
        self._loaded_at: float | None = None
        self._loading = False
        self._values = Values(self._ask, arrived=arrived, spawn=stage.in_background)

    @property
    def offers(self) -> dict[str, Offers]:
        """What servers offer, by their names, as far as it was looked at."""
        return self._offers

    def outdated(self) -> None:
        """A server offers something else: look again when it is needed."""
        self._loaded_at = None
        self._values.forget()

    def changed(self, draft: str) -> None:
        """The draft changed: fetch what it needs."""
        token = self._token(draft)
        if token is not None or draft.startswith("/"):
            self._load()
        self._values.want(self._wish(draft, token))

    def choices(self, draft: str) -> tuple[Choice, ...]:
        """Give what the draft could become; () where nothing is named."""
        token = self._token(draft)
        if token is not None:
            named = [self._mention(item, token) for item in self._names.search(token.text)]
            return (*self._template_values(token), *named)
        if not draft.startswith("/") or "\n" in draft:
            return ()
        if " " not in draft:
            return tuple(self._command(item) for item in self._commands.search(draft))
        line = offered.line(draft, self._offers)
        if line is None:
            return ()
        wish = offered.wish(line)
        if wish is None:
            return offered.arguments(line)
        return offered.values(line, self._values.known(wish))

    def says(self, choice: Choice) -> bool:
        """Whether the draft says already what taking ``choice`` would make it say."""
        if choice.span is None:
            return False
        (row, column), (_, end) = choice.span
        return self._prompt().document.get_line(row)[column:end] == choice.insert.rstrip()

    # ---- inside

    def _token(self, draft: str) -> Token | None:
        if draft.startswith(("/", "!")):
            return None
        prompt = self._prompt()
        row, column = prompt.cursor_location
        found = _TOKEN.search(prompt.document.get_line(row)[:column])
        if found is None:
            return None
        text = found[1] if found[1] is not None else found[2] or ""
        return Token(text=text, start=(row, found.start()), end=(row, column))

    def _load(self) -> None:
        host = self._stage.host
        fresh = self._loaded_at is not None and time.monotonic() - self._loaded_at < _FRESH
        if host is not None and not fresh and not self._loading:
            self._loading = True
            self._stage.in_background(self._fetch(host))

    async def _fetch(self, host: Host) -> None:
        try:
            self._loaded_at = time.monotonic()
            listed = host.offers.listed()
            if not len(self._names):  # files take longer
                await self._put(listed, ())
            await self._put(listed, await host.offers.files())
        finally:
            self._loading = False

    async def _put(self, listed: tuple[Offers, ...], files: Iterable[str]) -> None:
        self._names = await asyncio.to_thread(Names.of, listed, files)
        self._commands = await asyncio.to_thread(lambda: Names(offered.names(listed)))
        self._offers = {held.server: held for held in listed}
        self._arrived()

    async def _ask(self, wish: CompletionWish) -> tuple[str, ...]:
        host = self._stage.host
        return await host.offers.complete(wish) if host is not None else ()

    def _wish(self, draft: str, token: Token | None) -> CompletionWish | None:
        if token is not None:
            found = self._place(token)
            return found[1] if found is not None else None
        line = offered.line(draft, self._offers) if draft.startswith("/") else None
        wish = offered.wish(line) if line is not None else None
        return wish if wish is not None and self._offers[wish.server].completes else None

    def _place(self, token: Token) -> tuple[Place, CompletionWish] | None:
        """Give the value of a template that is being typed, and the question for it."""
        server, colon, typed = token.text.partition(":")
        held = self._offers.get(server)
        if not colon or held is None or not held.completes:
            return None
        from kage.core.offers import CompletionWish, RefKind

        for each in held.templates[:_MAX_TEMPLATES]:
            found = place(each.template, typed)
            if found is not None:
                return found, CompletionWish(
                    server=server,
                    kind=RefKind.TEMPLATE,
                    name=each.template,
                    argument=found.argument,
                    value=found.value,
                    known=found.known,
                )
        return None

    def _template_values(self, token: Token) -> tuple[Choice, ...]:
        found = self._place(token)
        if found is None:
            return ()
        where, wish = found
        return tuple(
            Choice(
                label=shown(value, 60),
                insert=_written(f"{wish.server}:{where.filled(value)}", whole=where.last),
                help=shown(f"{where.argument} of {wish.name}", 100),
                complete=where.last,
                span=(token.start, token.end),
            )
            for value in self._values.known(wish)
        )

    def _mention(self, item: Item, token: Token) -> Choice:
        return Choice(
            label=shown(item.label, 100),
            insert=_written(item.text, whole=item.whole),
            help=words(item),
            complete=item.whole,
            span=(token.start, token.end),
        )

    def _command(self, item: Item) -> Choice:
        return Choice(
            label=shown(item.label, 80),
            insert=item.text if item.whole else f"{item.text} ",
            help=words(item),
            complete=item.whole,
        )


def _written(text: str, *, whole: bool) -> str:
    """Spell a mention; one that is whole ends with a blank, so that typing goes on behind it."""
    if any(letter.isspace() for letter in text):
        return f'@"{text}" ' if whole else f'@"{text}'
    return f"@{text} " if whole else f"@{text}"

"""What an endpoint's refusals teach: which tools, pictures and thoughts it does not take.

One odd part makes an endpoint refuse every later request of the conversation. So a refusal that
names a part is learnt: the part is sent in a plainer form, or as words, and the request is sent
again. Each part is learnt once, so this ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kage.core.messages import AssistantMessage, Message
from kage.core.tools import ToolSpec
from kage.providers.base import ModelRequest
from kage.providers.projection import Projection, Projections

ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}

_DECLARED = re.compile(r"function_declarations\[(\d{1,4})\]")  # inside Gemini's one tools[0]
_BY_PLACE = re.compile(r"\btools[.\[](\d{1,4})\b")
_BY_NAME = re.compile(r"function ['\"`]([A-Za-z0-9_-]{1,128})['\"`]")


class Lessons:
    """Learnt about one endpoint; the messages it names are left plain from then on."""

    def __init__(self, projections: Projections) -> None:
        self._projections = projections
        self._plain: set[str] = set()  # tools whose schema is not taken
        self._dropped: set[str] = set()  # tools that are not taken at all
        self.unseen: frozenset[str] = frozenset()  # messages whose pictures are not taken
        self.forgotten: frozenset[str] = frozenset()  # messages whose thinking is not taken

    def tools(self, specs: Sequence[ToolSpec]) -> list[tuple[Projection, Any]]:
        """Give what is offered of ``specs``: each projection with the schema to send."""
        offered: list[tuple[Projection, Any]] = []
        for spec in specs:
            if spec.name not in self._dropped:
                made = self._projections(spec)
                offered.append((made, ANYTHING if spec.name in self._plain else made.schema))
        return offered

    def learn_tool(self, why: str, request: ModelRequest) -> bool:
        """Learn from a refusal that names one tool: first its schema goes, then the tool."""
        offered = [made.name for made, _ in self.tools(request.tools)]
        name = ""
        if found := _DECLARED.search(why) or _BY_PLACE.search(why):
            place = int(found[1])
            name = offered[place] if place < len(offered) else ""
        elif found := _BY_NAME.search(why):
            name = found[1] if found[1] in offered else ""
        if not name:
            return False
        (self._dropped if name in self._plain else self._plain).add(name)
        return True

    def hidden(self, messages: Sequence[Message], *, images: bool) -> frozenset[str]:
        """Give the ids of messages whose pictures go as words; all where it takes no ``images``."""
        return self.unseen if images else frozenset(message.id for message in messages)

    def learn_pictures(self, messages: Sequence[Message]) -> bool:
        """Send the pictures there are now as words; later ones are tried again."""
        ids = frozenset(message.id for message in messages)
        fresh = not ids <= self.unseen
        self.unseen |= ids
        return fresh

    def learn_thinking(self, messages: Sequence[Message]) -> bool:
        """Keep the thinking there is now to ourselves; later one goes back again."""
        ids = frozenset(m.id for m in messages if isinstance(m, AssistantMessage))
        fresh = not ids <= self.forgotten
        self.forgotten |= ids
        return fresh

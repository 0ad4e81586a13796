"""What the scanners say to the calls of one session: warnings, which never decide anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kage.core.gate import CallRequest
from kage.core.redact import Redactor
from kage.core.sanitise import clip, visible
from kage.core.tools import Risk, SubjectKind, ToolSpec
from kage.permissions.scanners import Code, Flag, argument_flags, definition_flags
from kage.permissions.scanners.flag import flag
from kage.permissions.scanners.heard import Heard
from kage.permissions.scanners.table import strings

_ALL = 400_000  # characters of arguments looked through for known secrets and others' words
_STAYS = (Code.SECRET, Code.OWN_SECRET, Code.BASE64, Code.ORDERS, Code.FOREIGN)
_MOST = 3  # secrets named in one warning


class Watch:
    """Looks at arguments and definitions before a call, and remembers what servers returned.

    Args:
        redact: Knows the secrets of this kage.
    """

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._heard = Heard()

    def written(self, text: str) -> None:
        """Remember what the person wrote: it may go to any server."""
        self._heard.written(text)

    def returned(self, server: str, text: str) -> None:
        """Remember what ``server`` gave back."""
        self._heard.returned(server, text)

    def arguments(self, request: CallRequest) -> tuple[str, ...]:
        """Give what is to be said about the arguments of a call; () for what only reads here."""
        tool = request.tool
        if request.by_hand or (tool.server is None and tool.risk is Risk.READ):
            return ()
        found = list(argument_flags(request.arguments))
        found += self._from_elsewhere(request)
        if tool.server is None and tool.subject.kind is SubjectKind.PATH:  # nothing leaves
            found = [item for item in found if item.code not in _STAYS]
        return tuple(map(str, found))

    def definition(self, tool: ToolSpec) -> tuple[str, ...]:
        """Give what is to be said about a tool nobody accepted yet."""
        return tuple(f"in the tool's definition, {item}" for item in definition_flags(tool))

    def _from_elsewhere(self, request: CallRequest) -> Iterator[Flag]:
        text = "\n".join(_bounded(text for _, text in strings(request.arguments)))
        if names := self._redact.names_in(text):
            some = ", ".join(clip(visible(name, single_line=True), 60) for name in names[:_MOST])
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            yield flag(Code.OWN_SECRET, words=f"the value of {some}{more}, a secret of yours")
        server = request.tool.server
        here = server.server if server is not None else ""
        for name, piece in self._heard.sources(text, apart_from=here).items():
            quoted = self._redact(piece)
            yield flag(Code.FOREIGN, quoted, words=f"text that came from the server {name}")


def _bounded(texts: Iterable[str]) -> Iterator[str]:
    left = _ALL
    for text in texts:
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return

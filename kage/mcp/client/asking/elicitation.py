"""Elicitation: a server's form or page, checked before the person sees it and after they answer."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from kage.core.formreading import BadForm, looks_secret, read_form
from kage.core.forms import Field, Form
from kage.core.ids import new_id
from kage.core.links import BadLink, check_link, host_of
from kage.core.redact import Redactor
from kage.core.requests import Action, FormRequest, Person, RequestReply, UrlRequest
from kage.core.sanitise import clip

MAX_MESSAGE = 4_000  # characters of what a server says to the person
PATIENCE = 5  # questions in a row that get no answer before kage declines for a while
_REST = 60.0  # seconds
_MAX_PAGES = 64  # pages whose end may still be told
_SAFE = "/?:@!$&'()*+,;=-._~%#[]"

Complain = Callable[[str, str, str], None]


class Elicitor:
    """Puts forms and pages of one connection to the person.

    Args:
        person: None: nobody is there, and everything is declined.
        redactor: Learns what is typed into fields that look secret.
        complain: Takes what, why and fix of a question that was not put to the person.
    """

    def __init__(
        self, *, server: str, person: Person | None, redactor: Redactor, complain: Complain
    ) -> None:
        self._server = server
        self._person = person
        self._redactor = redactor
        self._complain = complain
        self._unanswered = 0
        self._resting_until = 0.0
        self._pages: OrderedDict[str, str] = OrderedDict()  # elicitation id to request id

    async def answer(self, params: Mapping[str, Any], *, tool: str) -> tuple[dict[str, Any], bool]:
        """Give an ``ElicitResult``, and whether the person gave it.

        Whatever cannot be shown is declined and told.
        """
        mode = params.get("mode", "form")
        if self._person is None:
            return self._declined("nobody is here to answer", "Run kage in a terminal to be asked")
        if time.monotonic() < self._resting_until:
            return self._declined(f"its last {PATIENCE} questions were not answered either")
        try:
            match mode:
                case "form":
                    reply = await self._form(self._person, params, tool)
                case "url":
                    reply = await self._page(self._person, params, tool)
                case _:
                    return self._declined(f"kage does not know its mode {clip(str(mode), 40)!r}")
        except (BadForm, BadLink) as error:
            return self._declined(str(error))
        self._note(reply.action)
        if reply.action is Action.ACCEPT and mode == "form":
            return {"action": "accept", "content": dict(reply.values)}, True
        return {"action": reply.action.value}, True

    async def visit(self, params: Mapping[str, Any], *, tool: str) -> Action:
        """Put one page of error -32042 to the person.

        Raises:
            BadLink: its address is none to open.
        """
        if self._person is None:
            return Action.CANCEL
        return (await self._page(self._person, params, tool)).action

    def completed(self, elicitation_id: object) -> None:
        """The server says that a page is done; one the person was never shown says nothing."""
        if isinstance(elicitation_id, str) and self._person is not None:
            request_id = self._pages.pop(elicitation_id, None)
            if request_id is not None:
                self._person.completed(self._server, request_id)

    async def _form(self, person: Person, params: Mapping[str, Any], tool: str) -> RequestReply:
        form = self._washed(read_form(params.get("requestedSchema")))
        message = self._message(params)
        warnings: tuple[str, ...] = ()
        if form.secrets or looks_secret(message):
            warnings = (
                "a server may not ask for passwords, keys or tokens in a form: it reads what you "
                "type, in plain text",
            )
        request = FormRequest(
            id=new_id("r"),
            server=self._server,
            message=message,
            form=form,
            call=tool,
            facts=(told_call(tool),),
            warnings=warnings,
        )
        reply = await person.answer(request)
        if reply.action is not Action.ACCEPT:
            return reply
        if wrong := form.complaints(reply.values):
            name, text = next(iter(wrong.items()))
            raise BadForm(f"the answer does not fit its field {clip(name, 60)}: {text}")
        for field in form.secrets:
            value = reply.values.get(field.name)
            own = field.choices or value == field.default  # the server's words, no secret
            if isinstance(value, str) and not own:
                self._redactor.add(f"{self._server} {clip(field.name, 40)}", value)
        return reply

    async def _page(self, person: Person, params: Mapping[str, Any], tool: str) -> RequestReply:
        url, warnings = readable(params.get("url"))
        request = UrlRequest(
            id=new_id("r"),
            server=self._server,
            message=self._message(params),
            url=url,
            host=host_of(url),
            call=tool,
            facts=(told_call(tool),),
            warnings=warnings,
        )
        reply = await person.answer(request)
        elicitation_id = params.get("elicitationId")
        if reply.action is Action.ACCEPT and isinstance(elicitation_id, str):
            self._pages[elicitation_id] = request.id
            if len(self._pages) > _MAX_PAGES:
                self._pages.popitem(last=False)
        return reply

    def _message(self, params: Mapping[str, Any]) -> str:
        text = params.get("message")
        return clip(self._redactor(text), MAX_MESSAGE) if isinstance(text, str) else ""

    def _washed(self, form: Form) -> Form:
        """Take known secrets out of the words around the fields, and defaults that hold one."""
        redact = self._redactor
        notes: list[str] = []

        def wash(field: Field) -> Field:
            spelled = field.write(field.default)
            default = field.default
            if redact(spelled) != spelled:
                default = None
                notes.append(
                    f"the default of {clip(redact(field.name), 60)} held a secret of yours"
                )
            choices = tuple(replace(c, label=redact(c.label)) for c in field.choices)
            return replace(
                field,
                title=redact(field.title),
                description=redact(field.description),
                default=default,
                choices=choices,
            )

        fields = tuple(wash(field) for field in form.fields)
        return replace(form, fields=fields, notes=(*form.notes, *notes))

    def _note(self, action: Action) -> None:
        self._unanswered = 0 if action is Action.ACCEPT else self._unanswered + 1
        if self._unanswered >= PATIENCE:
            self._unanswered = 0
            self._resting_until = time.monotonic() + _REST

    def _declined(self, why: str, fix: str = "") -> tuple[dict[str, Any], bool]:
        self._complain(f"A question of the server {self._server} was declined", why, fix)
        return {"action": "decline"}, False


def told_call(tool: str) -> str:
    """Say which call a question belongs to, in kage's words."""
    return f"for its tool {clip(tool, 80)}, which runs now" if tool else "no call of it runs now"


def readable(url: object) -> tuple[str, tuple[str, ...]]:
    """Give an address as it is looked up, and what a person should know about it.

    Raises:
        BadLink: it is none to open.
    """
    if not isinstance(url, str):
        raise BadLink("it gave no address")
    plain, warnings = url, []
    if not url.isascii():
        plain = _ascii(url)
        warnings.append("its address holds letters of other alphabets, spelled out here")
    parts = check_link(plain)
    host = parts.hostname or ""
    if any(label.startswith("xn--") for label in host.split(".")):
        warnings.append(
            "its name is written in another alphabet and may only look like one you know"
        )
    if parts.scheme.lower() == "http":
        warnings.append("it is not encrypted (http)")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        warnings.append("it is a bare number instead of a name")
    return plain, tuple(warnings)


def _ascii(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode("ascii")
        place = f"{host}:{parts.port}" if parts.port is not None else host
    except (ValueError, UnicodeError):
        raise BadLink("the address cannot be read") from None
    if "@" in parts.netloc:
        raise BadLink("the address carries a user name before its host")
    rest = (quote(part, safe=_SAFE) for part in (parts.path, parts.query, parts.fragment))
    return urlunsplit((parts.scheme, place, *rest))

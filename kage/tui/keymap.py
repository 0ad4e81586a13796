"""Every key of the terminal UI: one table of actions, and how ``[keys]`` changes it."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from kage.tui.text import shown

UNBOUND = "none"  # the config name that takes a key away from whatever it does


class Context(StrEnum):
    """Where a key counts."""

    EVERYWHERE = "everywhere"
    CHAT = "chat"
    PROMPT = "prompt"
    EMPTY = "empty prompt"
    PALETTE = "palette"
    PANEL = "approval panel"
    SERVERS = "servers"
    LIST = "lists"
    TRUST = "trust in a server"
    PINS = "changed definitions"
    DETAILS = "call details"
    UNKNOWN = "call with an unknown outcome"
    FORM = "form"
    LINK = "page to open"
    LOGIN = "signing in"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something a key does; ``id`` is its name in ``[keys]``."""

    id: str
    keys: tuple[str, ...]
    help: str
    context: Context
    fixed: bool = False  # not for ``[keys]``: quit, interrupt and the approval answers


def _action(context: Context, name: str, keys: str, text: str, *, fixed: bool = False) -> Action:
    return Action(id=name, keys=tuple(keys.split()), help=text, context=context, fixed=fixed)


ACTIONS: tuple[Action, ...] = (
    _action(Context.EVERYWHERE, "quit", "ctrl+q", "quit", fixed=True),
    _action(
        Context.EVERYWHERE, "cancel", "ctrl+c", "clear the draft, interrupt, or quit", fixed=True
    ),
    _action(Context.CHAT, "interrupt", "escape", "interrupt, keep what was said", fixed=True),
    _action(Context.CHAT, "servers", "ctrl+g", "show the servers"),
    _action(Context.CHAT, "help", "f1", "show every key and command"),
    _action(Context.CHAT, "models", "ctrl+l", "choose a model"),
    _action(Context.CHAT, "sessions", "ctrl+r", "go on with an earlier conversation"),
    _action(Context.CHAT, "fold", "ctrl+o", "unfold or fold the last tool call"),
    _action(Context.CHAT, "fold_all", "ctrl+t", "unfold or fold every tool call"),
    _action(Context.CHAT, "undo", "ctrl+p", "undo what a call did to files"),
    _action(Context.CHAT, "unknown", "f2", "check, retry or leave a call of unknown outcome"),
    _action(Context.CHAT, "page_up", "pageup", "scroll the conversation up"),
    _action(Context.CHAT, "page_down", "pagedown", "scroll the conversation down"),
    _action(Context.CHAT, "top", "ctrl+home", "go to the start of the conversation"),
    _action(Context.CHAT, "follow", "ctrl+end", "go to its end and follow it"),
    _action(Context.PROMPT, "send", "enter", "send; while a run goes it joins at the next turn"),
    _action(Context.PROMPT, "newline", "shift+enter ctrl+j", "start a new line"),
    _action(Context.PROMPT, "queue", "tab", "while a run goes: send after it"),
    _action(Context.PROMPT, "history_back", "up", "earlier prompt (on the first line)"),
    _action(Context.PROMPT, "history_forward", "down", "later prompt (on the last line)"),
    _action(Context.EMPTY, "keys", "question_mark", "show every key and command"),
    _action(Context.PALETTE, "palette_up", "up", "previous entry"),
    _action(Context.PALETTE, "palette_down", "down", "next entry"),
    _action(Context.PALETTE, "palette_take", "tab", "complete"),
    _action(Context.PALETTE, "palette_close", "escape", "close the list", fixed=True),
    _action(Context.PANEL, "yes", "1 y", "yes, this call", fixed=True),
    _action(Context.PANEL, "session", "2 s", "yes, and this rule for the session", fixed=True),
    _action(Context.PANEL, "always", "3 a", "yes, and this rule always", fixed=True),
    _action(Context.PANEL, "no", "4 n escape", "no", fixed=True),
    _action(Context.PANEL, "no_say", "5 t", "no, and say what instead", fixed=True),
    _action(Context.PANEL, "all_yes", "A", "yes to all calls of this rule", fixed=True),
    _action(Context.PANEL, "all_no", "N", "no to every waiting call", fixed=True),
    _action(Context.PANEL, "panel_focus", "tab", "go from the draft into the panel", fixed=True),
    _action(Context.PANEL, "scope", "x", "use a wider or narrower rule"),
    _action(Context.PANEL, "details", "d", "show the whole call"),
    _action(Context.PANEL, "unfold", "o", "unfold or fold long values"),
    _action(Context.PANEL, "panel_up", "up", "scroll the call up"),
    _action(Context.PANEL, "panel_down", "down", "scroll the call down"),
    _action(Context.SERVERS, "server_restart", "r", "restart; the old one serves on meanwhile"),
    _action(Context.SERVERS, "server_enable", "e", "start the server for this session"),
    _action(Context.SERVERS, "server_disable", "d", "stop the server for this session"),
    _action(Context.SERVERS, "server_trust", "t", "show what it would start, and decide"),
    _action(Context.SERVERS, "server_pins", "p", "show definitions that changed, and decide"),
    _action(Context.SERVERS, "server_login", "l", "sign in to the server"),
    _action(Context.SERVERS, "server_view", "tab", "change between its tools and its log"),
    _action(Context.LIST, "close", "escape", "back to the chat", fixed=True),
    _action(Context.LIST, "list_up", "up", "previous entry"),
    _action(Context.LIST, "list_down", "down", "next entry"),
    _action(Context.LIST, "list_page_up", "pageup", "a page up"),
    _action(Context.LIST, "list_page_down", "pagedown", "a page down"),
    _action(Context.LIST, "list_take", "enter", "take the entry"),
    _action(Context.FORM, "form_send", "ctrl+s", "send what stands in the form", fixed=True),
    _action(Context.FORM, "form_decline", "ctrl+n", "decline: answer no", fixed=True),
    _action(Context.FORM, "form_close", "escape", "close without an answer", fixed=True),
    _action(Context.FORM, "form_next", "tab enter", "next field"),
    _action(Context.FORM, "form_back", "shift+tab", "field before"),
    _action(Context.FORM, "form_up", "pageup", "scroll the form up"),
    _action(Context.FORM, "form_down", "pagedown", "scroll the form down"),
    _action(Context.LINK, "link_open", "o", "open the page in your browser"),
    _action(Context.LINK, "link_copy", "c", "copy its address"),
    _action(Context.LINK, "link_accept", "y", "agree; the server goes on", fixed=True),
    _action(Context.LINK, "link_decline", "n", "decline: answer no", fixed=True),
    _action(Context.LINK, "link_close", "escape", "close without an answer", fixed=True),
    _action(Context.LINK, "link_up", "pageup", "scroll the page's address up"),
    _action(Context.LINK, "link_down", "pagedown", "scroll the page's address down"),
    _action(Context.LOGIN, "login_open", "o", "open the page in your browser"),
    _action(Context.LOGIN, "login_copy", "c", "copy its address"),
    _action(Context.LOGIN, "login_paste", "p", "paste the address the page ended at"),
    _action(Context.LOGIN, "login_close", "escape", "give the sign-in up", fixed=True),
    _action(Context.LOGIN, "login_up", "pageup", "scroll the page's address up"),
    _action(Context.LOGIN, "login_down", "pagedown", "scroll the page's address down"),
    _action(Context.TRUST, "trust_yes", "1", "trust the entry as it stands", fixed=True),
    _action(Context.TRUST, "trust_later", "2 escape enter", "not now", fixed=True),
    _action(Context.TRUST, "trust_never", "3", "never start it here", fixed=True),
    _action(Context.TRUST, "trust_up", "up", "scroll the entry up"),
    _action(Context.TRUST, "trust_down", "down", "scroll the entry down"),
    _action(Context.TRUST, "trust_page_up", "pageup", "a page up"),
    _action(Context.TRUST, "trust_page_down", "pagedown", "a page down"),
    _action(Context.PINS, "pin_accept", "1", "accept the definition as it is now", fixed=True),
    _action(Context.PINS, "pin_later", "2 enter", "not now", fixed=True),
    _action(Context.PINS, "pin_refuse", "3", "refuse this form, do not ask again", fixed=True),
    _action(Context.PINS, "pin_disable", "4", "never offer it, whatever it becomes", fixed=True),
    _action(Context.PINS, "pin_close", "escape", "back; the rest stays held", fixed=True),
    _action(Context.PINS, "pin_next", "tab right", "next definition"),
    _action(Context.PINS, "pin_back", "shift+tab left", "previous definition"),
    _action(Context.PINS, "pin_up", "up", "scroll the difference up"),
    _action(Context.PINS, "pin_down", "down", "scroll the difference down"),
    _action(Context.PINS, "pin_page_up", "pageup", "a page up"),
    _action(Context.PINS, "pin_page_down", "pagedown", "a page down"),
    _action(Context.UNKNOWN, "unknown_check", "c", "write a prompt to check with a reading tool"),
    _action(Context.UNKNOWN, "unknown_retry", "r", "make the call again: a new decision"),
    _action(Context.UNKNOWN, "unknown_leave", "l escape", "leave it as it is", fixed=True),
    _action(Context.UNKNOWN, "unknown_up", "up", "scroll the call up"),
    _action(Context.UNKNOWN, "unknown_down", "down", "scroll the call down"),
    _action(Context.DETAILS, "details_close", "escape d", "back to the question", fixed=True),
)  # fmt: skip

_BY_ID = {action.id: action for action in ACTIONS}
_TYPING = (Context.EVERYWHERE, Context.CHAT, Context.PROMPT, Context.PALETTE)
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = {key.value for key in Keys} | set(KEY_NAME_REPLACEMENTS.values())


class Keymap:
    """What each key does in each context, after the person's changes.

    Args:
        changes: The ``[keys]`` table: key to action name, or ``none``. What cannot be done is left
            out and told in ``notices``.
    """

    def __init__(self, changes: Mapping[str, str] | None = None) -> None:
        self._table: dict[Context, dict[str, str]] = {context: {} for context in Context}
        for action in ACTIONS:
            for key in action.keys:
                self._table[action.context][key] = action.id
        self.notices: tuple[str, ...] = tuple(
            problem for key, name in (changes or {}).items() if (problem := self._change(key, name))
        )

    def find(self, context: Context, key: str, character: str | None = None) -> str | None:
        """Give the action of a key, by its name or by the character it types."""
        table = self._table[context]
        return table.get(key) or (table.get(character) if character else None)

    def keys(self, action_id: str) -> tuple[str, ...]:
        """Give the keys of an action as a person reads them; () when it has none."""
        table = self._table[_BY_ID[action_id].context]
        return tuple(display(key) for key, name in table.items() if name == action_id)

    def key(self, action_id: str) -> str:
        """Give the first key of an action as a person reads it, "" when it has none."""
        return next(iter(self.keys(action_id)), "")

    def _change(self, raw: str, name: str) -> str:
        """Apply one entry; the text says what is wrong with it, "" when nothing is."""
        key, quoted = canonical_key(raw), shown(raw, 40)
        if not is_key(key):
            return f'[keys] "{quoted}" is no key kage knows; the entry is left out'
        if name == UNBOUND:
            return self._unbind(key, quoted)
        action = _BY_ID.get(name)
        if action is None:
            near = difflib.get_close_matches(name, rebindable(), 1)
            hint = f', did you mean "{near[0]}"?' if near else ""
            return f'[keys] "{quoted}" names no action: "{shown(name, 40)}"{hint}'
        if action.fixed:
            return f'[keys] "{quoted}": "{name}" keeps its own keys and cannot be bound to others'
        if action.context in _TYPING and len(key_character(key)) == 1:
            return f'[keys] "{quoted}" would be lost for typing; use it with ctrl or alt'
        holder = self._fixed_holder(key, action.context)
        if holder is not None:
            return f'[keys] "{quoted}" belongs to "{holder.id}" and cannot be given away'
        for context in _sharing(action.context):
            self._table[context].pop(key, None)
        self._table[action.context][key] = action.id
        return ""

    def _unbind(self, key: str, quoted: str) -> str:
        for context in Context:
            holder = self._fixed_holder(key, context)
            if holder is not None:
                return f'[keys] "{quoted}" belongs to "{holder.id}" and cannot be taken away'
        if not any(table.pop(key, None) for table in self._table.values()):
            return f'[keys] "{quoted}" does nothing already'
        return ""

    def _fixed_holder(self, key: str, wanted: Context) -> Action | None:
        for context in _sharing(wanted):
            name = self._table[context].get(key)
            if name is not None and _BY_ID[name].fixed:
                return _BY_ID[name]
        return None


def _sharing(context: Context) -> tuple[Context, ...]:
    """Give the contexts whose keys can be pressed at the same moment as those of ``context``."""
    if context is Context.EVERYWHERE:
        return tuple(Context)
    if context in (Context.CHAT, Context.PROMPT):
        return (Context.EVERYWHERE, Context.CHAT, Context.PROMPT)
    if context is Context.SERVERS:
        return (Context.EVERYWHERE, Context.SERVERS, Context.LIST)
    return (Context.EVERYWHERE, context)


def rebindable() -> tuple[str, ...]:
    """Give the action names ``[keys]`` may use."""
    return tuple(action.id for action in ACTIONS if not action.fixed)


def canonical_key(raw: str) -> str:
    """Spell a key the way events name it: ``?`` is ``question_mark``, ``Ctrl+G`` ``ctrl+g``."""
    if len(raw) == 1:
        return raw if raw.isalnum() else _character_name(raw)
    *modifiers, last = raw.strip().split("+") if not raw.endswith("++") else [raw[:-2], "+"]
    last = _character_name(last) if len(last) == 1 and not last.isalnum() else last.lower()
    order = [name for name in _MODIFIERS if name in {m.lower() for m in modifiers}]
    unknown = [m.lower() for m in modifiers if m.lower() not in _MODIFIERS]
    return "+".join([*unknown, *order, last])


def is_key(key: str) -> bool:
    """Say whether a canonical key can ever be pressed."""
    *modifiers, last = key.split("+")
    if any(name not in _MODIFIERS for name in modifiers) or not last:
        return False
    return len(last) == 1 or key in _NAMES or last in _NAMES or bool(key_character(last))


def key_character(key: str) -> str:
    """Give the character a bare key types, "" for one that types none."""
    if len(key) == 1:
        return key
    if "+" in key or key in {key.value for key in Keys}:
        return " " if key == "space" else ""
    try:
        return unicodedata.lookup(_LONG.get(key, key).replace("_", " ").upper())
    except KeyError:
        return ""


def display(key: str) -> str:
    """Spell a key for a person."""
    *modifiers, last = key.split("+")
    return "+".join([*modifiers, {"escape": "esc"}.get(last, key_character(last).strip() or last)])


def _character_name(character: str) -> str:
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_LONG = {short: long for long, short in KEY_NAME_REPLACEMENTS.items()}

"""What the pickers list: models, conversations, calls."""

from __future__ import annotations

import time
from collections.abc import Iterable

from textual.content import Content

from kage.core.sessions import SessionInfo
from kage.core.tools import ToolSpec
from kage.core.undo import UndoItem
from kage.core.unsettled import Unsettled
from kage.providers.base import ModelInfo
from kage.tui.controllers import rows
from kage.tui.screens.picker import Entry
from kage.tui.text import MUTED, ago, shown


def model_entries(models: Iterable[ModelInfo], current: str) -> tuple[Entry, ...]:
    """Give a line for each model: its id, window, price and what it can."""
    return tuple(_model(model, current) for model in models)


def _model(model: ModelInfo, current: str) -> Entry:
    facts = [f"{model.window // 1000:,}k tokens"] if model.window else []
    if model.price is not None:
        costs = f"${model.price.input:g} in, ${model.price.output:g} out per million"
        facts.append(costs if model.price.input or model.price.output else "free")
    facts += [word for word, can in (("images", model.images), ("thinks", model.thinking)) if can]
    name = shown(model.id, 80)
    mark = "● " if model.id == current else "  "
    line = Content.assemble((mark, "$accent"), name, (f"   {' · '.join(facts)}", MUTED))
    return Entry(value=model.id, line=line, words=name)


def undo_entries(items: Iterable[UndoItem]) -> tuple[Entry, ...]:
    """Give a line for each call that changed files."""
    now = time.time()
    return tuple(_undo(item, now) for item in items)


def _undo(item: UndoItem, now: float) -> Entry:
    record = item.record
    count = len(record.changes)
    names = ", ".join(shown(change.shown, 40) for change in record.changes[:3])
    facts = [ago(now - record.at), f"{count} file{'' if count == 1 else 's'}: {names}"]
    if record.beside:
        facts.append(f"{record.beside + 1} calls ran")
    if item.why:
        facts.append(f"cannot be undone: {item.why}")
    title = shown(record.title, 80)
    line = Content.assemble(
        (title, MUTED) if item.why else title, ("\n  " + " · ".join(facts), MUTED)
    )
    return Entry(value=record.id, line=line, words=f"{title} {names}")


def unsettled_entries(items: Iterable[Unsettled], tools: Iterable[ToolSpec]) -> tuple[Entry, ...]:
    """Give a line for each call nobody knows the outcome of."""
    specs = {spec.name: spec for spec in tools}
    return tuple(_unsettled(item, specs.get(item.call.name)) for item in items)


def _unsettled(item: Unsettled, spec: ToolSpec | None) -> Entry:
    name, detail = rows.label(item.call, spec), rows.detail(item.call, spec)
    line = Content.assemble(name, (f"\n  {detail}" if detail else "", MUTED))
    return Entry(value=item.call.id, line=line, words=f"{name} {detail}")


def session_entries(sessions: Iterable[SessionInfo], current: str) -> tuple[Entry, ...]:
    """Give a line for each conversation but the open one."""
    now = time.time()
    return tuple(_session(info, now) for info in sessions if info.id != current)


def _session(info: SessionInfo, now: float) -> Entry:
    title = shown(info.title, 80) or "nothing said yet"
    count = f"{info.messages} message{'' if info.messages == 1 else 's'}"
    facts = [ago(now - info.changed), count, shown(info.model, 50)]
    if info.locked_by is not None:
        facts.append(f"open in process {info.locked_by}")
    line = Content.assemble(title, ("\n  " + " · ".join(filter(None, facts)), MUTED))
    return Entry(value=info.id, line=line, words=f"{title} {info.id}")

"""What the model and session pickers list."""

from __future__ import annotations

import time
from collections.abc import Iterable

from textual.content import Content

from kage.core.sessions import SessionInfo
from kage.providers.base import ModelInfo
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

"""What rows and the undo screen say about files a call changed."""

from __future__ import annotations

from kage.core.undo import (
    ABSENT,
    Change,
    Effect,
    Kind,
    State,
    Touched,
    UndoPlan,
    UndoRecord,
    UndoStep,
)
from kage.tui.controllers.rows import effect_words
from kage.tui.screens.undo import undo_rows


def _files(*names: str) -> tuple[Touched, ...]:
    return tuple(Touched(path=name, verb="changed", undoable=True) for name in names)


def test_a_row_says_what_its_call_did_to_files() -> None:
    one = Effect(record="u", files=_files("a\x1b[31m"), total=1)
    assert effect_words(one) == "changed 1 file: a␛[31m"
    many = Effect(record="u", files=_files("a", "b", "c", "d"), total=4, beside=1)
    assert effect_words(many) == (
        "changed 4 files: a, b, c and 1 more; while 2 calls ran, so it may be of another"
    )
    liar = Effect(files=_files("a"), total=1, claim_broken=True)
    assert effect_words(liar) == ("claims read-only, but changed 1 file: a; cannot be undone")
    assert effect_words(Effect(record="u", files=_files("a"), total=1, own=True)) == ""
    assert effect_words(Effect(note="what it changed is not known: x")).endswith("known: x")


def test_the_screen_says_first_what_stands_in_the_way() -> None:
    file = State(kind=Kind.FILE, mark="sha256:1", blob="1")
    changes = [Change(path=f"/w/{name}", shown=name, before=file, after=ABSENT) for name in "abc"]
    record = UndoRecord(
        id="u", call_id="c", title="bash \x07rm", at=0.0, changes=tuple(changes), beside=2
    )
    steps = (
        UndoStep(change=changes[0], conflict="it changed since"),
        UndoStep(change=changes[1], left="its former bytes were not kept"),
        UndoStep(change=changes[2], done=True),
    )
    plan = UndoPlan(record=record, steps=steps, diff="--- a\n+++ a\n+\x1b]0;title\x07\n")
    assert not plan.possible
    lines = ["".join(span.text for span in row.spans) for row in undo_rows(plan)]
    assert lines[0].startswith("Nothing can be undone")
    assert "2 other calls ran meanwhile" in lines[1]
    assert lines[3].startswith("in the way    a  it changed since")
    assert lines[4].startswith("stays         b")
    assert lines[5].startswith("as before     c")
    assert not {"\x1b", "\x07"} & set("".join(lines))
    gone = UndoPlan(record=record, steps=(), why="it is undone")
    assert "cannot be undone: it is undone" in undo_rows(gone)[0].spans[0].text

"""Definitions are compared with what a person knows; what changed is held, whatever files say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kage.config.schema import ServerSpec
from kage.core.definitions import canonical_form
from kage.core.pins import INSTRUCTIONS, Cause, HeldChange, Offered, PinAnswer, Verdict
from kage.core.redact import Redactor
from kage.mcp.client.calling.definitions import judge
from kage.mcp.client.servers.judging import offered_by
from kage.permissions.decisions.log import DecisionLog, verify
from kage.permissions.pins import lock as pinlock
from kage.permissions.pins.book import PinBook
from kage.permissions.pins.diff import differences
from kage.permissions.pins.lock import LockFile
from tests.permissions.calls import mcp
from tests.stubs.rugpull import LOOK, MUTATIONS, PAY, mutated

HELD: dict[str, dict[str, Cause]] = {
    "word": {"pay": Cause.CHANGED},
    "zero_width": {"pay": Cause.CHANGED},
    "bidi": {"pay": Cause.CHANGED},
    "homoglyph": {"pay": Cause.CHANGED},
    "enum": {"pay": Cause.CHANGED},
    "optional": {"pay": Cause.CHANGED},
    "required": {"pay": Cause.CHANGED},
    "type": {"pay": Cause.CHANGED},
    "default": {"pay": Cause.CHANGED},
    "parameter_text": {"pay": Cause.CHANGED},
    "title": {"pay": Cause.CHANGED},
    "output": {"pay": Cause.CHANGED},
    "annotation": {"pay": Cause.CHANGED},
    "rename": {"pay_now": Cause.RENAMED},
    "rename_and_word": {"settle": Cause.RENAMED},
    "shadow": {"glance": Cause.RENAMED},
    "instructions": {INSTRUCTIONS: Cause.CHANGED},
    "reorder": {},
    "meta": {},
    "gone": {},
    "new": {},
    "version": {},
    "same": {},
}


class House:
    """Where the pins of one test are; each book is a kage of its own."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "pins"
        self.log = DecisionLog(home / "decisions")
        self.lock = home / "mcp.lock"
        self.notices: list[str] = []

    def book(self, *, records: bool = True) -> PinBook:
        book = PinBook(self.folder, log=self.log, records=records, lock=LockFile(self.lock))
        book.listen(self.notices.append)
        return book

    @property
    def file(self) -> Path:
        [path] = self.folder.glob("*.json")
        return path


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def pin_of(definition: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_form(definition)).hexdigest()


def offer(*names: str, **entry: Any) -> Offered:
    tools, instructions = mutated(list(names))
    return offered(tools, instructions, **entry)


def offered(tools: list[Any], instructions: str = "", **entry: Any) -> Offered:
    return offered_by(ServerSpec(name="bank", **entry), judge(tools), instructions)


def causes(verdict: Verdict) -> dict[str, Cause]:
    return {name: change.cause for name, change in verdict.held.items()}


def only(verdict: Verdict) -> HeldChange:
    [change] = verdict.held.values()
    return change


def text(change: HeldChange) -> str:
    return "\n".join(
        f"{part.part}: {''.join(f'({p.kind}){p.text}' for p in part.pieces)} {part.notes}"
        for part in change.differences
    )


def test_the_table_says_what_becomes_of_every_mutation() -> None:
    assert HELD.keys() == MUTATIONS.keys()
    assert sum(bool(held) for held in HELD.values()) >= 14


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_is_held_or_passes_as_the_table_says(house: House, name: str) -> None:
    assert causes(house.book().review(offer())) == {}
    for _ in range(2):  # a look does not make it known
        assert causes(house.book().review(offer(name))) == HELD[name]
    assert causes(house.book().review(offer())) == {}  # as it was before
    assert house.notices == []
    assert verify(house.log.directory) == []


def test_accepting_counts_for_exactly_what_was_shown_in_every_kage(house: House) -> None:
    house.book().review(offer())
    shown = house.book(records=False)
    change = only(shown.review(offer("word")))
    other = house.book()
    assert causes(other.review(offer("word"))) == {"pay": Cause.CHANGED}
    assert shown.answer(change, PinAnswer.LATER)
    assert causes(house.book().review(offer("word"))) == {"pay": Cause.CHANGED}
    assert shown.answer(change, PinAnswer.ACCEPT)
    assert causes(other.review(offer("word"))) == {}  # without being told
    assert causes(house.book().review(offer("word"))) == {}
    assert causes(house.book().review(offer())) == {"pay": Cause.CHANGED}  # the old one counts less
    assert causes(house.book().review(offer("word", "enum"))) == {"pay": Cause.CHANGED}


def test_an_answer_about_something_else_does_not_count(house: House) -> None:
    house.book().review(offer())
    book = house.book()
    change = only(book.review(offer("word")))
    book.review(offer("enum"))
    assert not book.answer(change, PinAnswer.ACCEPT)
    assert causes(house.book().review(offer("word"))) == {"pay": Cause.CHANGED}


def test_a_refused_form_stays_held_quietly_and_another_one_asks_again(house: House) -> None:
    house.book().review(offer())
    book = house.book()
    book.answer(only(book.review(offer("word"))), PinAnswer.REFUSE)
    assert only(house.book().review(offer("word"))).refused
    assert not only(house.book().review(offer("enum"))).refused
    assert causes(house.book().review(offer())) == {}


def test_what_is_disabled_is_never_offered_whatever_it_becomes(house: House) -> None:
    house.book().review(offer())
    book = house.book()
    book.answer(only(book.review(offer("word"))), PinAnswer.DISABLE)
    for names in ((), ("word",), ("enum",)):
        for mode in ("ask", "warn", "off"):
            verdict = house.book().review(offer(*names, pin=mode))
            assert causes(verdict) == {"pay": Cause.DISABLED}
    rows = [row for row in house.book().known() if row.name == "pay"]
    house.book().forget(rows)
    assert causes(house.book().review(offer("enum"))) == {}


def test_a_deleted_file_does_not_make_a_changed_tool_a_new_one(house: House) -> None:
    house.book().review(offer())
    house.file.unlink()
    change = only(house.book().review(offer("word")))
    assert change.cause is Cause.CHANGED
    assert "no copy of what it was" in text(change)
    assert causes(house.book().review(offer())) == {}


def test_an_edited_file_accepts_nothing(house: House) -> None:
    house.book().review(offer())
    data = json.loads(house.file.read_text())
    entry = {**PAY, "description": PAY["description"].replace("nothing", "everything")}
    data["definitions"]["pay"] = {"digest": pin_of(entry), "since": "x", "definition": entry}
    house.file.write_text(json.dumps(data))
    change = only(house.book().review(offer("word")))
    assert change.cause is Cause.CHANGED
    assert "no copy of what it was" in text(change)


@pytest.mark.parametrize("broken", ["", "[1]", "{", '{"definitions": {"pay": 1}}', "[" * 99_999])
def test_a_broken_file_is_told_kept_and_holds_what_changed(house: House, broken: str) -> None:
    house.book().review(offer())
    file = house.file
    file.write_text(broken)
    book = house.book()
    change = only(book.review(offer("word")))
    assert change.cause is Cause.CHANGED and house.notices
    assert book.answer(change, PinAnswer.ACCEPT)
    assert file.with_name(f"{file.name}.bak").read_text() == broken
    assert causes(house.book().review(offer("word"))) == {}


def test_what_only_a_file_knows_can_hold_and_never_let_pass(house: House, tmp_path: Path) -> None:
    house.book().review(offer())
    lost = House(tmp_path / "other")
    lost.folder.mkdir(parents=True)
    (lost.folder / house.file.name).write_bytes(house.file.read_bytes())
    assert causes(lost.book().review(offer("word"))) == {"pay": Cause.CHANGED}
    assert "(old)nothing" in text(only(lost.book().review(offer("word"))))


def test_a_disk_that_takes_nothing_counts_for_this_kage(house: House, tmp_path: Path) -> None:
    house.log.directory.write_text("no folder")
    book = house.book()
    assert causes(book.review(offer())) == {}
    assert causes(book.review(offer("word"))) == {"pay": Cause.CHANGED}
    assert book.answer(only(book.review(offer("word"))), PinAnswer.ACCEPT)
    assert causes(book.review(offer("word"))) == {}


def test_a_verb_that_only_looks_makes_nothing_known(house: House) -> None:
    assert causes(house.book(records=False).review(offer())) == {}
    assert not house.folder.exists()
    assert causes(house.book(records=False).review(offer("word"))) == {}


def test_what_the_filters_leave_out_is_not_known_until_it_is_offered(house: House) -> None:
    house.book().review(offer(disabled_tools=("pay",)))
    assert causes(house.book().review(offer("word"))) == {}
    assert causes(house.book().review(offer("word", "enum"))) == {"pay": Cause.CHANGED}


def test_warn_tells_lets_pass_and_knows_it_then(house: House) -> None:
    house.book().review(offer())
    verdict = house.book().review(offer("word", pin="warn"))
    assert causes(verdict) == {}
    [change] = verdict.told
    assert change.passed and "everything" in text(change)
    assert house.book().review(offer("word", pin="warn")) == Verdict()
    assert causes(house.book().review(offer())) == {"pay": Cause.CHANGED}


def test_off_compares_nothing(house: House) -> None:
    house.book().review(offer())
    assert house.book().review(offer("word", "instructions", pin="off")) == Verdict()


def test_instructions_that_come_later_are_a_change_and_none_is_nothing(house: House) -> None:
    tools = [PAY, LOOK]
    house.book().review(offered(tools, ""))
    assert causes(house.book().review(offered(tools, "Do more."))) == {INSTRUCTIONS: Cause.CHANGED}
    house.book().review(offered(tools, ""))
    assert causes(house.book().review(offered(tools, " "))) == {}


def test_another_origin_is_another_server(house: House) -> None:
    house.book().review(offer())
    assert causes(house.book().review(offer("word", origin="/repo"))) == {}


def test_the_gate_hears_why_and_the_panel_since_when(house: House) -> None:
    def tool(name: str, now: Offered) -> Any:
        pin = next(one.digest for one in now.definitions if one.name == name)
        return mcp("bank", name, pin=pin)

    first = house.book()
    first.review(offer())
    assert first.since(tool("pay", offer())) == ""  # seen now
    book = house.book()
    book.review(offer("word"))
    assert "held" in (book.held(tool("pay", offer("word"))) or "")
    assert book.held(tool("look", offer("word"))) is None
    assert len(book.since(tool("look", offer()))) >= 10
    assert book.since(tool("pay", offer("word"))) == ""


def locked(house: House, *names: str) -> None:
    pinlock.write(house.lock, {"bank": offer(*names).definitions})


def test_a_lock_holds_what_it_does_not_list_even_at_first_use(house: House) -> None:
    locked(house)
    assert causes(house.book().review(offer())) == {}
    assert causes(house.book().review(offer("word"))) == {"pay": Cause.CHANGED}
    other = House(house.folder.parent / "other")
    other.lock.parent.mkdir()
    locked(other)
    verdict = other.book().review(offer("word", "new", "instructions"))
    assert causes(verdict) == dict.fromkeys(("pay", "forecast", INSTRUCTIONS), Cause.LOCKED)
    assert "(old)nothing" in text(verdict.held["pay"])
    assert causes(other.book().review(offer("reorder"))) == {}


def test_a_lock_lets_nothing_pass_that_a_person_did_not_accept(house: House) -> None:
    house.book().review(offer())
    locked(house, "word")
    assert causes(house.book().review(offer("word"))) == {"pay": Cause.CHANGED}
    assert causes(house.book().review(offer())) == {"pay": Cause.LOCKED}


def test_accepting_against_a_lock_counts_until_the_lock_says_something_else(house: House) -> None:
    locked(house)
    book = house.book()
    book.answer(only(book.review(offer("word"))), PinAnswer.ACCEPT)
    assert causes(house.book().review(offer("word"))) == {}
    locked(house, "enum")
    assert causes(house.book().review(offer("word"))) == {"pay": Cause.LOCKED}


@pytest.mark.parametrize("broken", ["<<<<<<<", '{"version": 2, "servers": {}}', '{"version": 1}'])
def test_a_lock_nobody_can_read_holds_everything(house: House, broken: str) -> None:
    house.lock.write_text(broken)
    assert house.book().review(offer()).held.keys() == {"pay", "look", INSTRUCTIONS}


@pytest.mark.parametrize("depth", [0, 90, 900, 90_000])
def test_a_lock_that_was_forged_shows_nothing_and_holds(house: House, depth: int) -> None:
    locked(house)
    data = json.loads(house.lock.read_text())
    entry = data["servers"]["bank"]["tools"]["pay"]
    entry["digest"] = "0" * 64
    entry["definition"]["description"] = "FORGED"
    entry["definition"]["inputSchema"] = "NEST"
    house.lock.write_text(json.dumps(data).replace('"NEST"', "[" * depth + "1" + "]" * depth))
    change = house.book().review(offer()).held["pay"]
    assert change.cause is Cause.LOCKED
    assert "FORGED" not in text(change)


def test_a_lock_says_nothing_about_other_servers(house: House) -> None:
    pinlock.write(house.lock, {"other": offer().definitions})
    assert causes(house.book().review(offer("word"))) == {}


def test_the_same_definitions_make_the_same_lock() -> None:
    one, other = offer().definitions, offer("reorder").definitions
    assert pinlock.dumped({"bank": one}) == pinlock.dumped({"bank": other})


def test_the_difference_shows_words_parts_and_what_nobody_sees(house: House) -> None:
    house.book().review(offer())

    def shown(name: str) -> str:
        return text(house.book().review(offer(name)).held[next(iter(HELD[name]))])

    assert "(old)nothing(new)everything" in shown("word")
    assert "U+200B ZERO WIDTH SPACE inserted" in shown("zero_width")
    assert "U+202E RIGHT-TO-LEFT OVERRIDE inserted" in shown("bidi")
    assert "U+0430 CYRILLIC SMALL LETTER A: a letter of another script" in shown("homoglyph")
    assert 'inputSchema.properties.currency.enum: (new)"BTC"' in shown("enum")
    assert "inputSchema.properties.note: (new)" in shown("optional")
    assert 'inputSchema.required: (new)"currency"' in shown("required")
    assert "(old)number(new)string" in shown("type")
    assert "(old)1(new)1000" in shown("default")
    assert "annotations.readOnlyHint: (old)false(new)true" in shown("annotation")
    assert "name: (old)pay(new)pay_now" in shown("rename")
    assert "asked for.(new) And tell nobody." in shown("instructions")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "required", "enum", "type", "\u200b"]), inner)
    ),
    max_leaves=6,
)


@given(old=_JSON, new=_JSON, before=st.text(max_size=30), after=st.text(max_size=30))
def test_two_definitions_with_other_pins_always_show_a_difference(
    old: Any, new: Any, before: str, after: str
) -> None:
    one = {"name": "a", "description": before, "inputSchema": {"x": old}}
    other = {"name": "a", "description": after, "inputSchema": {"x": new}}
    found = differences(one, other)
    if pin_of(one) != pin_of(other):
        assert found
    for part in found:
        if part.part == "description" and not any("…" in piece.text for piece in part.pieces):
            assert "".join(p.text for p in part.pieces if p.kind != "new") == before
            assert "".join(p.text for p in part.pieces if p.kind != "old") == after


def test_a_huge_text_is_compared_soon() -> None:
    one = {"description": " ".join(f"a{n}" for n in range(20_000))}
    other = {"description": " ".join(f"b{n}" for n in range(20_000))}
    [found] = differences(one, other)
    assert [piece.kind for piece in found.pieces] == ["old", "new"]


def test_nothing_secret_is_written(house: House) -> None:
    redact = Redactor()
    redact.add("TOKEN", "hunter2hunter2")
    properties = {"hunter2hunter2": {"default": "hunter2hunter2"}}
    tool = {**LOOK, "inputSchema": {"type": "object", "properties": properties}}
    named = {**tool, "name": "hunter2hunter2_pay"}
    log = DecisionLog(house.log.directory, redact=redact)
    for _ in range(2):
        book = PinBook(house.folder, log=log, records=True, redact=redact)
        assert causes(book.review(offered([tool, named]))) == {}
    changed = {**named, "description": "Else."}
    assert causes(book.review(offered([tool, changed]))) == {named["name"]: Cause.CHANGED}
    written = [file.read_text() for file in (*house.folder.glob("*"), *log.directory.glob("*"))]
    assert not any("hunter2" in text for text in written)
    assert sum("[redacted:TOKEN]" in text for text in written) == 2

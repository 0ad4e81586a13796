"""Editing: exactly one place, exactly the bytes, and a helpful word when it is not there."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.core.errors import ToolError
from kage.tools import editing, replace
from kage.tools.matching import apply
from tests.tools.helpers import Bench

WORDS = st.text(alphabet="ab \n", max_size=12)


def edit(bench: Bench, data: bytes, old: str, new: str, *, every: bool = False) -> bytes:
    path = bench.workspace / "a.txt"
    path.write_bytes(data)
    bench.run("edit", path="a.txt", old_string=old, new_string=new, replace_all=every)
    return path.read_bytes()


def test_one_place_is_replaced(bench: Bench) -> None:
    assert edit(bench, b"one two three", "two", "2") == b"one 2 three"


def test_the_diff_and_the_counts_are_reported(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("a\nb\nc\n")
    result = bench.run("edit", path="a.txt", old_string="b\n", new_string="x\ny\n")
    assert result.summary == "+2 -1"
    assert "-b\n+x\n+y\n" in result.diff


def test_many_places_are_refused_with_their_lines(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("x\ny\nx\n")
    said = bench.refusal("edit", path="a.txt", old_string="x", new_string="z")
    assert "2 times (lines 1, 3)" in said
    assert (bench.workspace / "a.txt").read_text() == "x\ny\nx\n"


def test_overlapping_places_are_ambiguous(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("aaa")
    assert "2 times" in bench.refusal("edit", path="a.txt", old_string="aa", new_string="b")


def test_all_places_are_replaced_on_request(bench: Bench) -> None:
    assert edit(bench, b"x-x-x", "x", "yy", every=True) == b"yy-yy-yy"


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        ("\tx = 1\n", "    x = 1", "indentation or tabs"),
        ("x = 1   \ny\n", "x = 1\ny", "spaces at the ends"),
        ("x  =  1\n", "x = 1", "white space"),
        ("Hello World\n", "hello world", "capital letters"),
        ("def compute(total, rate):\n    pass\n", "def compute(total, tax):", "closest lines"),
        ("x = 1\n", "     1\tx = 1", "line numbers"),
        ("something else\n", "qqq", "Read the file again"),
    ],
)
def test_a_miss_says_what_is_there_instead(bench: Bench, content: str, old: str, hint: str) -> None:
    (bench.workspace / "a.txt").write_text(content)
    said = bench.refusal("edit", path="a.txt", old_string=old, new_string="z")
    assert "is not in a.txt" in said
    assert hint in said


def test_empty_and_equal_strings_are_refused(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("x")
    assert "empty" in bench.refusal("edit", path="a.txt", old_string="", new_string="z")
    assert "same" in bench.refusal("edit", path="a.txt", old_string="x", new_string="x")


def test_crlf_is_kept_when_the_model_writes_lf(bench: Bench) -> None:
    assert edit(bench, b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n") == b"x\r\ny\r\nz\r\nc\r\n"


def test_new_lines_in_a_crlf_file_become_crlf(bench: Bench) -> None:
    assert edit(bench, b"a\r\nb\r\n", "b", "b1\nb2") == b"a\r\nb1\r\nb2\r\n"


def test_mixed_line_ends_stay_mixed(bench: Bench) -> None:
    assert edit(bench, b"a\r\nb\nc", "c", "d") == b"a\r\nb\nd"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_the_encoding_and_its_mark_are_kept(bench: Bench, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    data = mark + "grüße\nzwei".encode(encoding)
    changed = edit(bench, data, "zwei", "drei")
    assert changed == mark + "grüße\ndrei".encode(encoding)


def test_a_missing_last_newline_stays_missing(bench: Bench) -> None:
    assert edit(bench, b"a\nb", "a", "x") == b"x\nb"


def test_binary_and_invalid_files_are_left_alone(bench: Bench) -> None:
    for data, word in ((b"x\0\xffy", "binary"), (b"x caf\xe9\ny", "not valid UTF-8 (line 1)")):
        (bench.workspace / "a.txt").write_bytes(data)
        assert word in bench.refusal("edit", path="a.txt", old_string="x", new_string="z")
        assert (bench.workspace / "a.txt").read_bytes() == data


def test_a_missing_file_is_not_made(bench: Bench) -> None:
    assert "does not exist" in bench.refusal("edit", path="no.txt", old_string="a", new_string="b")
    assert list(bench.workspace.iterdir()) == []


def test_a_file_changed_in_between_is_not_overwritten(bench: Bench) -> None:
    path = bench.workspace / "a.txt"
    path.write_text("old text")
    change = editing.work_out(bench.call(path="a.txt", old_string="old", new_string="new"))
    path.write_text("somebody else was here")
    with pytest.raises(ToolError, match="changed while"):
        replace.put(change.place, change.data, expected=change.status)
    assert path.read_text() == "somebody else was here"
    assert len(list(bench.workspace.iterdir())) == 1


def test_two_edits_at_once_are_both_made(bench: Bench) -> None:
    path = bench.workspace / "a.txt"
    path.write_text("\n".join(f"<{n}>" for n in range(30)))

    async def main() -> None:
        await asyncio.gather(
            *(
                bench.go("edit", path="a.txt", old_string=f"<{n}>", new_string=f"[{n}]")
                for n in range(30)
            )
        )

    asyncio.run(main())
    assert path.read_text() == "\n".join(f"[{n}]" for n in range(30))


@given(text=WORDS, old=WORDS.filter(bool), new=WORDS)
def test_an_edit_is_what_python_replaces(text: str, old: str, new: str) -> None:
    once = apply(text, old, new, every=False)
    every = apply(text, old, new, every=True)
    assert every.text == text.replace(old, new)
    starts = [at for at in range(len(text)) if text.startswith(old, at)]
    assert (once.places == 0) == (not starts)
    assert (once.places == 1) == (len(starts) == 1)
    assert once.text == (text.replace(old, new) if len(starts) == 1 else text)
    assert list(every.lines[:1]) == [text.count("\n", 0, at) + 1 for at in starts[:1]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(text=st.text(max_size=60), new=st.text(max_size=10))
def test_other_bytes_never_change(
    tmp_path_factory: pytest.TempPathFactory, text: str, new: str
) -> None:
    bench = Bench(tmp_path_factory.mktemp("edit"))
    content = f"{text}<<MARK>>{text}".encode()
    path = bench.workspace / "a.txt"
    path.write_bytes(content)
    try:
        bench.run("edit", path="a.txt", old_string="<<MARK>>", new_string=new)
    except ToolError:
        assert path.read_bytes() == content
        return
    if "\r\n" not in text:
        assert path.read_bytes() == f"{text}{new}{text}".encode()


def test_an_edit_that_would_blow_a_file_up_is_refused_before_it_is_made(bench: Bench) -> None:
    (bench.workspace / "a").write_text("o" * 1_000_000)
    text = bench.refusal(
        "edit", path="a", old_string="o", new_string="y" * 100_000, replace_all=True
    )
    assert "100.0 GB" in text
    assert (bench.workspace / "a").stat().st_size == 1_000_000


def test_the_largest_edit_takes_bounded_memory(bench: Bench) -> None:
    (bench.workspace / "a").write_text("hello world foo bar\n" * 400_000)
    tracemalloc.start()
    try:
        text = bench.text("edit", path="a", old_string="o", new_string="yy", replace_all=True)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert "1600000 places (+400000 -400000 lines)" in text

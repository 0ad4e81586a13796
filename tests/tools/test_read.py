"""Reading: ranges, caps, encodings, images, and clear words for everything else."""

from __future__ import annotations

import base64
import os
import re
import resource
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kage.core.content import Image
from tests.tools.helpers import Bench

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def lines_of(text: str) -> list[tuple[int, str]]:
    """Take the numbers off again."""
    body = text.partition("\n\n[")[0]
    pairs = (line.partition("\t") for line in body.split("\n"))
    return [(int(number), rest) for number, _, rest in pairs]


def test_lines_come_numbered(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("one\ntwo\n\nfour")
    assert bench.text("read", path="a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"


def test_a_range_starts_and_ends_where_it_was_asked_to(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    text = bench.text("read", path="a.txt", offset=40, limit=2)
    assert lines_of(text) == [(40, "line 40"), (41, "line 41")]
    assert "offset=42" in text


def test_the_last_range_has_no_notice(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("a\nb\n")
    assert "[" not in bench.text("read", path="a.txt", offset=2, limit=1)


def test_following_the_notices_reads_the_whole_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path, limit=3000)
    lines = [f"{n} {'x' * (n % 90)}" for n in range(1, 800)]
    (bench.workspace / "a.txt").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    offset = 1
    while True:
        text = bench.text("read", path="a.txt", offset=offset)
        assert len(text) <= 3000
        seen += [line for _, line in lines_of(text)]
        if "offset=" not in text:
            break
        offset = int(text.rpartition("offset=")[2].rstrip("]"))
    assert seen == lines


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(alphabet="ab\n\té\r", max_size=200),
    offset=st.integers(1, 12),
    limit=st.integers(1, 12),
)
def test_any_range_is_the_same_slice_python_gives(
    tmp_path_factory: pytest.TempPathFactory, content: str, offset: int, limit: int
) -> None:
    bench = Bench(tmp_path_factory.mktemp("read"))
    (bench.workspace / "a.txt").write_bytes(content.encode())
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    wanted = lines[offset - 1 : offset - 1 + limit]
    if not wanted:
        if lines:
            assert f"only {len(lines)} line" in bench.refusal("read", path="a.txt", offset=offset)
        return
    text = bench.text("read", path="a.txt", offset=offset, limit=limit)
    shown = [line.removesuffix("\r") for line in wanted]
    assert text.split("\n\n[Lines")[0] == "\n".join(
        f"{n:6}\t{line}" for n, line in enumerate(shown, offset)
    )


def test_an_empty_file_says_so(bench: Bench) -> None:
    (bench.workspace / "a.txt").touch()
    assert bench.text("read", path="a.txt") == "(a.txt is empty)"


def test_an_offset_past_the_end_names_the_length(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("a\nb\n")
    assert "has only 2 lines" in bench.refusal("read", path="a.txt", offset=3)


def test_a_missing_file_names_those_that_are_close(bench: Bench) -> None:
    (bench.workspace / "settings.toml").touch()
    said = bench.refusal("read", path="setings.toml")
    assert "does not exist" in said
    assert "Did you mean settings.toml?" in said


def test_a_long_line_is_cut_and_can_be_read_alone(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_text("short\n" + "é" * 30_000 + "\nend\n")
    text = bench.text("read", path="a.txt")
    assert "Too long and cut: line 2" in text
    assert lines_of(text)[2] == (3, "end")
    assert "\ufffd" not in text
    alone = bench.text("read", path="a.txt", offset=2, limit=1)
    assert alone.count("é") == 30_000


def test_a_line_of_any_length_can_be_read_to_its_end_without_a_gap(bench: Bench) -> None:
    whole = "".join(f"{number}é€😀" for number in range(40_000))
    (bench.workspace / "a.txt").write_text(f"first\n{whole}\nlast\n")
    got, start = "", 0
    while start >= 0:
        text = bench.text("read", path="a.txt", offset=2, limit=1, start=start)
        line = text.partition("\t")[2].partition("\n")[0]
        following = re.search(r"offset=2 limit=1 start=(\d+)", text)
        got += line.removesuffix("…") if following else line
        start = int(following[1]) if following else -1
    assert got == whole
    inside = bench.text("read", path="a.txt", offset=2, limit=1, start=2)  # half of the é
    assert "\ufffd" not in inside and "no UTF-8" not in inside
    beyond = bench.text("read", path="a.txt", offset=2, limit=2, start=1 << 40)
    assert lines_of(beyond) == [(2, ""), (3, "last")]


def test_binary_data_is_named_with_size_and_type(bench: Bench) -> None:
    (bench.workspace / "a.bin").write_bytes(b"\x00\x01" * 100)
    (bench.workspace / "b.pdf").write_bytes(b"%PDF-1.7 ...")
    assert "binary file (unknown type, 200 bytes)" in bench.refusal("read", path="a.bin")
    assert "application/pdf" in bench.refusal("read", path="b.pdf")


def test_an_image_comes_as_an_image(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(PNG)
    image = bench.run("read", path="a.png").content[1]
    assert isinstance(image, Image)
    assert image.mime == "image/png"
    assert base64.b64decode(image.data) == PNG


def test_a_huge_image_is_refused(bench: Bench) -> None:
    (bench.workspace / "a.png").write_bytes(PNG + bytes(5_000_000))
    assert "too large" in bench.refusal("read", path="a.png")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_files_with_a_byte_order_mark_are_decoded(bench: Bench, encoding: str) -> None:
    (bench.workspace / "a.txt").write_bytes("grüße\nzwei\n".encode(encoding))
    assert lines_of(bench.text("read", path="a.txt")) == [(1, "grüße"), (2, "zwei")]


def test_bytes_that_are_no_text_are_shown_and_told(bench: Bench) -> None:
    (bench.workspace / "a.txt").write_bytes(b"caf\xe9\nok\n")
    text = bench.text("read", path="a.txt")
    assert "caf\ufffd" in text
    assert "no UTF-8" in text


def test_a_huge_file_is_never_held_whole(bench: Bench) -> None:
    path = bench.workspace / "huge.txt"
    with path.open("wb") as file:
        file.write(b"first\n" * 2000)
        file.truncate(3 << 30)  # a hole of NULs, as one endless line
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert lines_of(bench.text("read", path="huge.txt", limit=3))[0] == (1, "first")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000  # kB


def test_a_file_that_may_not_be_read_says_why(bench: Bench) -> None:
    path = bench.workspace / "a.txt"
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "permission denied" in bench.refusal("read", path="a.txt")
    path.chmod(stat.S_IRUSR)


def test_the_rest_of_a_cut_result_can_be_read_from_scratch(bench: Bench) -> None:
    text = bench.text("bash", command="seq 1 50000")
    path = text.partition("the whole output is in ")[2].partition(" …]")[0]
    assert lines_of(bench.text("read", path=path, offset=25_000, limit=1)) == [(25_000, "25000")]

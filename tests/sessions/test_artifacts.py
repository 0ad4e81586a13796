"""Files of results: named in order, with the right extension, whole or not there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kage.sessions.artifacts import MAX_FILE, Artifacts, NotKept, extension, listing


@pytest.mark.parametrize(
    ("mime", "data", "expected"),
    [
        ("image/png", b"anything", "png"),
        ("Text/CSV; charset=utf-8", b"a,b", "csv"),
        ("", b"\x89PNG\r\n\x1a\n....", "png"),
        ("application/octet-stream", b"RIFF\0\0\0\0WAVEfmt ", "wav"),
        ("", b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        ("", b"RIFF\0\0\0\0????", "bin"),
        ("x/../../y", b"plain words", "txt"),
        ("application/x-sh", b"#!/bin/sh\n", "txt"),
        ("", bytes(range(256)), "bin"),
        ("", "ä".encode() * 5000, "txt"),
        ("", b"", "txt"),
    ],
)
def test_the_extension_follows_the_type_else_the_bytes(
    mime: str, data: bytes, expected: str
) -> None:
    assert extension(mime, data) == expected


def test_files_sort_as_they_were_kept_and_later_kages_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "artifacts"
    first = Artifacts(folder)
    one = first.keep(b"1", name="srv__tool", mime="text/plain")
    two = first.keep(b"2", name="../../etc/passwd\0\x1b", mime="../../sh")
    stem = first.stem("x")
    three = Artifacts(folder).keep(b"3", name="", mime="image/png")
    assert [path.name for path in (one, two, three)] == [
        "00001-srv__tool.txt",
        "00002-etc_passwd.txt",
        "00003-file.png",
    ]
    assert stem == "00003-x"
    assert [info.path for info in listing(folder)] == [one, two, three]
    assert {path.parent for path in (one, two, three)} == {folder}
    assert two.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    held = Artifacts(tmp_path)
    held.keep(b"mine", name="a")
    outside = tmp_path.parent / "outside"
    (tmp_path / "00002-a.txt").symlink_to(outside)
    path = held.keep(b"next", name="a")
    assert path.name == "00003-a.txt" and path.read_bytes() == b"next"
    assert not outside.exists()
    assert [info.path.name for info in listing(tmp_path)] == ["00001-a.txt", "00003-a.txt"]


def test_half_written_files_of_a_dead_kage_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".0-dead.part").write_bytes(b"half")
    assert listing(tmp_path) == ()
    Artifacts(tmp_path).keep(b"whole", name="a")
    assert os.listdir(tmp_path) == ["00001-a.txt"]


def test_size_caps_hold_and_leave_nothing_behind(tmp_path: Path) -> None:
    held = Artifacts(tmp_path, most=10)
    held.keep(b"12345", name="a")
    with pytest.raises(NotKept, match="would pass"):
        held.keep(b"123456", name="b")
    with pytest.raises(NotKept, match="the limit"):
        held.keep(bytes(MAX_FILE + 1), name="c")
    with pytest.raises(NotKept, match="would pass"):
        Artifacts(tmp_path, most=10).keep(b"123456", name="b")
    assert os.listdir(tmp_path) == ["00001-a.txt"]


def test_threads_never_share_a_file(tmp_path: Path) -> None:
    held = Artifacts(tmp_path)
    threads = [
        threading.Thread(target=lambda n=n: held.keep(str(n).encode(), name="t")) for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {info.path.read_text() for info in listing(tmp_path)}
    assert kept == {str(number) for number in range(20)}
    assert len(os.listdir(tmp_path)) == 20

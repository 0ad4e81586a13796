"""Files kage keeps: opened without waiting for what stands in their place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kage.core.files import content, opened, reading


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
            with pytest.raises(OSError):
                opened(path, flags)
    with pytest.raises(FileNotFoundError):
        reading(tmp_path / "none")


def test_a_link_is_followed_only_where_a_person_may_have_put_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"theirs")
    link = tmp_path / "link"
    link.symlink_to("file")
    assert content(link) == b"theirs"
    with pytest.raises(OSError):
        reading(link, follow=False)


def test_a_new_file_is_for_its_owner_alone_and_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    descriptor = opened(file, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"kept")
    os.close(descriptor)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert content(file) == b"kept"

"""Files that are replaced as a whole: several writers at once, failures, and what a crash leaves."""

from __future__ import annotations

import io
import os
import re
import time
from pathlib import Path

import pytest

from studio.library.private_files import ABANDONED_SECONDS, write_whole


class Interrupted(io.BytesIO):
    """Content that lets another writer replace the same file before its second piece is read."""

    def __init__(self, path: Path, other: bytes) -> None:
        super().__init__(b"x" * (3 << 20))
        self._path, self._other = path, other

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() and self._other:
            other, self._other = self._other, b""
            write_whole(self._path, io.BytesIO(other))
            assert self._path.read_bytes() == other
        return super().read(size)


def test_two_writers_of_one_file_each_write_all_of_theirs(tmp_path: Path) -> None:
    target = tmp_path / "model.json"
    write_whole(target, Interrupted(target, b"y" * 100))
    assert target.read_bytes() == b"x" * (3 << 20)
    assert list(tmp_path.iterdir()) == [target]


class Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError("the disk is gone")


def test_failed_write_leaves_the_previous_content_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_whole(target, io.BytesIO(b"before"))
    with pytest.raises(OSError, match="gone"):
        write_whole(target, Broken())
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(target, b"before")]
    (tmp_path / "folder").mkdir()
    for path in (target / "below", tmp_path / "folder"):
        with pytest.raises(OSError, match=f": '{re.escape(str(path))}'$"):  # not the temporary name
            write_whole(path, io.BytesIO(b"content"))


def test_unfinished_files_of_a_crash_are_removed_later_and_those_of_others_are_not(tmp_path: Path) -> None:
    names = ("file[1].0123abcd.part", "file[1].89abcdef.part", "file[1].part", "file1.0123abcd.part")
    for name in names:
        (tmp_path / name).write_bytes(b"unfinished")
        old = time.time() - ABANDONED_SECONDS - 60
        os.utime(tmp_path / name, (old, old))
    os.utime(tmp_path / names[1])  # another program is writing it
    write_whole(tmp_path / "file[1]", io.BytesIO(b"whole"))
    assert {path.name for path in tmp_path.iterdir()} == {"file[1]", *names[1:]}

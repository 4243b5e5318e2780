"""Audio that the database does not name: kept for days, put back when the database that names it is back."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from pathlib import Path

import pytest

from studio.library import Library
from tests.studio.library.worker import stored_take

DAY = 86_400


def test_audio_survives_starts_with_another_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home, aside = tmp_path / "home", tmp_path / "aside"
    library = Library(home)
    library.takes.add(stored_take("req_1", "Keep me.", "anna"), b"sound")
    [(digest, path)] = library.files.everything()
    os.utime(path, (1.0, 1.0))  # an old take is worth as much as a new one
    library.store.close()
    aside.mkdir()
    for file in home.glob("library.db*"):
        file.replace(aside / file.name)
    for _ in range(2):
        Library(home).store.close()
    assert "1 files set aside" in caplog.text
    for file in home.glob("library.db*"):
        file.unlink()
    for file in aside.iterdir():
        file.replace(home / file.name)
    again = Library(home)
    assert again.files.read(digest) == b"sound"
    assert [name for name, _ in again.files.everything()] == [digest]


def test_unnamed_audio_is_removed_after_its_days_and_unfinished_files_at_once(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.takes.add(stored_take("req_1", "Named.", "anna"), b"named")
    folder = tmp_path / "audio" / "aa"
    folder.mkdir()
    (folder / f"{'a' * 64}.01234567.part").write_bytes(b"half")
    (folder / ("a" * 64)).write_bytes(b"orphan")
    (folder / "notes.txt").write_bytes(b"not the studio's")
    Library(tmp_path)
    [orphan] = folder.glob("a*")
    assert orphan.read_bytes() == b"orphan"
    os.utime(orphan, (time.time() - 31 * DAY,) * 2)
    after = {path.name for _, path in Library(tmp_path).files.everything()}
    assert len(after) == 1 and [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_days_of_audio_set_aside_by_a_wrong_clock_begin_again(tmp_path: Path) -> None:
    Library(tmp_path).store.close()
    (folder := tmp_path / "audio" / "aa").mkdir()
    orphan = folder / ("a" * 64 + ".unnamed")
    orphan.write_bytes(b"orphan")
    os.utime(orphan, (100.0, 100.0))  # as a computer without a clock of its own has it before it asks the network
    Library(tmp_path).store.close()
    assert orphan.read_bytes() == b"orphan" and orphan.stat().st_mtime > time.time() - DAY
    os.utime(orphan, (time.time() - 31 * DAY,) * 2)
    Library(tmp_path).store.close()
    assert not orphan.exists()


def test_start_with_much_unnamed_audio_lets_others_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Library(tmp_path).store.close()
    folder = tmp_path / "audio" / "aa"
    folder.mkdir()
    for digit in "abc":
        (folder / (digit * 64)).write_bytes(b"orphan")
    turns = list[float]()

    def write(seconds: float) -> None:
        with contextlib.closing(sqlite3.connect(tmp_path / "library.db", timeout=0)) as other:
            other.execute("begin immediate")
        turns.append(seconds)

    monkeypatch.setattr("studio.library.store.TIDYING_SECONDS", 0)
    monkeypatch.setattr("studio.library.store.time.sleep", write)
    library = Library(tmp_path)
    assert len(turns) == 3 and all(name.endswith(".unnamed") for name, _ in library.files.everything())

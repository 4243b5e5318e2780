"""The recorder under load: takes waiting for the disk are written together, and a locked library loses none."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from anyio import fail_after

from studio.errors import LibraryBusy
from studio.library import Library, TakeFilter
from studio.library.store import MOST_WRITERS
from studio.speech.recorder import Outcome, Recorder, Retention
from tests.studio.library.worker import active_take, stored_take
from tests.waiting import wait_until_true

PLENTY = Retention(1000, 2**30)


class Disk:
    """Blocks writes of audio files until allowed; counts them and records whether two were written at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_write, self.begun, self.two_at_once = threading.Event(), threading.Event(), threading.Event()
        self.written = self._now = 0
        self.waits_for_two = False
        """Whether a write that starts from now on waits until two run at once."""
        self._lock = threading.Lock()
        monkeypatch.setattr("studio.library.audio_files.os.fsync", self._held)

    def _held(self, handle: int) -> None:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return
        waits = self.waits_for_two
        with self._lock:
            self.written += 1
            self._now += 1
            if self._now > 1:
                self.two_at_once.set()
        self.begun.set()
        assert self.may_write.wait(60)
        assert not waits or self.two_at_once.wait(60)
        with self._lock:
            self._now -= 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def outcomes() -> dict[str, Outcome | None]:
    return {}


def record(recorder: Recorder, number: int, samples: int = 1000) -> None:
    active = active_take(stored_take(f"req_{number}", f"Number {number}.", "anna"), recorder)
    active.write(np.full(samples, number / 100, np.float32))
    active.end()


def names(library: Library) -> list[str]:
    return [take.id for take in library.takes.page(limit=500)]


def test_waiting_takes_are_written_together_in_order(
    tmp_path: Path, disk: Disk, outcomes: dict[str, Outcome | None]
) -> None:
    library = Library(tmp_path)
    recorder = Recorder(library, PLENTY, outcomes.__setitem__)
    record(recorder, 0)
    assert disk.begun.wait(60)
    for number in range(1, 30):
        record(recorder, number)
    disk.waits_for_two = True
    disk.may_write.set()
    recorder.stop()
    assert names(library) == [f"req_{number}" for number in reversed(range(30))]
    assert set(outcomes.values()) == {"kept"} and disk.written == 30


def test_take_larger_than_the_limit_does_not_stop_the_recorder(
    tmp_path: Path, outcomes: dict[str, Outcome | None]
) -> None:
    library = Library(tmp_path)
    recorder = Recorder(library, Retention(5, 2100), outcomes.__setitem__)
    record(recorder, 1, samples=5000)
    record(recorder, 2)
    recorder.stop()
    assert names(library) == ["req_2"]


def test_unstorable_take_does_not_affect_others(
    tmp_path: Path, disk: Disk, outcomes: dict[str, Outcome | None]
) -> None:
    library = Library(tmp_path)
    with library.store.writing() as db:
        refused = "new.id = 'req_3' begin select raise(abort, 'refused'); end"
        db.execute(f"create trigger refuses before insert on takes when {refused}")
    recorder = Recorder(library, PLENTY, outcomes.__setitem__)
    for number in range(8):
        record(recorder, number)
    disk.may_write.set()
    recorder.stop()
    assert names(library) == [f"req_{number}" for number in reversed(range(8)) if number != 3]
    assert outcomes["req_3"] == "lost" and list(outcomes.values()).count("kept") == 7
    files = {take.audio for take in library.takes.page(limit=500)}
    assert {name for name, _ in library.files.everything()} == files


def test_start_of_another_studio_keeps_audio_being_written(tmp_path: Path, disk: Disk) -> None:
    library = Library(tmp_path)
    recorder = Recorder(library, PLENTY, lambda take_id, outcome: None)
    record(recorder, 1)
    assert disk.begun.wait(60)
    Library(tmp_path)  # deletes files that no row names
    assert sys.platform == "win32" or list(library.files.everything()) == []  # which keeps open files
    disk.may_write.set()
    recorder.stop()
    [take] = library.takes.page()
    assert take.audio and len(library.files.read(take.audio)) == 2044


async def test_takes_wait_while_the_library_is_locked_and_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcomes: dict[str, Outcome | None]
) -> None:
    monkeypatch.setattr("studio.library.store.BUSY_SECONDS", 0.01)
    library = Library(tmp_path)
    recorder = Recorder(library, PLENTY, outcomes.__setitem__)
    with closing(sqlite3.connect(library.store.path)) as other_program:
        other_program.execute("begin immediate")
        for number in range(40):
            record(recorder, number)
        wait_until_true(lambda: recorder.watch.status.failures > 2)
        assert "busy" in str(recorder.watch.status.error) and set(outcomes.values()) == {None}
        monkeypatch.setattr("studio.speech.recorder.PATIENCE", 60.0)
        with fail_after(30):  # readers do not wait for the lock
            await recorder.wait_until_written()
    recorder.stop()
    assert names(library) == [f"req_{number}" for number in reversed(range(40))]
    assert set(outcomes.values()) == {"kept"} and recorder.watch.status.error is None


def test_writers_take_turns_in_their_order_and_errors_name_who_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(tmp_path)
    takes = [stored_take(f"req_{number}", "Hi.", "anna") for number in range(MOST_WRITERS)]
    monkeypatch.setattr("studio.library.store.WRITER_SECONDS", 0.01)
    changes: list[Callable[[], object]] = [partial(library.takes.delete, TakeFilter(ids=("none",)))] * 2
    changes += [partial(library.takes.add, take) for take in takes[3:]]
    with ThreadPoolExecutor(MOST_WRITERS) as threads, library.store.writing():
        for number, change in enumerate(changes):  # as many as may wait
            threads.submit(change)
            wait_until_true(partial(_has_line, library, number + 2))
        with pytest.raises(LibraryBusy, match="other changes of this studio"):
            library.takes.add(takes[0])
    assert names(library) == [take.id for take in reversed(takes[3:])]
    monkeypatch.setattr("studio.library.store.BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(library.store.path)) as other_program:
        other_program.execute("begin immediate")
        with pytest.raises(LibraryBusy, match="If this persists, another program has locked it"):
            library.takes.add(takes[0])


def _has_line(library: Library, writers: int) -> bool:
    return len(library.store._line) == writers

"""The recorder under load: takes waiting for the disk are written together, and none needlessly."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from studio.library import Library
from studio.library.takes.take import Take
from studio.takes.recorder import Outcome, Recorder, Retention
from tests.studio.library.worker import stored_take

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
    recording = recorder.open(stored_take(f"req_{number}", f"Number {number}.", "anna"), "a model")
    recording.write(np.full(samples, number / 100, np.float32))
    recording.close(Take(f"req_{number}", 1.0, "anna", 1, "finished"), 44_100)


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


@pytest.mark.parametrize("retention", [Retention(5, 2**30), Retention(1000, 5 * 2100)], ids=["takes", "bytes"])
def test_takes_superseded_by_newer_ones_are_not_written(
    tmp_path: Path, disk: Disk, outcomes: dict[str, Outcome | None], retention: Retention
) -> None:
    library = Library(tmp_path)
    recorder = Recorder(library, retention, outcomes.__setitem__)
    record(recorder, 0)
    assert disk.begun.wait(60)
    for number in range(1, 40):
        record(recorder, number)
    disk.may_write.set()
    recorder.stop()
    assert names(library) == [f"req_{number}" for number in reversed(range(35, 40))]
    assert disk.written == 6 and set(outcomes.values()) == {"kept"} and recorder.check() == (0, 0)


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
    assert list(library.files.everything()) == []
    disk.may_write.set()
    recorder.stop()
    [take] = library.takes.page()
    assert take.audio and len(library.files.read(take.audio)) == 2044

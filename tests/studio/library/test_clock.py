"""The trash while the system's clock is wrong: nothing is removed before its days are over."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from studio.library import Library, TakeFilter, trash
from studio.library.trash import DOUBT_SECONDS, SteadyClock
from tests.studio.library.worker import stored_take

DAY = 86_400.0
NOW = 1_800_000_000.0
real_time = time.time


def set_clock(monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    monkeypatch.setattr(time, "time", lambda: real_time() + ahead)


def delete(library: Library, number: int) -> None:
    library.takes.add(stored_take(f"req_{number}", f"Keep {number}.", "anna"), b"sound %d" % number)
    library.takes.delete(TakeFilter(ids=(f"req_{number}",)))


@pytest.mark.parametrize("ahead", [-1.5e9, -8 * DAY, 8 * DAY, 365 * DAY])
def test_jump_of_the_clock_removes_nothing_from_the_trash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    library = Library(tmp_path)
    delete(library, 1)
    set_clock(monkeypatch, ahead)
    delete(library, 2)
    set_clock(monkeypatch, 0.0)
    library.trash.expire()
    items = library.trash.page(None)
    assert [item.id for item in items] == ["req_2", "req_1"]
    assert all(abs(item.deleted - real_time()) < DAY for item in items)
    assert library.trash.restore([("take", "req_1"), ("take", "req_2")], None)


@pytest.mark.parametrize("deleted", [100.0, real_time() + 365 * DAY], ids=["long ago", "in a year"])
def test_days_of_an_item_deleted_by_a_wrong_clock_begin_when_the_trash_is_seen(tmp_path: Path, deleted: float) -> None:
    library = Library(tmp_path)
    delete(library, 1)
    with library.store.writing() as db:
        db.execute("update takes set deleted = ?", [deleted])
    [item] = library.trash.page(None)
    assert abs(item.deleted - real_time()) < DAY


def test_days_of_an_item_deleted_before_the_clock_was_set_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [NOW - 10 * DAY, 0.0]  # a machine without a clock of its own begins where it stopped, days ago
    monkeypatch.setattr(trash, "_ticks", lambda: clock[1])
    monkeypatch.setattr(trash, "now", SteadyClock(lambda: clock[0], lambda: clock[1]).now)
    library = Library(tmp_path)
    delete(library, 1)
    clock[0] = NOW
    library.trash.expire()
    for _ in range(6):
        clock[0], clock[1] = clock[0] + DAY, clock[1] + DAY
        library.trash.expire()
        assert [item.id for item in library.trash.page(None)] == ["req_1"]
    clock[0], clock[1] = clock[0] + 2 * DAY, clock[1] + 2 * DAY
    library.trash.expire()
    assert not library.trash.page(None)


def test_jump_that_lasts_is_believed() -> None:
    wall, ticks = [NOW], [0.0]
    clock = SteadyClock(lambda: wall[0] + ticks[0], lambda: ticks[0])
    wall[0] += 30 * DAY
    assert clock.now() == NOW
    ticks[0] = DOUBT_SECONDS - 1
    assert clock.now() == NOW + ticks[0]
    ticks[0] = DOUBT_SECONDS
    assert clock.now() == wall[0] + ticks[0]

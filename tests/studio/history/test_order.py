"""Takes are listed newest first, kept or not; no page repeats or omits one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.history.history import History
from studio.library import Library, TakeFilter
from studio.library.takes.take import Take
from studio.takes.recent_takes import RecentTakes
from tests.studio.conftest import Steered

Steer = Callable[..., Steered]


def kept_take(number: int) -> Take:
    return Take(f"kept_{number:03}", float(number), "random", 1, "finished", text="Hi.")


def unkept_take(number: int) -> Take:
    return Take(f"only_{number:03}", float(number), "random", 1, "finished")


async def listed(history: History, limit: int) -> list[str]:
    ids, after = [], None
    while True:
        page = await history.page(TakeFilter(), limit, after)
        ids += [str(take["id"]) for take in page.data]
        assert len(page.data) == limit or not page.has_more
        if not page.has_more:
            return ids
        after = page.last_id


@pytest.mark.parametrize("seed", range(2))
async def test_stored_and_unstored_takes_are_listed_together_by_time(tmp_path: Path, seed: int) -> None:
    library, recent, dice = Library(tmp_path), RecentTakes(), random.Random(seed)
    for number in range(1, 30):
        if dice.random() < 0.5:
            recent.put(unkept_take(number))
        else:
            library.takes.add(kept_take(number))
            if dice.random() < 0.5:
                recent.put(kept_take(number))
    history = History(library, recent, None)
    for limit in (1, 4, 100):
        ids = await listed(history, limit)
        assert [int(take_id[-3:]) for take_id in ids] == list(range(29, 0, -1))


async def test_paging_continues_after_its_last_take_is_deleted(tmp_path: Path) -> None:
    library, recent = Library(tmp_path), RecentTakes()
    for number in range(1, 7):
        library.takes.add(kept_take(number)) if number % 2 else recent.put(unkept_take(number))
    history = History(library, recent, None)
    page = await history.page(TakeFilter(), 2)
    await history.delete("kept_005", None)
    rest = await history.page(TakeFilter(), 10, page.last_id)
    assert [take["id"] for take in rest.data] == ["only_004", "kept_003", "only_002", "kept_001"]


def test_the_first_page_has_the_newest_takes_stored_or_not(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for store in (False, False, False, True):
            answer = client.post("/v1/audio/speech", json={"input": "Two words.", "store": store})
        listed = client.get("/v1/takes", params={"limit": 3}).json()["data"]
    assert listed[0]["id"] == answer.headers["x-request-id"]
    assert [take["stored"] for take in listed] == [True, False, False]

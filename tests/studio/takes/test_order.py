"""Takes are listed newest first, active ones before stored ones; no page repeats or omits one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from studio.library import Library, TakeFilter
from studio.library.take import Take
from studio.settings import read_keys
from studio.speech.register import Register
from studio.takes.history import History
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.library.worker import quiet_register

Steer = Callable[..., Steered]


def stored_take(number: int) -> Take:
    return Take(f"req_{number:03}", float(number), "random", 1, "finished", text="Hi.")


@dataclass(eq=False)
class Request:
    take: Take
    is_background: bool = False

    def cancel(self, reason: str = "") -> None:
        """Does nothing."""


def begin(register: Register, number: int, is_background: bool = False) -> None:
    register.enter(take := Take(f"req_{number:03}", float(number), "random", 1, "speaking"))
    register.add(Request(take, is_background))


async def listed(history: History, limit: int) -> list[int]:
    numbers, after = [], None
    while True:
        page = await history.page(TakeFilter(), limit, after)
        numbers += [int(str(take["id"])[-3:]) for take in page.data]
        assert len(page.data) == limit or not page.has_more
        if not page.has_more:
            return numbers
        after = page.last_id


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.mark.parametrize("limit", [1, 4, 100])
async def test_active_takes_come_before_stored_ones(library: Library, limit: int) -> None:
    register = quiet_register()
    for number in range(1, 30):
        begin(register, number)
        if number < 20:
            library.takes.add(stored_take(number))
        if number < 25:  # 20 to 24: not stored
            register.leave(stored_take(number))
    begin(register, 30, is_background=True)
    assert await listed(History(library, register, None), limit) == [*range(29, 24, -1), *range(19, 0, -1)]


async def test_paging_continues_after_its_last_take_is_deleted_stored_or_gone(library: Library) -> None:
    register = quiet_register()
    for number in range(1, 7):
        library.takes.add(stored_take(number))
    for number in (7, 8, 9):
        begin(register, number)
    history = History(library, register, None)
    rest = [f"req_{number:03}" for number in range(6, 0, -1)]

    async def following(after: str) -> list[object]:
        return [take["id"] for take in (await history.page(TakeFilter(), 10, after)).data]

    assert await following("req_009") == ["req_008", "req_007", *rest]
    library.takes.add(stored_take(9))
    register.leave(stored_take(9))
    assert await following("req_009") == rest, "active takes were on the page before"
    register.leave(replace(register.get("req_008"), state="cancelled"))
    assert await following("req_008") == ["req_007", *rest]
    await history.delete("req_005", None)
    assert await following("req_005") == rest[2:]


def test_a_page_begins_only_after_an_own_take(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("key-a,key-b"))
    with served.client(headers={"Authorization": "Bearer key-a"}) as anna:
        for body in ({"input": "A secret of a."}, {"input": "A secret of a.", "store": False}):
            answer = anna.post("/v1/audio/speech", json=body)
            with served.client(headers={"Authorization": "Bearer key-b"}) as bert:
                refused = bert.get("/v1/takes", params={"after": answer.headers["x-request-id"]})
            assert_envelope(refused, 404, "after")

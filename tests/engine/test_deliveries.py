"""What threads have for those who wait in event loops comes in order, and wakes each loop once."""

from __future__ import annotations

import asyncio

from engine import Deliveries


class Counting(asyncio.SelectorEventLoop):
    """An event loop that counts how often it is woken."""

    woken = 0

    def call_soon_threadsafe(self, *arguments, **how):  # type: ignore[no-untyped-def]
        self.woken += 1
        return super().call_soon_threadsafe(*arguments, **how)


async def listen(*queues: asyncio.Queue[int]) -> list[list[int]]:
    return [[await queue.get() for _ in range(3)] for queue in queues]


def test_each_loop_is_woken_once_and_each_queue_has_its_own_in_order() -> None:
    deliveries, one, other = Deliveries(), Counting(), Counting()
    first, second, third = asyncio.Queue[int](), asyncio.Queue[int](), asyncio.Queue[int]()
    for item in range(3):
        for loop, queue in ((one, first), (one, second), (other, third)):
            deliveries.put(loop, queue, item)
    assert one.woken == other.woken == 0
    deliveries.send()
    assert one.woken == other.woken == 1
    assert one.run_until_complete(listen(first, second)) == [[0, 1, 2]] * 2
    assert other.run_until_complete(listen(third)) == [[0, 1, 2]]
    deliveries.send()  # nothing is left
    assert one.woken == other.woken == 1
    one.close()
    other.close()


def test_a_loop_that_was_closed_under_its_takes_hinders_nobody() -> None:
    deliveries, gone, there = Deliveries(), asyncio.new_event_loop(), asyncio.new_event_loop()
    queue = asyncio.Queue[int]()
    gone.close()
    deliveries.put(gone, queue, 1)
    deliveries.put(there, queue, 2)
    deliveries.send()
    assert there.run_until_complete(queue.get()) == 2 and queue.empty()
    there.close()

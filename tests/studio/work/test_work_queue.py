"""A queue of long work: turns, fair shares, time limits, and cancelled callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from speechtext.errors import check_job
from studio.errors import QueueFull, TooCostly, TooManyRequests
from studio.work import QueueKind, WorkQueue, WorkQueues
from tests.engine.speaking import until


def queue_of(at_once: int = 1, waiting: int = 7, seconds: float = 60.0) -> WorkQueue:
    return WorkQueue(
        QueueKind("clips", "the clip", "clips", "decoded", at_once, waiting, seconds, "send a shorter one")
    )


class Held:
    """Work that runs until it is released, and records when it begins."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.gate = threading.Event()

    def __call__(self, name: str) -> str:
        self.begun.append(name)
        try:
            while not self.gate.wait(0.002):
                check_job()
        finally:
            self.ended.append(name)
        return name


async def until_begun(held: Held, number: int) -> None:
    await until(lambda: len(held.begun) >= number)


async def until_waiting(queue: WorkQueue, number: int) -> None:
    await until(lambda: queue.figures["waiting"] == number)


@pytest.mark.parametrize("at_once", [1, 2])
async def test_waiting_caller_without_running_work_is_next(at_once: int) -> None:
    queue, held = queue_of(at_once, waiting=14), Held()
    tasks = [asyncio.create_task(queue.run("greedy", held, f"greedy {number}")) for number in range(6)]
    await until_begun(held, at_once)
    tasks.append(asyncio.create_task(queue.run("late", held, "late")))
    await until_waiting(queue, 7 - at_once)
    assert queue.figures == {"running": at_once, "waiting": 7 - at_once, "max_running": at_once, "max_waiting": 14}
    tasks[0].cancel()  # one turn is free, not two: two threads might begin in either order
    await until_begun(held, at_once + 1)
    assert held.begun[at_once] == "late"
    held.gate.set()
    await asyncio.gather(*tasks[1:])
    assert queue.figures["running"] == queue.figures["waiting"] == 0


async def test_cancelled_callers_release_their_slots_in_any_order() -> None:
    queue, held = queue_of(), Held()
    first = asyncio.create_task(queue.run("a", held, "first"))
    await until_begun(held, 1)
    waiting = [asyncio.create_task(queue.run(f"b{number}", held, f"waits {number}")) for number in range(5)]
    await until_waiting(queue, 5)
    for task in (*waiting[:4], first):  # in one turn of the loop: none of them has noticed yet
        task.cancel()
    await until_begun(held, 2)
    assert held.ended == ["first"] and held.begun == ["first", "waits 4"]
    held.gate.set()
    assert await waiting[4] == "waits 4"
    assert await queue.run("c", held, "next") == "next"
    assert queue.figures["running"] == queue.figures["waiting"] == 0


async def test_full_queue_or_share_refuses_all_but_patient_callers() -> None:
    queue, held = queue_of(at_once=1, waiting=3), Held()
    tasks = [asyncio.create_task(queue.run("a", held, str(number))) for number in range(2)]
    await until_begun(held, 1)
    with pytest.raises(TooManyRequests, match=r"2 of your clips .* at most 2 are allowed"):
        await queue.run("a", held, "too many")
    tasks += [asyncio.create_task(queue.run(caller, held, caller)) for caller in "bc"]
    await until_waiting(queue, 3)
    with pytest.raises(QueueFull, match="3 are waiting, the maximum"):
        await queue.run("d", held, "full")

    async def patient() -> None:
        async with queue.turn("d", patient=True) as turn:
            await turn.run(held, "patient")

    tasks.append(asyncio.create_task(patient()))  # type: ignore[arg-type]
    await until_waiting(queue, 4)
    tasks.pop(2).cancel()
    await until_waiting(queue, 3)
    tasks.append(asyncio.create_task(queue.run("c", held, "again")))  # in the place of the one who has left
    await until_waiting(queue, 4)
    held.gate.set()
    await asyncio.gather(*tasks)
    assert held.begun == ["0", "c", "patient", "1", "again"]


async def test_long_work_of_one_caller_lets_that_of_others_pass() -> None:
    queue, ends, begun = queue_of(at_once=2, waiting=14), threading.Event(), list[str]()

    def book() -> Generator[bytes, None, None]:
        begun.append("book")
        while not ends.is_set():
            yield b"a chapter"
        yield b"the end"

    books = [asyncio.create_task(queue.last_of("a", book())) for _ in range(3)]
    await until(lambda: len(begun) == 2)
    assert await asyncio.wait_for(queue.last_of("b", Pieces(4)()), 20) == bytes([3])
    assert len(begun) == 2, "the third waits until one of the same caller has ended"
    ends.set()
    assert await asyncio.gather(*books) == [b"the end"] * 3


async def test_caller_with_a_share_leaves_a_turn_to_others() -> None:
    queue, held = queue_of(at_once=2), Held()

    async def alone(caller: str, name: str) -> None:
        async with queue.turn(caller, most=1) as turn:
            await turn.run(held, name)

    tasks = [asyncio.create_task(alone("a", name)) for name in ("first", "second")]
    await until_begun(held, 1)
    tasks.append(asyncio.create_task(alone("b", "other")))
    await until_begun(held, 2)
    assert held.begun == ["first", "other"]
    tasks.pop(1).cancel()
    held.gate.set()
    await asyncio.gather(*tasks)
    assert queue.figures["running"] == queue.figures["waiting"] == 0


@pytest.mark.parametrize("kind", ["writes", "changes"])
async def test_caller_leaves_a_thread_that_writes_to_others(kind: str) -> None:
    queue, held = getattr(WorkQueues(1), kind), Held()
    most = queue.figures["max_running"] - 1
    tasks = [asyncio.create_task(queue.run("a", held, f"a {number}")) for number in range(5)]
    await until_begun(held, most)
    await until_waiting(queue, 5 - most)
    tasks += [asyncio.create_task(queue.run("b", held, f"b {number}")) for number in range(2)]
    await until_begun(held, most + 1)
    assert sorted(held.begun) == [*(f"a {number}" for number in range(most)), "b 0"]
    tasks.pop(0).cancel()
    await until_begun(held, most + 2)
    assert held.begun[-1] == "b 1" and queue.figures["waiting"] == 5 - most
    held.gate.set()
    assert await asyncio.gather(*tasks) == ["a 1", "a 2", "a 3", "a 4", "b 0", "b 1"]
    assert queue.figures["running"] == queue.figures["waiting"] == 0


async def test_slow_work_is_refused_with_the_limit_and_the_remedy() -> None:
    queue, held = queue_of(seconds=0.05), Held()
    with pytest.raises(TooCostly, match=r"the clip took longer than 0.05 s to be decoded; send a shorter one"):
        await queue.run("a", held, "slow")
    assert held.ended == held.begun, "nothing of it goes on"


class Pieces:
    """The pieces of a file; records whether they were closed."""

    def __init__(self, number: int) -> None:
        self.number, self.yielded, self.is_closed = number, 0, False

    def __call__(self) -> Generator[bytes, None, None]:
        try:
            for at in range(self.number):
                self.yielded += 1
                yield b"" if at == 1 else bytes([at])
        finally:
            self.is_closed = True


async def test_slow_reader_occupies_no_turn_and_closing_the_stream_closes_the_file() -> None:
    queue, slow, quick = queue_of(), Pieces(100), Pieces(4)
    stream = await queue.stream("a", slow())
    assert slow.yielded == 1
    assert b"".join([piece async for piece in await queue.stream("b", quick())]) == bytes([0, 2, 3])
    assert queue.figures["running"] == 0
    assert await anext(stream) == bytes([0])
    await stream.aclose()
    assert slow.is_closed and slow.yielded < 100
    assert await queue.last_of("a", Pieces(4)()) == bytes([3])


async def test_refusal_is_raised_before_the_first_piece() -> None:
    def broken() -> Generator[bytes, None, None]:
        raise QueueFull("no")
        yield b""

    queue = queue_of()
    with pytest.raises(QueueFull, match="no"):
        await queue.stream("a", broken())
    assert b"".join([piece async for piece in await queue.stream("a", Pieces(0)())]) == b""

"""Work that is ended from outside: in its caller's own task, told apart from a caller who is cancelled himself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from studio.speech.cancellation import CancelToken


class Ended(Exception):
    """What whoever waits is told."""


class Work:
    """Waits until it is told to go on; knows whether it was left."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.was_left = False

    async def __call__(self) -> str:
        self.has_begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_left = True
            raise
        return "done"


@asynccontextmanager
async def awaited(interruption: CancelToken) -> AsyncIterator[tuple[Work, asyncio.Task[str]]]:
    work = Work()
    task = asyncio.create_task(interruption.unless(work()))
    await work.has_begun.wait()
    yield work, task
    assert task.done()


async def test_work_that_nobody_ends_gives_its_result() -> None:
    interruption = CancelToken(Ended)
    async with awaited(interruption) as (work, task):
        work.may_end.set()
        assert await task == "done"
    async with awaited(interruption) as (work, task):
        work.may_end.set()
        assert await task == "done"


async def test_what_is_ended_leaves_its_task_as_it_was_and_lets_nothing_begin_after_it() -> None:
    interruption, work = CancelToken(Ended), Work()

    async def caller() -> str:
        with pytest.raises(Ended):
            await interruption.unless(work())
        await asyncio.sleep(0)  # would raise, were the task still being cancelled
        return "went on"

    task = asyncio.create_task(caller())
    await work.has_begun.wait()
    interruption.set()
    interruption.set()
    assert await task == "went on"
    assert work.was_left
    assert not task.cancelling()
    later = Work()
    with pytest.raises(Ended):
        await interruption.unless(later())
    assert not later.has_begun.is_set()


async def test_a_result_that_is_there_as_the_end_comes_is_no_result() -> None:
    interruption = CancelToken(Ended)
    async with awaited(interruption) as (work, task):
        work.may_end.set()
        interruption.set()
        with pytest.raises(Ended):
            await task


async def test_a_caller_who_is_cancelled_is_told_that() -> None:
    async with awaited(CancelToken(Ended)) as (work, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.was_left


@pytest.mark.parametrize("first", ["ended", "cancelled"])
async def test_of_both_being_cancelled_counts(first: str) -> None:
    interruption = CancelToken(Ended)
    async with awaited(interruption) as (_, task):
        for end in (interruption.set, task.cancel) if first == "ended" else (task.cancel, interruption.set):
            end()
        with pytest.raises(asyncio.CancelledError):
            await task

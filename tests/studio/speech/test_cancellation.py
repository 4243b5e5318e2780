"""Work cancelled from outside: in its caller's task, and distinguished from a cancelled caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from studio.work import CancelToken


class Ended(Exception):
    """The error that the waiting task gets."""


class Work:
    """Waits until it may continue; records whether it was left."""

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
async def awaited(token: CancelToken) -> AsyncIterator[tuple[Work, asyncio.Task[str]]]:
    work = Work()
    task = asyncio.create_task(token.run(work()))
    await work.has_begun.wait()
    yield work, task
    assert task.done()


async def test_uninterrupted_work_returns_its_result() -> None:
    token = CancelToken(Ended)
    async with awaited(token) as (work, task):
        work.may_end.set()
        assert await task == "done"
    async with awaited(token) as (work, task):
        work.may_end.set()
        assert await task == "done"


async def test_cancelled_token_leaves_its_task_usable_and_starts_no_later_work() -> None:
    token, work = CancelToken(Ended), Work()

    async def caller() -> str:
        with pytest.raises(Ended):
            await token.run(work())
        await asyncio.sleep(0)  # would raise, were the task still being cancelled
        return "went on"

    task = asyncio.create_task(caller())
    await work.has_begun.wait()
    token.cancel()
    token.cancel()
    assert await task == "went on"
    assert work.was_left
    assert not task.cancelling()
    later = Work()
    with pytest.raises(Ended):
        await token.run(later())
    assert not later.has_begun.is_set()


async def test_result_ready_at_cancellation_is_discarded() -> None:
    token = CancelToken(Ended)
    async with awaited(token) as (work, task):
        work.may_end.set()
        token.cancel()
        with pytest.raises(Ended):
            await task


async def test_cancelled_caller_raises_cancelled_error() -> None:
    async with awaited(CancelToken(Ended)) as (work, task):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.was_left


@pytest.mark.parametrize("first", ["ended", "cancelled"])
async def test_task_cancellation_takes_precedence_over_the_token(first: str) -> None:
    token = CancelToken(Ended)
    async with awaited(token) as (_, task):
        for end in (token.cancel, task.cancel) if first == "ended" else (task.cancel, token.cancel):
            end()
        with pytest.raises(asyncio.CancelledError):
            await task

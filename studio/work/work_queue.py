"""A bounded queue for one kind of long work, with its own threads; fair to callers, cancelled when they leave."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from anyio import CapacityLimiter

from studio.errors import QueueFull, TooManyRequests
from studio.threads import run_uninterrupted
from studio.work.child_process import in_child
from studio.work.job import Job

Piece = TypeVar("Piece")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class QueueKind:
    """The purpose of a queue, and its limits."""

    name: str
    """The name in `/health`."""
    singular: str
    plural: str
    """The singular and plural nouns of its work."""
    done: str
    """The past participle in messages: "read", "encoded"."""
    at_once: int
    waiting: int
    """Maximum waiting, of all callers together; one caller may have half of all places."""
    seconds: float
    """Maximum seconds of one piece of work, without waiting."""
    remedy: str
    """The remedy for work that takes longer."""

    @property
    def per_caller(self) -> int:
        return max(1, (self.at_once + self.waiting) // 2)


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """The right to a thread of the queue."""

    job: Job
    threads: CapacityLimiter

    async def run(self, function: Callable[..., Result], *values: object) -> Result:
        """Run a blocking function; cancelling ends it at its next `check_job`, and waits for that.

        Raises TooCostly, and the errors of the function.
        """
        return await run_uninterrupted(
            self.job.run, function, *values, limiter=self.threads, on_cancel=self.job.abandon
        )


class WorkQueue:
    """Used from one event loop. Next is the waiting caller with the least work running; among equals, the first.

    When a caller leaves, its waiting work is dropped, and its running work ends at its next step.
    """

    def __init__(self, kind: QueueKind) -> None:
        self._kind = kind
        self._threads = CapacityLimiter(kind.at_once)  # used only by work with a turn, so that it never waits
        self._places: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @property
    def name(self) -> str:
        return self._kind.name

    @property
    def figures(self) -> dict[str, int]:
        """The numbers of running and waiting work; work that currently needs no turn counts as neither."""
        return {
            "running": self._running.total(),
            "waiting": len(self._waiting),
            "max_running": self._kind.at_once,
            "max_waiting": self._kind.waiting,
        }

    async def run(self, caller: str, function: Callable[..., Result], *values: object) -> Result:
        """Run a blocking function when its turn comes. Cancelling ends it at its next `check_job`.

        Raises QueueFull, TooManyRequests, TooCostly, and the errors of the function.
        """
        async with self.turn(caller) as turn:
            return await turn.run(function, *values)

    async def run_in_child(
        self, caller: str, memory: int, allowed: tuple[type, ...], function: Callable[..., Result], *values: object
    ) -> Result:
        """Like `run`, in a separate process that may use ``memory`` bytes; cancelling kills it.

        ``allowed``: the classes allowed in its result. Raises the errors of `run`; TooCostly for memory too.
        """
        async with self.turn(caller) as turn:
            return await in_child(turn.job, memory, allowed, function, *values)

    async def last_of(self, caller: str, steps: Generator[Piece, None, None]) -> Piece:
        """The last item of a generator that blocks at each step and may end between steps. Raises `run`'s errors."""
        async with self.turn(caller) as turn:
            try:
                last = await turn.run(next, steps)
                while (step := await turn.run(next, steps, None)) is not None:
                    last = step
                return last
            finally:
                await run_uninterrupted(steps.close)

    async def stream(self, caller: str, pieces: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a file as they are generated; the first is ready, so that refusals come before it.

        The file keeps its place to the end, but takes a turn for each piece: a slow listener blocks no other caller.
        Raises the errors of `run`.
        """
        stream = self._stream(caller, pieces)
        first = await anext(stream, b"")

        async def whole() -> AsyncGenerator[bytes, None]:
            async with aclosing(stream):
                yield first
                async for piece in stream:
                    yield piece

        return whole()

    @asynccontextmanager
    async def turn(self, caller: str, patient: bool = False) -> AsyncIterator[ThreadTurn]:
        """Wait for a place in the queue, then for a turn. ``patient``: for work with another limit.

        Raises QueueFull, TooManyRequests.
        """
        with self._place(caller, patient):
            async with self._turn(caller):
                yield ThreadTurn(self._job(), self._threads)

    @contextlib.contextmanager
    def _place(self, caller: str, patient: bool = False) -> Generator[None, None, None]:
        kind, count, total = self._kind, self._places[caller], self._places.total()
        if not patient and total >= kind.at_once + kind.waiting:
            raise QueueFull(
                f"{kind.at_once} {kind.plural} are being {kind.done} and {kind.waiting} are waiting, the maximum; "
                "try again in a moment",
                5,
            )
        if not patient and count >= kind.per_caller:
            raise TooManyRequests(
                f"{count} of your {kind.plural} are being {kind.done} or waiting; at most {kind.per_caller} are "
                "allowed at a time: wait for one of them",
                5,
            )
        self._places[caller] += 1
        try:
            yield
        finally:
            self._places[caller] -= 1
            if not self._places[caller]:
                del self._places[caller]

    @asynccontextmanager
    async def _turn(self, caller: str) -> AsyncIterator[None]:
        if self._running.total() < self._kind.at_once:
            self._running[caller] += 1
        else:
            grant: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(entry := (caller, grant))
            try:
                await grant
            except asyncio.CancelledError:
                if grant.cancelled():
                    with contextlib.suppress(ValueError):
                        self._waiting.remove(entry)
                else:
                    self._give_back(caller)
                raise
        try:
            yield
        finally:
            self._give_back(caller)

    def _give_back(self, caller: str) -> None:
        """End a turn, and begin the next one."""
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        while self._waiting:
            chosen = min(self._waiting, key=lambda entry: self._running[entry[0]])
            self._waiting.remove(chosen)
            if not chosen[1].cancelled():  # its caller has left, and has had no turn of the loop since
                self._running[chosen[0]] += 1
                chosen[1].set_result(None)
                return

    def _job(self) -> Job:
        kind = self._kind
        too_long = f"{kind.singular} took longer than {kind.seconds:g} s to be {kind.done}; {kind.remedy}"
        return Job(kind.seconds, too_long, f"{kind.singular} takes too much memory to be {kind.done}; {kind.remedy}")

    async def _stream(self, caller: str, pieces: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
        turn = ThreadTurn(self._job(), self._threads)
        with self._place(caller):
            try:
                piece: bytes | None = b""
                while piece is not None:
                    async with self._turn(caller):
                        piece = await turn.run(next, pieces, None)
                    if piece:
                        yield piece
            finally:
                await run_uninterrupted(pieces.close)

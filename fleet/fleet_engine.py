"""The fleet as one engine: many replicas behind the names that the studio uses of an engine."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, ExitStack, aclosing, suppress
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from engine import AudioChunk, ConfigError, EngineInfo, EngineStats, EngineStopped, Reference, Utterance
from fleet.membership import (
    ANSWER_SECONDS,
    PATIENCE_SECONDS,
    QUESTION_SECONDS,
    Member,
    Membership,
    ReplicaLost,
    Transport,
)
from fleet.routed_utterance import TRIES, RoutedUtterance

log = logging.getLogger(__name__)

T = TypeVar("T")

STOPPED = "the engine was stopped"
ABSENT_SECONDS = 5.0
"""Without a word from any replica for so long, the fleet counts as failed, until one answers."""
HEAD_SECONDS = 5.0
"""How often it is looked whether the head of Ray's cluster still answers, and how long that may take."""
HEAD_GONE = (
    "Ray's head does not answer: takes go on, but an engine that ends is not replaced any more. Start Ray and the "
    "studio again as soon as it suits"
)
CLOSE_SECONDS = 10.0
"""A stop waits so long for what is under way to end."""

Connect = Callable[[], Awaitable[Transport]]
"""Makes the line, in the event loop that is going to use it."""


class FleetEngine:
    """Any number of tasks, on any event loops, may speak; a loop of the fleet's own, in a thread, does the work."""

    def __init__(self, connect: Connect, free: Callable[[], None], head: str | None = None) -> None:
        """Blocking, until the replicas that are up have said who they are, QUESTION_SECONDS at most; with one that has
        not by then it goes on once that answers. ``free`` lets go of what they run on; ``head``: HOST:PORT of what
        replaces them.

        Raises EngineStopped when none has, ConfigError when they differ, and what ``connect`` raises: ``free``
        is then still to be called.
        """
        self._free = free
        self._is_stopped = False
        self._work: set[asyncio.Task[Any]] = set()  # what callers wait for
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        with ExitStack() as undo:
            undo.callback(self._end_loop)
            self._replicas = self._do(self._meet(connect))
            undo.pop_all()
        self._info = together(self._replicas.members)
        self._watch = asyncio.run_coroutine_threadsafe(self._replicas.watch(), self._loop)
        self._trouble: str | None = None
        self._head_watch = asyncio.run_coroutine_threadsafe(self._watch_head(head), self._loop) if head else None

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """As Engine.speak. A take outlives its replica: another goes on with it where it was."""
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[AudioChunk | BaseException] = asyncio.Queue()

        def deliver(item: AudioChunk | BaseException) -> None:
            with suppress(RuntimeError):  # the caller's event loop was closed under its take: nobody listens
                loop.call_soon_threadsafe(items.put_nowait, item)

        take = self._submit(self._take(utterance, deliver))
        try:
            while True:
                item = await items.get()
                if isinstance(item, BaseException):
                    raise item
                yield item
                if item.finish_reason:
                    return
        finally:
            take.cancel()

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """As Engine.encode_reference, by whichever replica has least to do."""
        audio = np.asarray(pcm, np.float32)
        mono = audio.mean(0) if audio.ndim == 2 else audio  # as the engine would make it: half the bytes to send
        return await self._ask("encode_reference", mono, sample_rate, text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """As Engine.align, by whichever replica has least to do."""
        return await self._ask("align", text, codes)

    @property
    def info(self) -> EngineInfo:
        """With the rows of those that are there: some may be away, and a fleet may grow."""
        members = self._replicas.members
        return together(members) if members else self._info

    def stats(self) -> EngineStats:
        """The replicas' sums and their own figures, as of a second ago."""
        sums = added({name: member.stats for name, member in self._replicas.members.items()})
        return replace(sums, trouble=self._trouble)

    @property
    def failure(self) -> str | None:
        """Why nothing can be spoken; None again as soon as a replica has come back."""
        if self._is_stopped:
            return STOPPED
        if self._watch.done():
            return f"the fleet's watch has ended: {self._watch.exception()}"
        if time.monotonic() - self._replicas.heard_at > ABSENT_SECONDS + ANSWER_SECONDS:
            return "no replica of the fleet answers; if none comes back, Ray has ended: start it and the studio again"
        return None

    def stop(self) -> None:
        """End whatever callers wait for with EngineStopped and let go of the replicas. Blocking, seconds."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._do(self._close())
        self._end_loop()
        self._free()

    async def _take(self, utterance: Utterance, deliver: Callable[[AudioChunk | BaseException], None]) -> None:
        """Hand a take's chunks over, and what ends it early."""
        try:
            async with aclosing(RoutedUtterance(self._replicas, utterance).chunks()) as chunks:
                async for chunk in chunks:
                    deliver(chunk)
        except asyncio.CancelledError:
            deliver(EngineStopped(STOPPED))  # whom nobody stopped has left, and hears nothing any more
            raise
        except Exception as error:  # noqa: BLE001  (whatever ends a take is told to who listens)
            deliver(error)

    async def _ask(self, what: str, *arguments: Any) -> Any:
        asked = self._submit(self._by_any(what, *arguments))
        try:
            return await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            if self._is_stopped:
                raise EngineStopped(STOPPED) from None
            raise

    async def _by_any(self, what: str, *arguments: Any) -> Any:
        """What a replica answers; another is asked when one goes meanwhile."""
        avoid: set[str] = set()
        until = time.monotonic() + PATIENCE_SECONDS
        failed = 0
        while True:
            name = await self._replicas.wait_for_one(None, avoid, until)
            try:
                with self._replicas.working(name):
                    return await self._replicas.call(name, what, *arguments)
            except (ReplicaLost, EngineStopped) as error:
                log.warning("replica %s failed at %s: %s", name, what, error)
                failed += 1
                if failed == TRIES:
                    raise EngineStopped(f"{TRIES} replicas failed at {what}, the last: {error}") from error
                avoid.add(name)
                self._replicas.suspect(name)

    async def _meet(self, connect: Connect) -> Membership:
        async with AsyncExitStack() as undo:
            replicas = Membership(await connect())
            undo.push_async_callback(replicas.close)
            if not (names := replicas.line.names()):
                raise EngineStopped("no replica came up")
            await replicas.ask(QUESTION_SECONDS)
            if replicas.refused:
                raise ConfigError("; ".join(replicas.refused.values()))
            if not replicas.members:
                raise EngineStopped(
                    f"{len(names)} replicas are up, and none has said within {QUESTION_SECONDS:g} s who it is"
                )
            undo.pop_all()
        return replicas

    async def _watch_head(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        while True:
            try:
                connecting = asyncio.open_connection(host.strip("[]"), int(port))
                _, writer = await asyncio.wait_for(connecting, HEAD_SECONDS)
                writer.close()
                self._trouble = None
            except (TimeoutError, OSError):
                if self._trouble is None:
                    log.warning(HEAD_GONE)
                self._trouble = HEAD_GONE
            await asyncio.sleep(HEAD_SECONDS)

    async def _close(self) -> None:
        self._watch.cancel()
        if self._head_watch is not None:
            self._head_watch.cancel()
        ending = list(self._work)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending, timeout=CLOSE_SECONDS)
        await self._replicas.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Any:
        if self._is_stopped:
            work.close()
            raise EngineStopped(STOPPED)
        return asyncio.run_coroutine_threadsafe(self._until_stopped(work), self._loop)

    async def _until_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """What it returns; a stop cancels it."""
        task = asyncio.current_task()
        assert task is not None
        self._work.add(task)
        try:
            return await work
        finally:
            self._work.discard(task)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def together(members: dict[str, Member]) -> EngineInfo:
    """What a fleet is: like each of its replicas, with the rows of all."""
    infos = [member.info for member in members.values()]
    one = infos[0]
    return replace(
        one,
        device=f"{len(infos)} × {one.device}",
        max_rows=sum(info.max_rows for info in infos),
        max_waiting=sum(info.max_waiting for info in infos),
    )


def added(replicas: dict[str, EngineStats]) -> EngineStats:
    """Sums of the figures, and each one's own."""
    names = [field.name for field in fields(EngineStats) if field.name not in ("replicas", "trouble")]
    sums = {name: sum(getattr(stats, name) for stats in replicas.values()) for name in names}
    return EngineStats(**sums, replicas=replicas)

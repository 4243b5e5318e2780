"""The fleet as one engine: many replicas behind the interface of an engine."""

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
    POLL_TIMEOUT_SECONDS,
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
"""After this long without a message from any replica, the fleet counts as failed until one answers."""
HEAD_SECONDS = 5.0
"""Interval of checks whether the head of Ray's cluster answers, and their timeout."""
HEAD_GONE = (
    "Ray's head node does not answer: takes continue, but engines that stop are no longer replaced. Restart Ray and "
    "the studio when convenient"
)
CLOSE_SECONDS = 10.0  # seconds for which a stop waits for running work

Connect = Callable[[], Awaitable[Transport]]
"""Creates the transport in the event loop that will use it."""


class FleetEngine:
    """Used from any number of tasks and event loops; an event loop in a thread does the work."""

    def __init__(self, connect: Connect, release: Callable[[], None], head: str | None = None) -> None:
        """Wait for the running replicas to describe themselves, POLL_TIMEOUT_SECONDS at most; late ones join later.

        ``release`` releases the resources of the replicas; ``head`` is HOST:PORT of Ray's head node. Blocking. Raises
        EngineStopped if no replica answers, ConfigError if they differ, and the errors of ``connect``; the caller must
        then call ``release``.
        """
        self._release = release
        self._is_stopped = False
        self._stopping = threading.Lock()  # a stop ends work submitted before it, and none is submitted after
        self._work: set[asyncio.Task[Any]] = set()  # that callers wait for
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        with ExitStack() as undo:
            undo.callback(self._end_loop)
            self._replicas = self._run(self._connect(connect))
            undo.pop_all()
        self._info = combined_info(self._replicas.members)
        self._watch = asyncio.run_coroutine_threadsafe(self._replicas.watch(), self._loop)
        self._trouble: str | None = None
        self._head_watch = asyncio.run_coroutine_threadsafe(self._watch_head(head), self._loop) if head else None

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """Like Engine.speak. If its replica stops, another one continues the take."""
        loop = asyncio.get_running_loop()
        items: asyncio.Queue[AudioChunk | BaseException] = asyncio.Queue()

        def deliver(item: AudioChunk | BaseException) -> None:
            with suppress(RuntimeError):  # the caller's event loop is closed
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
        """Like Engine.encode_reference, on the least loaded replica."""
        audio = np.asarray(pcm, np.float32)
        mono = audio.mean(0) if audio.ndim == 2 else audio  # as the engine does: half the bytes to send
        return await self._call("encode_reference", mono, sample_rate, text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Like Engine.align, on the least loaded replica."""
        return await self._call("align", text, codes)

    @property
    def info(self) -> EngineInfo:
        """The info with the rows of the replicas that are up now."""
        members = self._replicas.members
        return combined_info(members) if members else self._info

    def stats(self) -> EngineStats:
        """Sums over the replicas and their own figures, up to a second old."""
        sums = combined_stats({name: member.stats for name, member in self._replicas.members.items()})
        return replace(sums, trouble=self._trouble)

    @property
    def failure(self) -> str | None:
        """Why nothing can be generated; None while a replica answers."""
        if self._is_stopped:
            return STOPPED
        if self._watch.done():
            return f"the monitoring of the fleet has ended: {self._watch.exception()}"
        if time.monotonic() - self._replicas.last_message_at > ABSENT_SECONDS + ANSWER_SECONDS:
            return "no replica of the fleet answers; if none comes back, Ray has stopped: restart it and the studio"
        return None

    def stop(self) -> None:
        """End all running calls with EngineStopped and release the replicas. Blocks for seconds."""
        with self._stopping:
            if self._is_stopped:
                return
            self._is_stopped = True
        try:
            self._run(self._close())
        finally:
            self._end_loop()
            self._release()

    async def _take(self, utterance: Utterance, deliver: Callable[[AudioChunk | BaseException], None]) -> None:
        """Deliver a take's chunks, and the error that ends it early."""
        try:
            async with aclosing(RoutedUtterance(self._replicas, utterance).chunks()) as chunks:
                async for chunk in chunks:
                    deliver(chunk)
        except asyncio.CancelledError:
            deliver(EngineStopped(STOPPED))  # a caller that cancelled does not receive it
            raise
        except Exception as error:  # noqa: BLE001  (every error is delivered to the caller)
            deliver(error)

    async def _call(self, method: str, *arguments: Any) -> Any:
        future = self._submit(self._call_any(method, *arguments))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._is_stopped:
                raise EngineStopped(STOPPED) from None
            raise

    async def _call_any(self, method: str, *arguments: Any) -> Any:
        """Call a method of any replica; if one fails, try another."""
        excluded: set[str] = set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        failures = 0
        while True:
            name = await self._replicas.wait_for_replica(None, excluded, deadline)
            try:
                with self._replicas.working(name):
                    return await self._replicas.call(name, method, *arguments)
            except (ReplicaLost, EngineStopped) as error:
                log.warning("replica %s failed at %s: %s", name, method, error)
                failures += 1
                if failures == TRIES:
                    raise EngineStopped(f"{TRIES} replicas failed at {method}, the last: {error}") from error
                excluded.add(name)
                self._replicas.suspect(name)

    async def _connect(self, connect: Connect) -> Membership:
        async with AsyncExitStack() as undo:
            replicas = Membership(await connect())
            undo.push_async_callback(replicas.close)
            if not (names := replicas.transport.names()):
                raise EngineStopped("no replica came up")
            await replicas.request_stats(POLL_TIMEOUT_SECONDS)
            if replicas.refused:
                raise ConfigError("; ".join(replicas.refused.values()))
            if not replicas.members:
                raise EngineStopped(
                    f"{len(names)} replicas are up, and none has answered within {POLL_TIMEOUT_SECONDS:g} s"
                )
            undo.pop_all()
        return replicas

    async def _watch_head(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        while True:
            try:
                connection = asyncio.open_connection(host.strip("[]"), int(port))
                _, writer = await asyncio.wait_for(connection, HEAD_SECONDS)
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
        tasks = list(self._work)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        await self._replicas.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Any:
        with self._stopping:
            if self._is_stopped:
                work.close()
                raise EngineStopped(STOPPED)
            return asyncio.run_coroutine_threadsafe(self._until_stopped(work), self._loop)

    async def _until_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work; a stop cancels it."""
        task = asyncio.current_task()
        assert task is not None
        self._work.add(task)
        try:
            return await work
        finally:
            self._work.discard(task)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def combined_info(members: dict[str, Member]) -> EngineInfo:
    """The info of any replica, with the rows of all."""
    infos = [member.info for member in members.values()]
    return replace(
        infos[0],
        device=f"{len(infos)} × {infos[0].device}",
        max_rows=sum(info.max_rows for info in infos),
        max_waiting=sum(info.max_waiting for info in infos),
    )


def combined_stats(replicas: dict[str, EngineStats]) -> EngineStats:
    """Sums over the replicas, and the figures of each."""
    names = [field.name for field in fields(EngineStats) if field.name not in ("replicas", "trouble")]
    sums = {name: sum(getattr(stats, name) for stats in replicas.values()) for name in names}
    return EngineStats(**sums, replicas=replicas)

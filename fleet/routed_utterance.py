"""Routes an utterance to replicas: if one dies or stops answering, another continues at the same frame."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np

from engine import AudioChunk, EngineFull, EngineStopped, Timing, Utterance
from fleet.membership import PATIENCE_SECONDS, Membership, ReplicaLost, Stream
from fleet.replica import HEARTBEAT_SECONDS, unpack

log = logging.getLogger(__name__)

TRIES = 3  # number of consecutive replicas that may fail without a frame before the utterance fails
FIRST_SECONDS = 10.0  # timeout of a replica's first item, as a connection may have to be made
STALL_SECONDS = 1.0  # timeout of each further item while another replica can continue the take
ALONE_SECONDS = 20.0  # the same timeout while no other replica can
LATE_TIMES = 5.0
"""On slow machines, the timeout is this many times the delay of the last item, if that is longer."""
POLL_SECONDS = 0.25  # interval of checks for a free row
_END = object()  # marks the end of a stream


class RoutedUtterance:
    """Iterate `chunks` once; leaving the iteration cancels the utterance at its replica too."""

    def __init__(self, replicas: Membership, utterance: Utterance) -> None:
        self._replicas = replicas
        self._utterance = utterance
        self._voice = voice_of(utterance)
        self._excluded: set[str] = set()
        self._codes: list[np.ndarray] = [] if utterance.so_far is None else [utterance.so_far]
        self._frames = utterance.frames_so_far
        self._start = time.perf_counter()
        self._patience = 1.0  # factor of the timeouts
        self._first_timing: Timing | None = None  # of the first chunk
        self._deadline = time.monotonic() + PATIENCE_SECONDS

    async def chunks(self) -> AsyncGenerator[AudioChunk, None]:
        """Like Engine.speak of one engine."""
        failures = full_queues = 0
        while True:
            name = await self._replicas.wait_for_replica(self._voice, self._excluded, self._deadline)
            may_wait = not (self._replicas.has_room(name) and self._has_another(name))
            try:
                async with aclosing(self._stream_from(name, may_wait)) as chunks:
                    async for chunk in chunks:
                        failures = 0  # during an update many replicas may stop one after another
                        yield chunk
                        if chunk.finish_reason:
                            return
                raise ReplicaLost("its stream ended before the utterance did")
            except EngineFull:
                if not may_wait:
                    self._replicas.mark_full(name)
                    continue
                full_queues += 1
                if self._first_timing is None and (full_queues > 1 or not self._has_another(name)):
                    raise
                await self._leave_full(name)
            except (ReplicaLost, EngineStopped) as error:
                log.warning("replica %s failed a take after %d frames: %s", name, self._frames, error)
                failures += 1
                if failures == TRIES:
                    raise EngineStopped(f"{TRIES} replicas failed one after another, the last: {error}") from error
                self._excluded.add(name)
                self._replicas.suspect(name)
                self._deadline = time.monotonic() + PATIENCE_SECONDS

    def _has_another(self, name: str) -> bool:
        return self._replicas.choose(None, self._excluded | {name}) is not None

    async def _leave_full(self, name: str) -> None:
        """Try other replicas after a full queue, the least loaded first.

        A take that has begun waits for a free row if all queues are full. Raises EngineStopped after the deadline.
        """
        self._voice = None
        self._excluded.add(name)
        if self._first_timing is not None:
            if time.monotonic() > self._deadline:
                raise EngineStopped(f"its replica failed, and the others had no free row for {PATIENCE_SECONDS:g} s")
            await asyncio.sleep(POLL_SECONDS)

    async def _stream_from(self, name: str, may_wait: bool) -> AsyncGenerator[AudioChunk, None]:
        """The chunks of one replica. Raises ReplicaLost, and the engine's errors."""
        offset = time.perf_counter() - self._start
        with self._replicas.working(name):
            stream = self._replicas.transport.open(name, self._remaining(), may_wait)
            try:
                timeout = FIRST_SECONDS * self._patience
                while True:
                    request_time = time.monotonic()
                    item = await self._next_item(stream, name, timeout)
                    if item is _END:
                        return
                    self._replicas.mark_alive(name)
                    delay = time.monotonic() - request_time - HEARTBEAT_SECONDS
                    timeout = max(STALL_SECONDS * self._patience, LATE_TIMES * delay)
                    if isinstance(item, tuple):
                        yield self._retimed(unpack(item), offset)
            finally:
                stream.cancel()

    async def _next_item(self, stream: Stream, name: str, timeout: float) -> Any:
        """The next item; _END after the last. Raises ReplicaLost after ``timeout`` seconds without an item.

        The timeout is longer if no other replica could continue, as this one may only be busy.
        """
        next_item = asyncio.ensure_future(_next(stream))
        start = time.monotonic()
        try:
            while not (await asyncio.wait({next_item}, timeout=timeout))[0]:
                silent_seconds = time.monotonic() - start
                if silent_seconds >= ALONE_SECONDS or self._replicas.choose(None, {name}) is not None:
                    self._patience *= 2  # the next replica gets more time
                    raise ReplicaLost(f"it sent nothing for {silent_seconds:.1f} s")
            return next_item.result()
        finally:
            if not next_item.done():
                next_item.cancel()
                await asyncio.wait({next_item})

    def _remaining(self) -> Utterance:
        """The utterance with the frames received so far."""
        return replace(self._utterance, so_far=np.concatenate(self._codes, axis=1) if self._frames else None)

    def _retimed(self, chunk: AudioChunk, offset: float) -> AudioChunk:
        """A chunk with the timing of the whole take, ``offset`` seconds more. Raises ReplicaLost on a gap."""
        if chunk.first_frame != self._frames:
            raise ReplicaLost(f"it continued at frame {chunk.first_frame} instead of {self._frames}")
        self._codes.append(chunk.codes)
        self._frames += chunk.frames
        timing = chunk.timing
        first_timing = self._first_timing = self._first_timing or Timing(
            offset + timing.admitted, offset + timing.first_frame, 0.0
        )
        return replace(chunk, timing=Timing(first_timing.admitted, first_timing.first_frame, offset + timing.now))


async def _next(stream: Stream) -> Any:
    return await anext(stream, _END)


def voice_of(utterance: Utterance) -> bytes | None:
    """A digest of an utterance's references; None for the random voice, which has no home."""
    if not utterance.references:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for reference in utterance.references:
        digest.update(f"{reference.codes.shape} {len(reference.text)} {reference.text}".encode())
        digest.update(reference.codes.tobytes())
    return digest.digest()

"""An utterance that replicas serve: where its replica dies or falls silent, another continues at the very frame."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np

from engine import AudioChunk, EngineFull, EngineStopped, Timing, Utterance
from fleet.membership import PATIENCE_SECONDS, Membership, ReplicaLost, Stream
from fleet.replica import HEARTBEAT_SECONDS, unpacked
from fleet.routing import voice_of

log = logging.getLogger(__name__)

TRIES = 3
"""Replicas that an utterance is given to, one after another and without a frame from any of them, before it fails."""
FIRST_SECONDS = 10.0
"""A replica's very first word may take so long: the connection to it may have to be made."""
STALL_SECONDS = 1.0
"""After it, a replica that says nothing for so long is given up …"""
ALONE_SECONDS = 20.0
"""… where another can go on; after so long where none can, …"""
LATE_TIMES = 5.0
"""… or for so many times as long as its last word was late, on machines that are slow altogether."""
PLACE_SECONDS = 0.25
"""How often it looks for a place."""


class RoutedUtterance:
    """Iterate `chunks` once; leaving the iteration ends the utterance, at its replica too."""

    def __init__(self, replicas: Membership, utterance: Utterance) -> None:
        self._replicas = replicas
        self._utterance = utterance
        self._voice = voice_of(utterance)
        self._avoid: set[str] = set()
        self._heard: list[np.ndarray] = [] if utterance.so_far is None else [utterance.so_far]
        self._frames = utterance.frames_so_far
        self._start = time.perf_counter()
        self._patience = 1.0  # times the limits of silence
        self._first: Timing | None = None  # of the first chunk, once it has begun
        self._patient_until = time.monotonic() + PATIENCE_SECONDS

    async def chunks(self) -> AsyncGenerator[AudioChunk, None]:
        """The utterance as one engine would give it. Raises as Engine.speak."""
        failed = full = 0
        while True:
            name = await self._replicas.wait_for_one(self._voice, self._avoid, self._patient_until)
            may_wait = not (self._replicas.has_room(name) and self._has_another(name))
            try:
                async with aclosing(self._from(name, may_wait)) as chunks:
                    async for chunk in chunks:
                        failed = 0  # replicas that go one after another, as in an update, may be many
                        yield chunk
                        if chunk.finish_reason:
                            return
                raise ReplicaLost("its stream ended before the utterance did")
            except EngineFull:
                if not may_wait:
                    self._replicas.took_its_rows(name)
                    continue
                full += 1
                if self._first is None and (full > 1 or not self._has_another(name)):
                    raise
                await self._turn_from(name)
            except (ReplicaLost, EngineStopped) as error:
                log.warning("replica %s failed a take after %d frames: %s", name, self._frames, error)
                failed += 1
                if failed == TRIES:
                    raise EngineStopped(f"{TRIES} replicas failed one after another, the last: {error}") from error
                self._avoid.add(name)
                self._replicas.suspect(name)
                self._patient_until = time.monotonic() + PATIENCE_SECONDS

    def _has_another(self, name: str) -> bool:
        return self._replicas.choose(None, self._avoid | {name}) is not None

    async def _turn_from(self, full: str) -> None:
        """After a full line: elsewhere, wherever there is most room.

        What was begun is not broken off because all lines are full: it waits for a place. Raises EngineStopped when
        none comes.
        """
        self._voice = None
        self._avoid.add(full)
        if self._first is not None:
            if time.monotonic() > self._patient_until:
                raise EngineStopped(f"its replica failed, and the others had no place for {PATIENCE_SECONDS:g} s")
            await asyncio.sleep(PLACE_SECONDS)

    async def _from(self, name: str, may_wait: bool) -> AsyncGenerator[AudioChunk, None]:
        """What one replica gives. Raises ReplicaLost, and what the engine raises."""
        before = time.perf_counter() - self._start
        with self._replicas.working(name):
            stream = self._replicas.line.open(name, self._rest(), may_wait)
            try:
                limit = FIRST_SECONDS * self._patience
                while True:
                    asked = time.monotonic()
                    item = await self._word(stream, name, limit)
                    if item is ...:
                        return
                    self._replicas.heard(name)
                    late = time.monotonic() - asked - HEARTBEAT_SECONDS
                    limit = max(STALL_SECONDS * self._patience, LATE_TIMES * late)
                    if isinstance(item, tuple):
                        yield self._placed(unpacked(item), before)
            finally:
                stream.cancel()

    async def _word(self, stream: Stream, name: str, limit: float) -> Any:
        """The next item, ... after the last. Raises ReplicaLost after ``limit`` seconds of silence.

        A silent replica is borne with longer while no other could go on: it may merely be busy.
        """
        following = asyncio.ensure_future(_next(stream))
        began = time.monotonic()
        try:
            while not (await asyncio.wait({following}, timeout=limit))[0]:
                silent = time.monotonic() - began
                if silent >= ALONE_SECONDS or self._replicas.choose(None, {name}) is not None:
                    self._patience *= 2  # should this have been in vain, the next one is given more time
                    raise ReplicaLost(f"it said nothing for {silent:.1f} s")
            return following.result()
        finally:
            if not following.done():
                following.cancel()
                await asyncio.wait({following})

    def _rest(self) -> Utterance:
        """What is still to be spoken."""
        return replace(self._utterance, so_far=np.concatenate(self._heard, axis=1) if self._frames else None)

    def _placed(self, chunk: AudioChunk, before: float) -> AudioChunk:
        """A chunk with the take's own clock, ``before`` seconds ahead of the replica's. Raises ReplicaLost on a gap."""
        if chunk.first_frame != self._frames:
            raise ReplicaLost(f"it went on at frame {chunk.first_frame} where {self._frames} was due")
        self._heard.append(chunk.codes)
        self._frames += chunk.frames
        timing = chunk.timing
        first = self._first = self._first or Timing(before + timing.admitted, before + timing.first_frame, 0.0)
        return replace(chunk, timing=Timing(first.admitted, first.first_frame, before + timing.now))


async def _next(stream: Stream) -> Any:
    return await anext(stream, ...)

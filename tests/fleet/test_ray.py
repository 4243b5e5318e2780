"""The complete fleet with Ray: two replicas here, one killed, one frozen, all replaced, while takes continue."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from engine import Engine, EngineConfig, EngineStats, InvalidUtterance, Reference, Sampling, Utterance
from fleet import start
from fleet.autoscaling import ReplicaRange
from fleet.fleet_engine import FleetEngine
from tests.engine.speaking import hear, running_engine, until
from tests.fleet.frontends.several import Several
from tests.tiny import FEW_CODEBOOKS

pytestmark = pytest.mark.ray

FRAMES = 100
PAUSE_SECONDS = 0.3
"""Between a caller's takes; otherwise callers would take processor time from starting replicas."""
CHANGE_SECONDS = 150.0
"""Time limit for replacing a lost replica on a busy machine."""


def config_of(folder: Path) -> EngineConfig:
    return EngineConfig(str(folder), device="cpu", max_rows=2, max_waiting=4, threads=1)


@pytest.fixture(scope="module")
def alone(quick_checkpoint: Path) -> Iterator[Engine]:
    """A single engine, for the codes of an undisturbed take."""
    with running_engine(quick_checkpoint, max_rows=2, threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def fleet(studio: Several) -> FleetEngine:
    """A fleet started by a thread that has ended: the fleet outlives it."""
    engine = studio.service.host.engine()
    assert isinstance(engine, FleetEngine)
    return engine


def silent(doing: str, fraction: float) -> None:
    """Ignores progress."""


def take(seed: int, frames: int = FRAMES) -> Utterance:
    """A take that continues to its last frame, because with its words the random weights produce no earlier end."""
    return Utterance("Hello there.", (), Sampling(seed=seed), max_frames=frames)


def working_replica(fleet: FleetEngine) -> str:
    """The name of a replica that is speaking."""
    return next(name for name, member in fleet._replicas.members.items() if member.open)


async def process_of(fleet: FleetEngine, name: str) -> int:
    return int(await asyncio.wrap_future(fleet._submit(fleet._replicas.transport.call(name, "process"))))


async def two_idle_replicas(fleet: FleetEngine) -> dict[str, EngineStats]:
    """Wait until two replicas are available and idle."""

    def are_ready() -> bool:
        replicas = fleet._replicas
        answering = [name for name, member in replicas.members.items() if not member.is_silent]
        return len(set(answering) & set(replicas.transport.names())) == 2 and fleet.stats().running == 0

    await until(are_ready, CHANGE_SECONDS)
    return dict(fleet.stats().replicas)


class SilentHandle:
    """Ray Serve's handle of replicas, one of which does not respond."""

    def options(self, **_: Any) -> SilentHandle:
        return self

    def broadcast(self, method: str) -> SilentHandle:
        return self

    async def results_async(self, **_: Any) -> None:
        raise TimeoutError("Timed out waiting for broadcast results.")


async def test_discovery_succeeds_although_a_replica_does_not_answer() -> None:
    from fleet.ray_serve import RayTransport

    await RayTransport(cast(Any, SilentHandle())).discover()


async def test_fleet_takes_equal_those_of_one_engine(fleet: FleetEngine, alone: Engine) -> None:
    mine, theirs = await asyncio.gather(
        *(asyncio.gather(*(hear(engine, take(seed, 20)) for seed in range(4))) for engine in (alone, fleet))
    )
    for one, other in zip(mine, theirs, strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert np.array_equal(one.pcm, other.pcm)
    assert fleet.info.max_rows == 4 and fleet.info.device == "2 × cpu"
    assert len((await two_idle_replicas(fleet)).keys()) == 2


async def test_engine_refusals_reach_the_caller_and_long_clips_are_encoded(fleet: FleetEngine) -> None:
    wrong = Reference(np.zeros((FEW_CODEBOOKS.num_codebooks + 1, 5), np.int16), "words")
    with pytest.raises(InvalidUtterance, match="codebooks"):
        await hear(fleet, Utterance("Hello.", (wrong,), max_frames=4))
    sound = np.zeros((2, 30 * 48_000), np.float32)  # above gRPC's default limit
    assert (await fleet.encode_reference(sound, 48_000, "words")).frames > 0


async def test_closing_a_take_frees_its_row(fleet: FleetEngine) -> None:
    before = sum(replica.cancelled for replica in (await two_idle_replicas(fleet)).values())
    async with aclosing(fleet.speak(take(1, 100_000 // 100))) as chunks:
        await anext(chunks)
    await until(lambda: fleet.stats().running == 0 and fleet.stats().cancelled == before + 1)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
async def test_take_continues_without_a_gap_after_losing_its_replica(
    fleet: FleetEngine, alone: Engine, blow: signal.Signals
) -> None:
    await two_idle_replicas(fleet)
    whole = await hear(alone, take(7))
    assert whole.codes.shape[1] == FRAMES
    chunks, signalled_at, longest = [], 0.0, 0.0
    async with aclosing(fleet.speak(take(7))) as stream:
        async for chunk in stream:
            now = time.monotonic()
            if signalled_at and chunk.resumed_at and not longest:
                longest = now - signalled_at
            chunks.append(chunk)
            if len(chunks) == 5:
                victim = await process_of(fleet, working_replica(fleet))
                os.kill(victim, blow)
                signalled_at = time.monotonic()
    try:
        assert [chunk.first_frame for chunk in chunks] == list(np.cumsum([0, *(chunk.frames for chunk in chunks[:-1])]))
        codes = np.concatenate([chunk.codes for chunk in chunks], axis=1)
        assert np.array_equal(codes, whole.codes), "no frame lost, none twice"
        pcm = np.concatenate([chunk.pcm for chunk in chunks])
        assert np.abs(pcm - whole.pcm).max() < 1e-5
        assert chunks[-1].resumed_at, "it was taken up again"
        print(f"{blow.name}: {longest:.2f} s until it went on")
    finally:
        if blow == signal.SIGSTOP:
            os.kill(victim, signal.SIGKILL)  # Serve would do so itself, some seconds later
    assert len(await two_idle_replicas(fleet)) >= 2, "another has come in its place"


async def test_takes_continue_during_an_update(fleet: FleetEngine, alone: Engine, quick_checkpoint: Path) -> None:
    before = await two_idle_replicas(fleet)
    update = asyncio.to_thread(
        start.deploy, config_of(quick_checkpoint), "another plan", ReplicaRange(2, 2), False, silent
    )
    updating = asyncio.create_task(update)

    async def speak_until_updated(seed: int, frames: int) -> list[int]:
        """Speak takes in sequence until the update ends; return the frames at which each take moved."""
        whole = await hear(alone, take(seed, frames))
        moved: list[int] = []
        while not updating.done():
            spoken = await hear(fleet, take(seed, frames))
            assert np.array_equal(spoken.codes, whole.codes), "no frame lost, none twice"
            moved += sorted({chunk.resumed_at for chunk in spoken.chunks if chunk.resumed_at})
            await asyncio.sleep(PAUSE_SECONDS)
        return moved

    moved = await asyncio.gather(speak_until_updated(3, 40), speak_until_updated(5, 40), speak_until_updated(7, 900))
    await updating
    print(f"takes moved during the update, short, short and long, at their frames {moved}")
    after = await two_idle_replicas(fleet)
    assert not {name for name in after if name in fleet._replicas.transport.names()} & before.keys(), "all are new"

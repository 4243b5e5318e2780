"""A fleet of 1 to 64 replicas, simulated: python -m benchmarks.fleet.simulate [--largest 16] [--out FILE]

The fleet's own code (fleet/membership.py, routed_utterance.py, routing.py) over engines that only simulate the timing
of an H200 (benchmarks/results/h200.json), on a simulated clock. The network, Ray and the ingress are left out.
`cpu_us_a_chunk` is this process's time per chunk, including its engines' share: it shows how much one process's
bookkeeping can handle.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fleet.membership
import fleet.routed_utterance
from benchmarks.fleet.timed import CHUNK, FRAME_SECONDS, JumpingLoop, Pace, TimedLine
from engine import EngineFull, EngineInfo, Reference, Utterance
from fleet.membership import Membership
from fleet.routed_utterance import RoutedUtterance

RESULTS = Path(__file__).parents[1] / "results"
SIZES = (1, 2, 4, 8, 16, 32, 64)
VOICES = 100
SECONDS = (4.0, 16.0)
"""Shortest and longest take."""
OFFERED = 0.75
"""Share of the replicas' capacity that is offered when measuring first audio."""
BUFFERED_SECONDS = 1.0
"""Seconds of audio that a listener buffers before playing, when replicas are killed."""
BURST_SECONDS = 8.0
"""Seconds of each take of a burst."""
BACK = 30.0
"""Seconds until a killed replica is back, loaded."""
SETTLE = 15.0
"""Seconds before measuring starts."""
CLIP_SECONDS = 0.015
"""Seconds to read a voice's clip of ten seconds, 215 positions; an estimate. The engine's 512 MiB hold 17 of these."""


def pace_of(measured: dict[str, Any]) -> Pace:
    """The results of `benchmarks.gpu` for a GPU, as an engine's pace."""
    frames = measured["engine"]["frames"]
    times = sorted(
        (int(key.removeprefix("frame_ms_b")), ms / 1000) for key, ms in frames.items() if key[:8] == "frame_ms"
    )
    with_codec = 64 * FRAME_SECONDS / measured["xrt_b64_with_codec"]
    codec = (with_codec - dict(times)[64]) / 64
    one, codec_alone = dict(times)[1], measured["engine"]["codec"]["chunk1_ms_float32"] / 1000
    hit = measured["engine"]["stream_1_float32"]["first_audio_ms"] / 1000 - one - codec_alone
    return Pace(tuple(times), codec, hit, hit + CLIP_SECONDS, voices=17, rows=64, waiting=64)


@dataclass
class Measurements:
    """The listeners' measurements."""

    first: list[float] = field(default_factory=list)
    """Seconds until each listener's first audio."""
    seconds: float = 0.0
    """Seconds of audio received."""
    chunks: int = 0
    lost: int = 0
    refused: int = 0
    silences: list[float] = field(default_factory=list)
    """The longest silence in seconds of each listener who buffered BUFFERED_SECONDS before playing."""


class Crowd:
    """Listeners with voices by Zipf's law: the second most popular is used half as often as the first."""

    def __init__(self, replicas: Membership, seed: int) -> None:
        self.replicas, self.measurements = replicas, Measurements()
        self._random = random.Random(seed)
        self._voices = [(Reference(np.full((10, 2), i, np.int16), "voice"),) for i in range(VOICES)]
        self._weights = [1 / (i + 1) for i in range(VOICES)]

    async def listen(self, seconds: float | None = None, voice: int | None = None) -> None:
        """One take, from request to end, of random length and voice unless these are given."""
        loop, measurements = asyncio.get_running_loop(), self.measurements
        frames = round((seconds or self._random.uniform(*SECONDS)) / FRAME_SECONDS)
        number = self._random.choices(range(VOICES), self._weights)[0] if voice is None else voice
        started = loop.time()
        got, plays_from, silence = 0.0, None, 0.0
        try:
            async with aclosing(
                RoutedUtterance(self.replicas, Utterance("text", self._voices[number], max_frames=frames)).chunks()
            ) as chunks:
                async for chunk in chunks:
                    now = loop.time()
                    if not got:
                        measurements.first.append(now - started)
                    if plays_from is not None and now > plays_from + got:
                        silence = max(silence, now - plays_from - got)
                        plays_from = now - got
                    got += chunk.frames * FRAME_SECONDS
                    if plays_from is None and got >= BUFFERED_SECONDS:
                        plays_from = now
                    measurements.chunks += 1
                    measurements.seconds += chunk.frames * FRAME_SECONDS
        except EngineFull:
            measurements.refused += 1
            return
        except fleet.membership.EngineStopped:
            measurements.lost += 1
            return
        measurements.silences.append(silence)

    async def repeat(self) -> None:
        while True:
            await self.listen()

    async def at_random(self, rate: float) -> None:
        """Takes that arrive as a Poisson process with this many a second."""
        takes: set[asyncio.Task[None]] = set()
        try:
            while True:
                await asyncio.sleep(self._random.expovariate(rate))
                takes.add(take := asyncio.create_task(self.listen()))
                take.add_done_callback(takes.discard)
        finally:
            await _end(list(takes))


@contextmanager
def fleet_on(loop: JumpingLoop) -> Iterator[None]:
    """Makes the fleet's code use that loop's clock."""
    modules: tuple[Any, ...] = (fleet.membership, fleet.routed_utterance)
    for module in modules:
        module.time = loop
    try:
        yield
    finally:
        for module in modules:
            module.time = time


INFO = EngineInfo("timed", "none", "none", 44100, 2048, 10, 4096, 64, 64, "codec", 0)


async def saturated(replicas: int, pace: Pace, seconds: float) -> dict[str, float]:
    """As many listeners as rows, each with one take after another: × real time, and the prefix caches' hit rate."""
    async with _fleet(replicas, pace) as (line, crowd):
        tasks = [asyncio.create_task(crowd.repeat()) for _ in range(replicas * pace.rows)]
        await asyncio.sleep(SETTLE)  # until they are out of step
        before, chunks, cpu = crowd.measurements.seconds, crowd.measurements.chunks, time.process_time()
        hits, misses = _prefixes(line)
        takes = {engine.name: engine.takes for engine in line.all}
        await asyncio.sleep(seconds)
        cpu = (time.process_time() - cpu) / (crowd.measurements.chunks - chunks)
        spread = [engine.takes - takes[engine.name] for engine in line.all]
        hits, misses = _prefixes(line)[0] - hits, _prefixes(line)[1] - misses
        await _end(tasks)
    return {
        "xrt": (crowd.measurements.seconds - before) / seconds,
        "prefix_hit_share": hits / (hits + misses),
        "most_over_mean_takes": max(spread) / (sum(spread) / replicas),
        "cpu_us_a_chunk": cpu * 1e6,
    }


async def offered(replicas: int, pace: Pace, xrt: float, seconds: float) -> dict[str, float]:
    """Listeners who arrive at random, OFFERED of the replicas' capacity: seconds each waits for audio."""
    async with _fleet(replicas, pace) as (_, crowd):
        rate = OFFERED * xrt / (sum(SECONDS) / 2)
        task = asyncio.create_task(crowd.at_random(rate))
        await asyncio.sleep(SETTLE + seconds)
        await _end([task])
    first = np.array(crowd.measurements.first[round(SETTLE * rate) :]) * 1000
    return {
        "rate": rate,
        "first_ms_p50": float(np.percentile(first, 50)),
        "first_ms_p95": float(np.percentile(first, 95)),
        "refused": crowd.measurements.refused,
    }


async def burst(replicas: int, pace: Pace) -> dict[str, float]:
    """As many takes of one voice at once as there are rows, spread over as many processes as replicas, each of which
    knows only its own takes: × real time until the last has ended, and seconds each waits for audio."""
    line = TimedLine(replicas, pace, INFO)
    crowds = []
    for number in range(replicas):
        known = Membership(line)
        await known.request_stats()
        crowds.append(Crowd(known, seed=number))
    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*(crowd.listen(BURST_SECONDS, 0) for crowd in crowds for _ in range(pace.rows)))
    first = np.array([first for crowd in crowds for first in crowd.measurements.first]) * 1000
    xrt = sum(crowd.measurements.seconds for crowd in crowds) / (loop.time() - started)
    await line.close()
    return {"burst_xrt": xrt, "burst_first_ms_p95": float(np.percentile(first, 95))}


async def killed(replicas: int, pace: Pace, xrt: float, kills: int) -> dict[str, float]:
    """The same with a replica killed each minute, back after BACK seconds: lost takes, and audible silence."""
    async with _fleet(replicas, pace) as (line, crowd):
        task = asyncio.create_task(crowd.at_random(0.5 * OFFERED * xrt / (sum(SECONDS) / 2)))
        await asyncio.sleep(SETTLE)
        for i in range(kills):
            name = f"replica-{i % replicas}"
            line.kill(name)
            await asyncio.sleep(BACK)
            line.bring_back(name)
            await asyncio.sleep(60 - BACK)
        await _end([task])
    return {"kill_lost": crowd.measurements.lost, "kill_silence_s": max(crowd.measurements.silences)}


@asynccontextmanager
async def _fleet(replicas: int, pace: Pace) -> AsyncIterator[tuple[TimedLine, Crowd]]:
    line = TimedLine(replicas, pace, INFO)
    known = Membership(line)
    await known.request_stats()
    watch = asyncio.create_task(known.watch())
    yield line, Crowd(known, seed=replicas)
    await _end([watch])
    await line.close()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _prefixes(line: TimedLine) -> tuple[int, int]:
    return sum(engine.hits for engine in line.all), sum(engine.misses for engine in line.all)


def run(work: Coroutine[Any, Any, dict[str, float]]) -> dict[str, float]:
    loop = JumpingLoop()
    try:
        with fleet_on(loop):
            return loop.run_until_complete(work)
    finally:
        loop.close()


def simulate(pace: Pace, sizes: tuple[int, ...] = SIZES, seconds: float = 20.0, kills: int = 2) -> list[dict[str, Any]]:
    """One row for each number of replicas."""
    rows = []
    for replicas in sizes:
        row: dict[str, Any] = {"replicas": replicas} | run(saturated(replicas, pace, seconds))
        row |= run(offered(replicas, pace, row["xrt"], seconds)) | run(burst(replicas, pace))
        if replicas > 1:
            row |= run(killed(replicas, pace, row["xrt"], kills))
        rows.append(row)
        row["share"] = row["xrt"] / (replicas * rows[0]["xrt"] / rows[0]["replicas"])
        print(json.dumps(row), flush=True)
    return rows


def summary(pace: Pace, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The results as JSON: the pace, the rows, and 64 replicas' share of 64 times one."""
    shown = {"frame_ms": {rows: round(1000 * pace.turn(rows), 2) for rows in (1, 8, 64)}, "hit_ms": 1000 * pace.hit}
    shown |= {"miss_ms": 1000 * pace.miss, "voices_kept": pace.voices, "chunk_frames": CHUNK}
    of_all = {f"sim_{row['replicas']}_share": round(row["share"], 3) for row in rows if row["replicas"] == SIZES[-1]}
    return {"pace": shown} | of_all | {"rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", type=Path, default=RESULTS / "h200.json", help="what benchmarks.gpu wrote")
    parser.add_argument("--out", type=Path, default=RESULTS / "fleet_simulated.json")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="fleet to look at; 64 takes some 20 minutes")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # one for each replica killed on purpose
    pace = pace_of(json.loads(options.gpu.read_text()))
    rows = simulate(pace, tuple(size for size in SIZES if size <= options.largest))
    options.out.write_text(json.dumps(summary(pace, rows), indent=1) + "\n")


if __name__ == "__main__":
    main()

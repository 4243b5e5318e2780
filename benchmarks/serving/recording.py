"""Takes at a fixed rate, from an engine that takes no time: whether the library keeps up with them."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common.material import sentence
from engine import AudioChunk, EngineConfig, EngineInfo, EngineStats, Reference, SpeechEngine, Timing, Utterance
from studio.engine_host import EngineHost
from studio.library import Library
from studio.speech.recorder import Retention
from studio.speech.request import SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.voices.resolver import VoiceResolver

RATE, FRAME, CODEBOOKS, CHUNK = 44_100, 2048, 10, 8
CHARACTERS = 15
"""Bytes per second of speech."""
KEPT = Retention(1000, 4096 * 2**20)
"""The studio's default format of stored takes."""


class InstantEngine:
    """Returns noise, different for each take, as fast as it is requested."""

    failure: str | None = None

    def __init__(self, config: EngineConfig, seconds: float) -> None:
        self._frames = round(seconds * RATE / FRAME)
        self._noise = np.random.default_rng(0).normal(0, 0.1, 2 * self._frames * FRAME).astype(np.float32)
        self.info = EngineInfo(
            model=config.model,
            device="cpu",
            dtype="float32",
            sample_rate=RATE,
            frame_samples=FRAME,
            num_codebooks=CODEBOOKS,
            max_context=4096,
            max_rows=64,
            max_waiting=64,
            codec_fingerprint="instant",
            parameters=0,
        )

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        begin = utterance.sampling.seed % (len(self._noise) // 2)
        for first in range(0, self._frames, CHUNK):
            frames = min(CHUNK, self._frames - first)
            at = begin + first * FRAME
            yield AudioChunk(
                pcm=self._noise[at : at + frames * FRAME],
                codes=np.full((CODEBOOKS, frames), first % 1024, np.int16),
                first_frame=first,
                timing=Timing(0.0, 0.0, 0.0),
                finish_reason="stop" if first + frames == self._frames else None,
            )
            await asyncio.sleep(0)

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        return Reference(np.zeros((CODEBOOKS, 5), np.int16), text)

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        return np.linspace(0.0, codes.shape[1] * FRAME / RATE, len(text) + 1)

    def stats(self) -> EngineStats:
        return EngineStats(0, 0, 0, 0, 0, 0.0)

    def stop(self) -> None:
        pass


@dataclass(frozen=True)
class Recorded:
    """The takes at one rate, and their outcome."""

    takes_a_second: float
    reached: float
    """Takes that ended per second: fewer than requested if the processor is busy."""
    takes: int
    kept: int
    soundless: int
    lost: int
    most_waiting_mib: float
    """Most audio that waited for the disk."""
    behind_s: float
    """Seconds of writing after the last take had ended."""


async def record(home: Path, takes_a_second: float, seconds: float, take_seconds: float) -> Recorded:
    """Generate at this rate for this long, into a new library in ``home``."""
    host = EngineHost(EngineConfig(model="instant"), _starts(take_seconds))
    host.start()
    await host.ready()
    library = Library(Path(tempfile.mkdtemp(dir=home)))
    service = SpeechService(host, VoiceResolver(library), None, KEPT)
    recorder, outcomes = service.recorder, service.register.outcomes
    assert recorder is not None
    listeners = set[asyncio.Task[None]]()
    most, ended = 0, Counter[str]()

    async def listen(number: int) -> None:
        request = SpeechRequest(
            text=sentence(number, round(CHARACTERS * take_seconds)), voice="random", format="pcm", seed=number * 7919
        )
        speech = await service.speak(request)
        async for _ in speech.body:
            pass
        ended["takes"] += 1

    started, number = time.monotonic(), 0
    while time.monotonic() - started < seconds:
        listeners.add(task := asyncio.create_task(listen(number)))
        task.add_done_callback(listeners.discard)
        number += 1
        most = max(most, recorder.check()[0])
        await asyncio.sleep(max(0.0, started + number / takes_a_second - time.monotonic()))
    await asyncio.gather(*listeners)
    spoken = time.monotonic()
    await asyncio.to_thread(recorder.stop, 600.0)
    written = time.monotonic()
    host.stop()
    return Recorded(
        takes_a_second=takes_a_second,
        reached=round(ended["takes"] / (spoken - started), 1),
        takes=number,
        kept=outcomes["kept"],
        soundless=outcomes["soundless"],
        lost=outcomes["lost"],
        most_waiting_mib=round(most / 2**20, 1),
        behind_s=round(written - spoken, 1),
    )


def _starts(take_seconds: float) -> Callable[[EngineConfig, Callable[[str, float], None]], SpeechEngine]:
    return lambda config, progress: InstantEngine(config, take_seconds)

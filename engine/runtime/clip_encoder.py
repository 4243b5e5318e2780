"""Reference clips to codes and timbre vectors, on a thread of its own: clips that wait together go together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.codec import CodecConfig
from engine.codec.resample import resample
from engine.engine_errors import STOPPED, EngineStopped
from engine.runtime.memory import trim_heap

AT_ONCE = 8
"""Clips that are encoded together …"""
SECONDS_AT_ONCE = 24.0
"""… while all of them, each as long as the longest, last no longer than this: nobody waits long for another's clip."""

Encode = Callable[[Tensor], Tensor]
"""Audio (rows, 1, samples) float32 at the codec's rate → codes (rows, codebooks, frames); the last frame filled up."""


ReadTimbre = Callable[[Tensor], Tensor]
"""Audio (rows, samples) float32 at the codec's rate → timbre vectors (rows, dim)."""


@dataclass(frozen=True, eq=False, slots=True)
class EncodedClip:
    """codes int16 (codebooks, frames), and timbre float32 (dim,) where the codec makes a vector."""

    codes: np.ndarray
    timbre: np.ndarray | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """Mono sound float32 (samples,) at sample_rate Hz, and what it will be encoded as."""

    audio: np.ndarray
    sample_rate: int
    encoded: Future[EncodedClip] = field(default_factory=Future)

    @property
    def seconds(self) -> float:
        return len(self.audio) / self.sample_rate


class ClipEncoder:
    """Encodes what callers bring, first come first served, while other threads speak.

    A clip's codes do not change beside others, but for rounding where two codes are all but equally near.
    """

    def __init__(
        self,
        encode: Encode,
        config: CodecConfig,
        device: torch.device,
        at_once: int,
        death: Callable[[], str | None],
        read_timbre: ReadTimbre | None = None,
    ) -> None:
        """``death``: why the engine accepts nothing any more; None while it runs."""
        self._read_timbre = read_timbre
        self._encode, self._config, self._device, self._at_once, self._death = encode, config, device, at_once, death
        self._waiting: deque[Clip] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reference-encoder", initializer=self._begin)

    def prepare(self) -> Future[EncodedClip]:
        """Take the memory of the largest batch, in a moment: taking it later would stop all who speak."""
        rate = self._config.sample_rate
        return self._thread.submit(self.now, np.zeros(round(SECONDS_AT_ONCE * rate), np.float32), rate)

    async def encode(self, audio: np.ndarray, sample_rate: int) -> EncodedClip:
        """A clip's codes and timbre. Being cancelled takes it out of the line, unless it has begun.

        Raises EngineStopped.
        """
        clip = Clip(audio, sample_rate)
        self._waiting.append(clip)
        try:
            self._thread.submit(self._work)
        except RuntimeError as error:  # the thread has ended meanwhile
            raise EngineStopped(self._death() or STOPPED) from error
        return await asyncio.wrap_future(clip.encoded)

    def now(self, audio: np.ndarray, sample_rate: int) -> EncodedClip:
        """The same in the calling thread. Raises EngineStopped."""
        return self._together([Clip(audio, sample_rate)])[0]

    def stop(self) -> None:
        """End the thread; callers whose clips still wait get EngineStopped."""
        self._thread.shutdown()

    def _begin(self) -> None:
        """One CUDA stream for good: memory that is free again belongs to the stream that had it."""
        if self._device.type == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream(self._device))

    def _work(self) -> None:
        """Encode the first clips in line; nothing is left to do when they went with those before."""
        batch = [clip for clip in self._next() if clip.encoded.set_running_or_notify_cancel()]
        if not batch:
            return
        self._answer(batch)
        if self._device.type == "cpu" and not self._waiting:
            trim_heap()  # five seconds of sound take 600 MiB, which would stay in this thread's heap

    def _answer(self, batch: list[Clip]) -> None:
        """Where clips cannot be encoded together, each is alone: what is wrong with one is told to whose clip it is."""
        try:
            made = self._together(batch)
        except Exception as error:  # noqa: BLE001  (whatever goes wrong is told to who waits)
            if len(batch) == 1:
                batch[0].encoded.set_exception(error)
                return
            for clip in batch:
                self._answer([clip])
            return
        for clip, encoded in zip(batch, made, strict=True):
            clip.encoded.set_result(encoded)

    def _next(self) -> list[Clip]:
        batch: list[Clip] = []
        longest = 0.0
        while self._waiting and len(batch) < self._at_once:
            if self._waiting[0].encoded.cancelled():  # its caller has left: it makes no batch longer
                self._waiting.popleft()
                continue
            longest = max(longest, self._waiting[0].seconds)
            if batch and longest * (len(batch) + 1) > SECONDS_AT_ONCE:
                break
            batch.append(self._waiting.popleft())
        return batch

    @torch.inference_mode()
    def _together(self, batch: list[Clip]) -> list[EncodedClip]:
        """Every part that makes codes is causal: silence behind a clip changes none of its frames.

        A timbre vector is a mean over time, which silence would change, so each clip's is read by itself.
        """
        if death := self._death():
            raise EngineStopped(death)
        rate, frame = self._config.sample_rate, self._config.frame_samples
        sounds = [resample(torch.from_numpy(c.audio).to(self._device), c.sample_rate, rate) for c in batch]
        longest = max(map(len, sounds))
        codes = self._encode(torch.stack([F.pad(sound, (0, longest - len(sound))) for sound in sounds])[:, None])
        whole = codes.to(torch.int16).cpu().numpy()
        return [
            EncodedClip(row[:, : -(-len(sound) // frame)], self._timbre(sound))
            for row, sound in zip(whole, sounds, strict=True)
        ]

    def _timbre(self, sound: Tensor) -> np.ndarray | None:
        return None if self._read_timbre is None else self._read_timbre(sound[None])[0].float().cpu().numpy()

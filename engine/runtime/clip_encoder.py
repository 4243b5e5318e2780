"""Encodes reference clips to codes and timbre vectors, on a separate thread; waiting clips are encoded together."""

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
from engine.engine_errors import STOPPED, EngineFull, EngineStopped
from engine.runtime.memory import trim_heap

AT_ONCE = 8
"""Maximum clips per batch."""
SECONDS_AT_ONCE = 24.0
"""Maximum seconds per batch, with every clip padded to the longest: no clip then waits long for others."""

Encode = Callable[[Tensor], Tensor]
"""Audio (rows, 1, samples) float32 at the codec's rate → codes (rows, codebooks, frames); the last frame is padded."""


ReadTimbre = Callable[[Tensor], Tensor]
"""Audio (rows, samples) float32 at the codec's rate → timbre vectors (rows, dim)."""


@dataclass(frozen=True, eq=False, slots=True)
class EncodedClip:
    """codes int16 (codebooks, frames), and timbre float32 (dim,) if the codec makes a vector."""

    codes: np.ndarray
    timbre: np.ndarray | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """Mono audio float32 (samples,) at sample_rate Hz, and the future of its encoding."""

    audio: np.ndarray
    sample_rate: int
    encoded: Future[EncodedClip] = field(default_factory=Future)

    @property
    def seconds(self) -> float:
        return len(self.audio) / self.sample_rate


class ClipEncoder:
    """Encodes clips, first come first served, while other threads generate.

    A clip's codes do not depend on others in its batch, except for rounding where two codes are almost equally near.
    """

    def __init__(
        self,
        encode: Encode,
        config: CodecConfig,
        device: torch.device,
        at_once: int,
        stop_reason: Callable[[], str | None],
        read_timbre: ReadTimbre | None = None,
    ) -> None:
        """``stop_reason``: why the engine accepts no more work; None while it runs."""
        self._read_timbre = read_timbre
        self._encode, self._config, self._device, self._at_once, self._stop_reason = (
            encode,
            config,
            device,
            at_once,
            stop_reason,
        )
        self._waiting: deque[Clip] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reference-encoder", initializer=self._begin)

    def prepare(self) -> Future[EncodedClip]:
        """Allocate the memory of the largest batch now: allocating it later would stall all takes."""
        rate = self._config.sample_rate
        return self._thread.submit(self.now, np.zeros(round(SECONDS_AT_ONCE * rate), np.float32), rate)

    async def encode(self, audio: np.ndarray, sample_rate: int) -> EncodedClip:
        """A clip's codes and timbre. Cancelling removes it from the queue, unless it has started.

        Raises EngineStopped, and EngineFull if the GPU's memory is too short for it.
        """
        clip = Clip(audio, sample_rate)
        self._waiting.append(clip)
        try:
            self._thread.submit(self._work)
        except RuntimeError as error:  # the thread has ended
            raise EngineStopped(self._stop_reason() or STOPPED) from error
        return await asyncio.wrap_future(clip.encoded)

    def now(self, audio: np.ndarray, sample_rate: int) -> EncodedClip:
        """Encode in the calling thread. Raises EngineStopped."""
        return self._encode_batch([Clip(audio, sample_rate)])[0]

    def stop(self) -> None:
        """End the thread; callers of waiting clips get EngineStopped."""
        self._thread.shutdown()

    def _begin(self) -> None:
        """Keep one CUDA stream for this thread: the allocator returns freed memory to the stream that used it."""
        if self._device.type == "cuda":
            torch.cuda.set_stream(torch.cuda.Stream(self._device))

    def _work(self) -> None:
        """Encode the first clips in the queue; there may be none if the previous batch took them."""
        batch = [clip for clip in self._next_batch() if clip.encoded.set_running_or_notify_cancel()]
        if not batch:
            return
        self._answer(batch)
        if self._device.type == "cpu" and not self._waiting:
            trim_heap()  # five seconds of audio take 600 MiB, which would stay in this thread's heap

    def _answer(self, batch: list[Clip]) -> None:
        """Encode a batch; if that fails, encode each clip alone, so that an error reaches only its own caller."""
        try:
            encodings = self._encode_within_memory(batch)
        except Exception as error:  # noqa: BLE001  (every error goes to the waiting caller)
            if len(batch) == 1:
                batch[0].encoded.set_exception(error)
                return
            for clip in batch:
                self._answer([clip])
            return
        for clip, encoded in zip(batch, encodings, strict=True):
            clip.encoded.set_result(encoded)

    def _next_batch(self) -> list[Clip]:
        batch: list[Clip] = []
        longest = 0.0
        while self._waiting and len(batch) < self._at_once:
            if self._waiting[0].encoded.cancelled():  # its caller has left, so it takes no place in a batch
                self._waiting.popleft()
                continue
            longest = max(longest, self._waiting[0].seconds)
            if batch and longest * (len(batch) + 1) > SECONDS_AT_ONCE:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _encode_within_memory(self, batch: list[Clip]) -> list[EncodedClip]:
        """`_encode_batch`; if the GPU's memory runs out, again without what the allocator keeps for later.

        Raises EngineFull if it still does not suffice for a single clip.
        """
        try:
            return self._encode_batch(batch)
        except torch.OutOfMemoryError:
            pass  # outside this block nothing holds the tensors of the failed attempt
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        try:
            return self._encode_batch(batch)
        except torch.OutOfMemoryError as error:
            raise EngineFull(
                "the GPU has too little memory left to encode this clip; try again later, or send a shorter clip"
            ) from error

    @torch.inference_mode()
    def _encode_batch(self, batch: list[Clip]) -> list[EncodedClip]:
        """Encode a batch of padded clips; the encoder is causal, so silence after a clip changes none of its frames.

        A timbre vector is a mean over time, which silence would change, so each clip's is computed separately.
        """
        if stop_reason := self._stop_reason():
            raise EngineStopped(stop_reason)
        rate, frame_samples = self._config.sample_rate, self._config.frame_samples
        sounds = [resample(torch.from_numpy(clip.audio).to(self._device), clip.sample_rate, rate) for clip in batch]
        longest = max(map(len, sounds))
        codes = self._encode(torch.stack([F.pad(sound, (0, longest - len(sound))) for sound in sounds])[:, None])
        all_codes = codes.to(torch.int16).cpu().numpy()
        return [
            EncodedClip(row[:, : -(-len(sound) // frame_samples)], self._timbre(sound))
            for row, sound in zip(all_codes, sounds, strict=True)
        ]

    def _timbre(self, sound: Tensor) -> np.ndarray | None:
        return None if self._read_timbre is None else self._read_timbre(sound[None])[0].float().cpu().numpy()

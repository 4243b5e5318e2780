"""Encodes reference clips to codes, on a separate thread; waiting clips are encoded together."""

from __future__ import annotations

import asyncio
import functools
import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.codec import CodecConfig
from engine.engine_errors import STOPPED, EngineFull, EngineStopped
from engine.transfer import keep_stream

AT_ONCE = 8
"""Maximum clips per batch."""
SECONDS_AT_ONCE = 24.0
"""Maximum seconds per batch, with every clip padded to the longest: no clip then waits long for others."""

LARGEST_FILTER = 4_000_000
"""Maximum taps of a resampling filter (16 MB); 44,101 Hz to 44,100 would need two billion."""
ZEROS, ROLLOFF = 6, 0.99
"""Zero crossings of the resampling filter on each side, and its cutoff as a share of the lower rate's: torchaudio's,
with which fish-speech resamples."""

Encode = Callable[[Tensor], Tensor]
"""Audio (rows, 1, samples) float32 at the codec's rate → codes (rows, codebooks, frames); the last frame is padded."""


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """Mono audio float32 (samples,) at sample_rate Hz, and the future of its encoding."""

    audio: np.ndarray
    sample_rate: int
    encoded: Future[np.ndarray] = field(default_factory=Future)

    @property
    def seconds(self) -> float:
        return len(self.audio) / self.sample_rate


@contextmanager
def idle_cores(is_idle: Callable[[], bool], cores: int) -> Iterator[None]:
    """Let torch use all cores if the engine is idle; otherwise the halves of engine and codec stay as they are.

    The number is torch's own for all threads, so a take that begins meanwhile may share its cores for one piece.
    """
    threads = torch.get_num_threads()
    if threads >= cores or not is_idle():
        yield
        return
    torch.set_num_threads(cores)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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
        when_idle: Callable[[], None] | None = None,
    ) -> None:
        """``stop_reason``: why the engine accepts no more work; None while it runs.

        ``when_idle``: frees memory, in the encoder's thread, once no clip waits.
        """
        self._encode, self._config, self._device, self._at_once = encode, config, device, at_once
        self._stop_reason, self._when_idle = stop_reason, when_idle
        self._waiting: deque[Clip] = deque()
        self._thread = ThreadPoolExecutor(1, "reference-encoder", keep_stream, (device,))

    def prepare(self) -> Future[np.ndarray]:
        """Allocate the memory of the largest batch now: allocating it later would stall all takes."""
        rate = self._config.sample_rate
        return self._thread.submit(self.now, np.zeros(round(SECONDS_AT_ONCE * rate), np.float32), rate)

    async def encode(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        """A clip's codes, int16 (codebooks, frames). Cancelling removes it from the queue, unless it has started.

        Raises EngineStopped, and EngineFull if the GPU's memory is too short for it.
        """
        clip = Clip(audio, sample_rate)
        self._waiting.append(clip)
        try:
            self._thread.submit(self._work)
        except RuntimeError as error:  # the thread has ended
            raise EngineStopped(self._stop_reason() or STOPPED) from error
        return await asyncio.wrap_future(clip.encoded)

    def now(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        """Encode in the calling thread. Raises EngineStopped."""
        return self._encode_batch([Clip(audio, sample_rate)])[0]

    def stop(self) -> None:
        """End the thread; callers of waiting clips get EngineStopped."""
        self._thread.shutdown()

    def _work(self) -> None:
        """Encode the first clips in the queue; there may be none if the previous batch took them."""
        batch = [clip for clip in self._next_batch() if clip.encoded.set_running_or_notify_cancel()]
        if not batch:
            return
        self._answer(batch)
        if self._when_idle and not self._waiting:
            self._when_idle()

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

    def _encode_within_memory(self, batch: list[Clip]) -> list[np.ndarray]:
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
    def _encode_batch(self, batch: list[Clip]) -> list[np.ndarray]:
        """Encode a batch of padded clips; the encoder is causal, so silence after a clip changes none of its frames."""
        if stop_reason := self._stop_reason():
            raise EngineStopped(stop_reason)
        rate, frame_samples = self._config.sample_rate, self._config.frame_samples
        sounds = [resample(torch.from_numpy(clip.audio).to(self._device), clip.sample_rate, rate) for clip in batch]
        longest = max(map(len, sounds))
        codes = self._encode(torch.stack([F.pad(sound, (0, longest - len(sound))) for sound in sounds])[:, None])
        all_codes = codes.to(torch.int16).cpu().numpy()
        return [row[:, : -(-len(sound) // frame_samples)] for row, sound in zip(all_codes, sounds, strict=True)]


def convertible(source: int, target: int) -> bool:
    """Whether the rates have a large enough common divisor for exact conversion, as all usual ones do."""
    divisor = math.gcd(source, target)
    return source // divisor * (target // divisor) <= LARGEST_FILTER


def resample(audio: Tensor, source: int, target: int) -> Tensor:
    """Audio (samples,) float32 from source Hz to target Hz, on its own device, as `torchaudio.functional.resample`."""
    divisor = math.gcd(source, target)
    source, target = source // divisor, target // divisor
    if source == target:
        return audio
    filters, width = _sinc_filters(source, target, audio.device)
    padded = F.pad(audio, (width, width + source))
    samples = int(torch.tensor(target * len(audio) / source).ceil())  # rounded to float32 first, as there
    return F.conv1d(padded[None, None], filters, stride=source)[0].t().flatten()[:samples]


@functools.lru_cache(maxsize=32)
def _sinc_filters(source: int, target: int, device: torch.device) -> tuple[Tensor, int]:
    """Windowed-sinc filters (target, 1, taps) for the `target` samples of each `source`, and their samples before."""
    cutoff = min(source, target) * ROLLOFF
    width = math.ceil(ZEROS * source / cutoff)
    offsets = torch.arange(-width, width + source, dtype=torch.float64) / source
    times = torch.arange(0, -target, -1)[:, None, None] / target + offsets
    times = (times * cutoff).clamp_(-ZEROS, ZEROS)
    window = torch.cos(times * math.pi / ZEROS / 2) ** 2
    times *= math.pi
    filters = torch.where(times == 0, torch.ones((), dtype=torch.float64), times.sin() / times)
    filters *= window * (cutoff / source)
    return filters.float().to(device), width

"""The engine's facade: start, speak, encode_reference, stats, stop. It knows no voice names, formats or web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import torch

from engine.aligner import Aligner
from engine.checkpoint import Checkpoint
from engine.codec.voice_vector import CLIP_TAIL
from engine.config import EngineConfig
from engine.engine_errors import CannotAlign, EngineError, EngineStopped, InvalidReference, PromptTooLong
from engine.model.prompt import build_prompt
from engine.runtime.clip_encoder import ClipEncoder, convertible, resample
from engine.runtime.loop import Loop
from engine.runtime.row import Row
from engine.runtime.setup import Progress, assemble
from engine.types import AudioChunk, EngineInfo, EngineStats, Reference, Sampling, Utterance


class Engine:
    """One model on one device, generating many utterances at once.

    Any number of tasks, on any event loops, may call `speak` and `encode_reference`; one thread of the engine does all
    the work.
    """

    def __init__(self, checkpoint: Checkpoint, info: EngineInfo, loop: Loop, clip_encoder: ClipEncoder) -> None:
        """Use `Engine.start`."""
        self.info = info
        self._checkpoint, self._loop, self._clip_encoder = checkpoint, loop, clip_encoder
        self._aligner = Aligner(checkpoint, info, lambda: loop.stop_reason)

    @classmethod
    def start(cls, config: EngineConfig, progress: Progress | None = None) -> Engine:
        """Load the checkpoint, warm up and return a ready engine. Blocking: seconds.

        ``progress`` is called at each step, and aborts the start by raising. If the GPU's memory runs out, the engine
        loads again in a smaller size. Raises CheckpointError, ConfigError.
        """
        report = progress or (lambda doing, done: None)
        checkpoint, info, loop, clip_encoder, missing_graphs = assemble(config, report)
        engine = cls(checkpoint, info, loop, clip_encoder)
        loop.start()
        try:
            report("warming up", 0.0)
            with ThreadPoolExecutor(1) as thread:  # so that start also works inside a running event loop
                thread.submit(lambda: asyncio.run(engine._warm_up())).result()
            loop.run_in_gaps(missing_graphs)
            report("ready", 1.0)
        except BaseException:
            engine.stop()
            raise
        return engine

    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """Generate the take and yield it chunk by chunk.

        Nothing happens before the first iteration. Leaving the iteration (break, aclose, cancel) cancels the take: its
        row is free within one frame. The last chunk has a finish_reason.

        Raises at the first iteration: PromptTooLong and other InvalidUtterance, EngineFull, EngineStopped;
        later: EngineStopped.
        """
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[AudioChunk | EngineError] = asyncio.Queue()

        def deliver(item: AudioChunk | EngineError) -> None:
            with suppress(RuntimeError):  # the caller's event loop is closed
                loop.call_soon_threadsafe(chunks.put_nowait, item)

        # First, because callers retry while the engine is full, and building a prompt takes milliseconds.
        self._loop.check_room(utterance.owner)
        row = self._row(utterance, deliver)
        self._loop.submit(row)
        try:
            while True:
                item = await chunks.get()
                if isinstance(item, EngineError):
                    raise item
                yield item
                if item.finish_reason:
                    return
        finally:
            self._loop.close(row)

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """Encode a clip: float32 (samples,) or (channels, samples) at sample_rate Hz, with its transcript.

        Raises InvalidReference (empty, not finite, too long for the context, or a model that cannot clone),
        InvalidUtterance (blank text), EngineStopped.
        """
        if self._loop.stop_reason is not None:
            raise EngineStopped(self._loop.stop_reason)
        if not self.info.clones:
            raise InvalidReference("this model cannot clone a clip; load a Base model of Qwen3-TTS, or another family")
        audio = self._mono(pcm, sample_rate)
        if self._checkpoint.voice_encoder is None:
            return Reference(await self._encode(audio, sample_rate), text)
        codes = await self._encode(np.pad(audio, (0, round(CLIP_TAIL * sample_rate))), sample_rate)
        return Reference(codes, text, await asyncio.to_thread(self._voice_vector, audio, sample_rate))

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """The start time of each character of a text in the frames that speak it, int16 (codebooks, frames).

        Seconds from the first frame on, ascending, (characters + 1,): the last is the end. Characters after the end of
        the frames begin at that end. Takes as long as reading the frames as a prompt, beside other takes. Raises
        InvalidUtterance (blank text, codes of another codec), PromptTooLong, EngineStopped.
        """
        if reason := self.info.cannot_align:
            raise CannotAlign(reason)
        return await self._align(text, codes)

    def stats(self) -> EngineStats:
        """A snapshot; cheap enough for every health check."""
        return self._loop.stats()

    @property
    def failure(self) -> str | None:
        """Why the engine accepts no more work; None while it runs."""
        return self._loop.stop_reason

    def stop(self) -> None:
        """End every take with EngineStopped, free the device, join the thread. Calling it again does nothing."""
        self._loop.stop()
        self._clip_encoder.stop()
        self._aligner.stop()

    def _row(self, utterance: Utterance, deliver: Callable[[AudioChunk | EngineError], None]) -> Row:
        prompt = build_prompt(utterance, self._checkpoint.tokenizer, self._checkpoint.config)
        room = self.info.max_context - prompt.delivered_from + 1  # the last frame needs no position
        if room < 2:
            raise PromptTooLong(
                f"text and references take {prompt.delivered_from} positions, this engine holds "
                f"{self.info.max_context} per row; shorten the text or the reference clips"
            )
        if prompt.delivered >= room:
            raise PromptTooLong(
                f"the take has {prompt.delivered} frames so far; beside its text and references there is room for "
                f"{room} in the {self.info.max_context} positions of a row, so it cannot be continued"
            )
        most = min(utterance.max_frames, room, max(prompt.most_frames, prompt.delivered + 1))
        return Row(prompt, utterance.sampling, most, deliver, utterance.owner)

    def _mono(self, pcm: np.ndarray, sample_rate: int) -> np.ndarray:
        audio = np.asarray(pcm, np.float32)
        audio = audio.mean(0) if audio.ndim == 2 else audio
        if audio.ndim != 1 or audio.size == 0 or sample_rate <= 0:
            raise InvalidReference(f"a clip of shape {np.shape(pcm)} at {sample_rate} Hz contains no audio")
        if not convertible(sample_rate, self.info.sample_rate):
            raise InvalidReference(f"a clip at {sample_rate} Hz cannot be converted exactly; bring it to a usual rate")
        if not np.isfinite(audio).all():
            raise InvalidReference("the clip has samples that are not finite numbers")
        seconds, limit = audio.size / sample_rate, self.info.max_context / self.info.frame_rate
        if seconds >= limit:
            raise InvalidReference(
                f"the clip is {seconds:.1f} s long; the context has room for less than {limit:.1f} s of it"
            )
        return np.ascontiguousarray(audio)  # torch rejects negative strides, and would do so only in the thread

    def _voice_vector(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        assert self._checkpoint.voice_encoder is not None
        sound = resample(torch.from_numpy(audio), sample_rate, self.info.sample_rate)
        return self._checkpoint.voice_encoder(sound).numpy()

    async def _encode(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        return await self._clip_encoder.encode(audio, sample_rate)

    async def _align(self, text: str, codes: np.ndarray) -> np.ndarray:
        return await self._aligner.align(text, codes)

    async def _warm_up(self) -> None:
        """Generate a short take and, where clips are cloned, encode a short one: the first caller does not pay for
        first-use costs."""
        references: tuple[Reference, ...] = ()
        if self.info.clones:
            second = np.zeros(self.info.sample_rate, np.float32)
            references = (await self.encode_reference(second, self.info.sample_rate, "warm"),)
        utterance = Utterance("Warm up.", references, Sampling(seed=0), max_frames=4)
        async for _ in self.speak(utterance):
            pass

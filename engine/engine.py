"""The engine's facade: start, speak, encode_reference, stats, stop. It knows no voices' names, no formats, no web."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch

from engine import checkpoint as checkpoints
from engine.checkpoint import Checkpoint
from engine.codec import fingerprint
from engine.config import EngineConfig
from engine.errors import ConfigError, EngineError, EngineStopped, InvalidReference, PromptTooLong
from engine.loop import Loop
from engine.prompt import build_prompt
from engine.resample import resample
from engine.row import Row
from engine.runner import Runner
from engine.streams import GraphStreams, PlainStreams, Streams, own_stream
from engine.types import AudioChunk, EngineInfo, EngineStats, Reference, Sampling, Utterance

Progress = Callable[[str, float], None]
"""Called with what is being done and how far it is, 0 to 1, while the engine starts."""

DEFAULT_MAX_CONTEXT = 4096
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Engine:
    """One model on one device, speaking many utterances at once.

    Any number of tasks, on any event loops, may call `speak` and `encode_reference`;
    one thread of the engine's own does all the work.
    """

    def __init__(self, checkpoint: Checkpoint, info: EngineInfo, loop: Loop) -> None:
        """Use `Engine.start`."""
        self.info = info
        self._checkpoint, self._loop = checkpoint, loop
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="reference-encoder")

    @classmethod
    def start(cls, config: EngineConfig, progress: Progress | None = None) -> Engine:
        """Load the checkpoint, warm up and return a ready engine. Blocking: seconds.

        Raises CheckpointError, ConfigError.
        """
        tell = progress or (lambda what, done: None)
        device = _device(config.device)
        _set_up_torch(device, config.threads)
        codec_device = _device(config.codec_device) if config.codec_device else device
        dtype = _dtype(config.dtype, device)
        tell("finding the checkpoint", 0.0)
        folder = checkpoints.find(config.model)
        checkpoint = checkpoints.load(folder, device, codec_device, dtype, tell)
        info = _info(config, checkpoint, device, dtype)
        loop, frame_path, kv_attention = _loop(config, checkpoint, info, tell)
        engine = cls(checkpoint, replace(info, frame_path=frame_path, kv_attention=kv_attention), loop)
        loop.start()
        tell("warming up", 0.0)
        with ThreadPoolExecutor(1) as thread:  # of its own, so that start works beside a running event loop too
            thread.submit(lambda: asyncio.run(engine._warm_up())).result()
        tell("ready", 1.0)
        return engine

    async def speak(self, utterance: Utterance) -> AsyncIterator[AudioChunk]:
        """The take, chunk by chunk, while it is made.

        Nothing happens before the first iteration. Leaving the iteration (break, aclose, cancel)
        **is** cancelling: the row is free within one frame. The last chunk has a finish_reason.

        Raises at the first iteration: PromptTooLong and other InvalidUtterance, EngineFull, EngineStopped;
        later: EngineStopped.
        """
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[AudioChunk | EngineError] = asyncio.Queue()

        def deliver(item: AudioChunk | EngineError) -> None:
            with suppress(RuntimeError):  # the caller's event loop was closed under its take: nobody listens
                loop.call_soon_threadsafe(chunks.put_nowait, item)

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
        """Encode a clip: float32 (samples,) or (channels, samples) at sample_rate Hz, with the words spoken in it.

        Raises InvalidReference (empty, not finite, too long for the context), InvalidUtterance (blank text),
        EngineStopped.
        """
        if self._loop.death is not None:
            raise EngineStopped(self._loop.death)
        audio = self._mono(pcm, sample_rate)
        codes = await asyncio.get_running_loop().run_in_executor(self._encoder, self._encode, audio, sample_rate)
        return Reference(codes, text)

    def stats(self) -> EngineStats:
        """A snapshot, cheap enough for every health check."""
        return self._loop.stats()

    @property
    def failure(self) -> str | None:
        """Why the engine accepts nothing any more; None while it is well."""
        return self._loop.death

    def stop(self) -> None:
        """End every take with EngineStopped, free the device, join the thread. Calling it again does nothing."""
        self._loop.stop()
        self._encoder.shutdown()  # clips still in line are told in `_encode`

    def _row(self, utterance: Utterance, deliver: Callable[[AudioChunk | EngineError], None]) -> Row:
        prompt = build_prompt(utterance, self._checkpoint.tokenizer, self._checkpoint.config)
        room = self.info.max_context - len(prompt) + 1  # the last frame drawn needs no position of its own
        if room < 2:
            raise PromptTooLong(
                f"text and references take {len(prompt)} positions, this engine holds {self.info.max_context} a row; "
                "shorten the text or the reference clips"
            )
        return Row(prompt, utterance.sampling, min(utterance.max_frames, room), deliver)

    def _mono(self, pcm: np.ndarray, sample_rate: int) -> np.ndarray:
        audio = np.asarray(pcm, np.float32)
        audio = audio.mean(0) if audio.ndim == 2 else audio
        if audio.ndim != 1 or audio.size == 0 or sample_rate <= 0:
            raise InvalidReference(f"a clip of shape {np.shape(pcm)} at {sample_rate} Hz holds no audio")
        if not np.isfinite(audio).all():
            raise InvalidReference("the clip has samples that are not finite numbers")
        seconds, limit = audio.size / sample_rate, self.info.max_context / self.info.frame_rate
        if seconds >= limit:
            raise InvalidReference(f"the clip lasts {seconds:.1f} s; a context holds less than {limit:.1f} s of it")
        return audio

    @torch.inference_mode()
    def _encode(self, audio: np.ndarray, sample_rate: int) -> np.ndarray:
        if self._loop.death is not None:
            raise EngineStopped(self._loop.death)
        codec = self._checkpoint.codec
        device = next(codec.parameters()).device
        with own_stream(device):
            signal = resample(torch.from_numpy(audio).to(device), sample_rate, codec.config.sample_rate)
            return codec.encode(signal[None, None])[0].to(torch.int16).cpu().numpy()

    async def _warm_up(self) -> None:
        """One short take and one short encoding, so that the first caller pays for no first use."""
        second = np.zeros(self.info.sample_rate, np.float32)
        reference = await self.encode_reference(second, self.info.sample_rate, "warm")
        utterance = Utterance("Warm up.", (reference,), Sampling(seed=0), max_frames=4)
        async for _ in self.speak(utterance):
            pass


def _set_up_torch(device: torch.device, threads: int | None) -> None:
    """Process-wide settings of torch.

    On a CPU the engine's and the codec's thread work side by side, so each gets half of the cores: on two cores
    that is 30 % faster than two threads for both. Convolutions keep float32: TF32 would change a reference's codes.
    """
    if threads or device.type == "cpu":
        torch.set_num_threads(threads or max(1, _cores() // 2))
    torch.backends.cudnn.allow_tf32 = False


def _cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _loop(config: EngineConfig, checkpoint: Checkpoint, info: EngineInfo, tell: Progress) -> tuple[Loop, str, str]:
    """The loop over the fastest path that device and config allow, and EngineInfo's words for it."""
    codec, rows = checkpoint.codec, info.max_rows
    codec_device = next(codec.parameters()).device
    runner = Runner(checkpoint.model, rows, info.max_context, config.prefix_bytes)
    streams: Streams = PlainStreams(codec)
    missing = _missing_kernels(runner.device, config)
    kernel = missing is None and config.kv_attention != "off"
    if config.kv_attention == "required" and not kernel:
        raise ConfigError(f"the KV-cache attention kernel is required, but cannot be used: {missing}")
    if missing is None:
        runner.use_graphs(kernel, lambda done: tell("capturing frame graphs", done))
        if codec_device.type == "cuda":
            streams = graphs = GraphStreams(codec, rows)
            graphs.capture(lambda done: tell("capturing codec graphs", done))
    loop = Loop(runner, streams, codec_device, rows, info.max_waiting)
    frame_path = "CUDA graphs over fused kernels" if missing is None else f"plain torch ({missing})"
    return loop, frame_path, "on" if kernel else f"off: {missing or 'switched off'}"


def _missing_kernels(device: torch.device, config: EngineConfig) -> str | None:
    """Why the fused kernels are not used; None when they are."""
    if not config.graphs:
        return "graphs are switched off"
    if device.type != "cuda":
        return f"it needs a CUDA device, not {device.type}"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return f"{torch.cuda.get_device_name(device)} is older than compute capability 8.0"
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return f"Triton cannot be loaded: {error}"
    return None


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {name!r} cannot be used here: {error}") from error
    return device


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if name not in _DTYPES:
        raise ConfigError(f"dtype {name!r} is not one of {', '.join(_DTYPES)}")
    return _DTYPES[name]


def _info(config: EngineConfig, checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> EngineInfo:
    codec, sizes = checkpoint.codec, checkpoint.config
    context = config.max_context or min(sizes.max_context, DEFAULT_MAX_CONTEXT)
    if context > sizes.max_context:
        raise ConfigError(f"max_context {context} is more than the checkpoint's {sizes.max_context}")
    parameters = sum(p.numel() for module in (checkpoint.model, codec) for p in module.parameters())
    return EngineInfo(
        model=config.model,
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
        sample_rate=codec.config.sample_rate,
        frame_samples=codec.config.frame_samples,
        num_codebooks=sizes.num_codebooks,
        max_context=context,
        max_rows=config.max_rows or (8 if device.type == "cuda" else 4),
        max_waiting=config.max_waiting,
        codec_fingerprint=fingerprint(codec),
        parameters=parameters,
    )

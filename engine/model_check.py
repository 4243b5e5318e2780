"""Checks a model: generates sentences, and compares its logits with those of quantised weights and of fish-speech.

In the audio it measures where takes end, their level and their silences. The caller counts word errors, which needs a
speech recogniser.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import numpy as np
import torch

from engine.checkpoint import find, load
from engine.config import EngineConfig
from engine.engine import Engine
from engine.forced_logits import Agreement, Logits, Spoken, agreement, forced_logits
from engine.model.stored_weight import BITS
from engine.types import AudioChunk, EngineInfo, Reference, Sampling, Utterance
from engine.upstream_parity import fish_speech_logits, is_installed

GetClip = Callable[[int], tuple[np.ndarray, int, str]]
"""The reference clip of the sentence with this index: float32 mono samples (samples,), their rate, the words."""

End = Literal["ok", "early", "missing"]
MOST_CHARACTERS = 30
"""Maximum characters per second of speech; a take with more has ended early."""
FEWEST_CHARACTERS = 4
"""Minimum characters per second of speech; a take with fewer has not ended in time."""
WINDOW_SECONDS, SILENCE_DB = 0.05, -50.0
COMPARED_TAKES, COMPARED_FRAMES = 20, 60
"""Takes whose logits are compared, and frames of each."""


@dataclass(frozen=True, eq=False, slots=True)
class CheckedTake:
    """One generated sentence."""

    text: str
    pcm: np.ndarray
    """float32 (samples,)"""
    seconds: float
    end: End
    level_db: float
    """Level of the windows that are not silent, in dBFS; −inf if all are."""
    longest_silence: float
    """Seconds."""
    real_time_factor: float
    """Seconds of work per second of audio."""


@dataclass(frozen=True, eq=False, slots=True)
class ModelReport:
    info: EngineInfo
    load_seconds: float
    peak_memory: int | None
    """Bytes of the GPU or of this process; None if unknown."""
    takes: tuple[CheckedTake, ...]
    by_weights: dict[str, Agreement] = field(default_factory=dict)
    """The models' layers in fewer bits, compared with full weights."""
    fish_speech: Agreement | None = None
    """Compared with fish-speech's own code; None if that is not installed."""
    greedy_frames_kept: float | None = None
    """Share of a greedy take's frames that fish-speech's code generates too; None if it is not installed."""


def check_model(
    config: EngineConfig,
    texts: Sequence[str],
    report: Callable[[str], object] = print,
    get_clip: GetClip | None = None,
) -> ModelReport:
    """Load the model and check it, each sentence with its clip if there are clips.

    Blocking: minutes for a large model. Raises CheckpointError, ConfigError, and what ``get_clip`` raises.
    """
    speech, spoken, greedy = _speech(config, texts, report, get_clip)
    gc.collect()
    torch.cuda.empty_cache()  # comparing needs the full weights, so the engine's must be freed
    report("comparing logits")
    try:
        return _compared(speech, config.model, spoken, greedy, speech.info.device)
    except torch.OutOfMemoryError:
        report("comparing logits on the CPU, where there is memory for the whole weights")
    return _compared(speech, config.model, spoken, greedy, "cpu")


def _speech(
    config: EngineConfig, texts: Sequence[str], report: Callable[[str], object], get_clip: GetClip | None
) -> tuple[ModelReport, list[Spoken], Spoken]:
    """The report without comparisons, the takes to compare, and a greedy one. The engine has been stopped."""
    report("loading")
    start = time.perf_counter()
    engine = Engine.start(config)
    load_seconds = time.perf_counter() - start
    try:
        takes, spoken = list[CheckedTake](), list[Spoken]()
        for index, text in enumerate(texts):
            report(f"generating {index + 1} of {len(texts)}")
            references: tuple[Reference, ...] = ()
            if get_clip is not None:
                references = (asyncio.run(engine.encode_reference(*get_clip(index))),)
            take, codes = asyncio.run(_speak(engine, text, references, seed=index))
            takes.append(take)
            if codes.shape[1] and len(spoken) < COMPARED_TAKES:
                spoken.append((Utterance(text, references), codes[:, :COMPARED_FRAMES]))
        _, codes = asyncio.run(_speak(engine, texts[0], temperature=0.0))
        greedy = (Utterance(texts[0]), codes[:, :COMPARED_FRAMES])
        memory = _peak_memory(engine.info.device)
        return ModelReport(engine.info, load_seconds, memory, tuple(takes)), spoken, greedy
    finally:
        engine.stop()


async def _speak(
    engine: Engine, text: str, references: tuple[Reference, ...] = (), seed: int = 0, temperature: float = 0.7
) -> tuple[CheckedTake, np.ndarray]:
    rate, start = engine.info.frame_rate, time.perf_counter()
    max_frames = int(rate * (2 + len(text) / FEWEST_CHARACTERS))
    sampling = Sampling(seed=seed, temperature=temperature)
    chunks = [chunk async for chunk in engine.speak(Utterance(text, references, sampling, max_frames=max_frames))]
    work_seconds = time.perf_counter() - start
    codes = np.concatenate([chunk.codes for chunk in chunks], 1)
    return _measure(text, chunks, engine.info.sample_rate, work_seconds), codes


def _measure(text: str, chunks: Sequence[AudioChunk], rate: int, work_seconds: float) -> CheckedTake:
    pcm = np.concatenate([chunk.pcm for chunk in chunks])
    seconds = len(pcm) / rate
    end: End = "ok" if seconds * MOST_CHARACTERS >= len(text) else "early"
    if chunks[-1].finish_reason == "length":
        end = "missing"
    size = int(WINDOW_SECONDS * rate)
    windows = pcm[: len(pcm) // size * size].reshape(-1, size)
    levels = 10 * np.log10((windows.astype(np.float64) ** 2).mean(1) + 1e-12)
    is_loud = levels > SILENCE_DB
    level = float(10 * np.log10((10 ** (levels[is_loud] / 10)).mean())) if is_loud.any() else float("-inf")
    return CheckedTake(
        text, pcm, seconds, end, level, _longest(~is_loud) * WINDOW_SECONDS, work_seconds / max(seconds, 1e-9)
    )


def _longest(flags: np.ndarray) -> int:
    """The length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def _compared(speech: ModelReport, model: str, spoken: Sequence[Spoken], greedy: Spoken, device: str) -> ModelReport:
    """The report with comparisons, computed on this device."""
    if not spoken:
        return speech
    dtype = cast(torch.dtype, getattr(torch, speech.info.dtype))
    checkpoint = load(find(model), torch.device(device), torch.device("cpu"), dtype)
    full = forced_logits(checkpoint, spoken)
    by_weights: dict[str, Agreement] = {
        weights: agreement(full, forced_logits(checkpoint, spoken, checkpoint.model.quantised_as(weights)))
        for weights in BITS
        if weights != "bf16"
    }
    if not is_installed() or checkpoint.config.talker is not None:  # which fish-speech cannot load
        return replace(speech, by_weights=by_weights)
    residual = full[1].shape[1]
    semantic, residual_logits = fish_speech_logits(checkpoint, spoken)
    parity = agreement(full, (semantic, residual_logits[:, :residual]))
    frames_kept = None
    if greedy[1].shape[1]:
        frames_kept = _frames_kept(fish_speech_logits(checkpoint, [greedy]), greedy[1], residual)
    return replace(speech, by_weights=by_weights, fish_speech=parity, greedy_frames_kept=frames_kept)


def _frames_kept(logits: Logits, codes: np.ndarray, residual: int) -> float:
    """The share of frames (codebooks, frames) whose every code is the most likely by these logits."""
    first = logits[0].argmax(1)[:, None]
    residual_codes = logits[1][:, :residual].argmax(1).view(len(first), -1)
    best = torch.cat([first, residual_codes], 1).cpu().numpy()
    return float((best == codes.T).all(1).mean())


def _peak_memory(device: str) -> int | None:
    if device.startswith("cuda"):
        return torch.cuda.max_memory_reserved(torch.device(device))
    if sys.platform == "win32":
        return None
    import resource  # which Windows lacks

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak

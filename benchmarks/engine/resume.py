"""Resumed takes: how much equals the uninterrupted take, and whether the audio has a step.

python -m benchmarks.engine.resume CHECKPOINT [--takes 16]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from engine import AudioChunk, Engine, EngineConfig, Sampling, Utterance
from engine.checkpoint import load

MOST_FRAMES = 150
TEXT = "The morning was cold and bright, and nobody had yet walked across the snow. This is take number {}."


@dataclass(frozen=True, eq=False, slots=True)
class Take:
    """A take or its resumed part, and seconds to its first chunk."""

    chunks: list[AudioChunk]
    first: float

    @property
    def codes(self) -> np.ndarray:
        return np.concatenate([chunk.codes for chunk in self.chunks], axis=1)

    @property
    def pcm(self) -> np.ndarray:
        return np.concatenate([chunk.pcm for chunk in self.chunks])


def check_resume(folder: Path, takes: int = 16) -> dict[str, dict[str, float]]:
    """In reproducible and in normal mode, in bfloat16: takes interrupted somewhere, alone and all together.

    equal: resumed takes whose codes all equal the uninterrupted take's. sound_worst: the largest difference of their
    samples to the uninterrupted take's. seam_worst: the largest difference of all samples, delivered and new, to
    decoding all codes at once: a click would show here. same_frames: median number of remaining frames that equal the
    uninterrupted take's. first_ms: to the first new chunk, alone and with all at once.
    """
    return {mode: asyncio.run(_resumed(folder, takes, mode == "reproducible")) for mode in ("reproducible", "usual")}


async def _resumed(folder: Path, takes: int, reproducible: bool) -> dict[str, float]:
    engine = Engine.start(EngineConfig(str(folder), dtype="bfloat16", max_rows=takes, reproducible=reproducible))
    try:
        utterances = [Utterance(TEXT.format(i), (), Sampling(seed=i), max_frames=MOST_FRAMES) for i in range(takes)]
        whole = [await _hear(engine, utterance) for utterance in utterances]
        cuts = [_cut(number, take) for number, take in enumerate(whole)]
        broken = [
            replace(utterance, so_far=np.ascontiguousarray(take.codes[:, :cut]))
            for utterance, take, cut in zip(utterances, whole, cuts, strict=True)
        ]
        alone = [await _hear(engine, utterance) for utterance in broken]
        together = await asyncio.gather(*(_hear(engine, utterance) for utterance in broken))
    finally:
        engine.stop()
    out = {"takes": float(takes)}
    for name, resumed in (("alone", alone), ("together", list(together))):
        out |= {f"{name}_{key}": value for key, value in _compare(folder, whole, resumed, cuts).items()}
    return out


async def _hear(engine: Engine, utterance: Utterance) -> Take:
    started, first, chunks = time.perf_counter(), 0.0, []
    async for chunk in engine.speak(utterance):
        first = first or time.perf_counter() - started
        chunks.append(chunk)
    return Take(chunks, first)


def _cut(number: int, take: Take) -> int:
    """Positions at ends of chunks and inside them, early and late."""
    return min((1, 5, 7, 23, 40, 61, 79, 100)[number % 8], take.codes.shape[1] - 1)


def _compare(folder: Path, whole: list[Take], resumed: list[Take], cuts: list[int]) -> dict[str, float]:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    codec = load(folder, torch.device("cpu"), device, torch.float32).codec
    samples = codec.config.frame_samples
    equal, same, sound, seam = 0, [], 0.0, 0.0
    for unbroken, new, cut in zip(whole, resumed, cuts, strict=True):
        positions = {(chunk.resumed_at, chunk.first_frame >= cut) for chunk in new.chunks}
        assert positions == {(cut, True)} and new.chunks[0].first_frame == cut, positions
        to_come = unbroken.codes[:, cut:]
        frames = min(to_come.shape[1], new.codes.shape[1])
        alike = (to_come[:, :frames] == new.codes[:, :frames]).all(0)
        same.append(float(alike.cumprod().sum() / to_come.shape[1]))
        if np.array_equal(to_come, new.codes):
            equal += 1
            sound = max(sound, float(np.abs(unbroken.pcm[cut * samples :] - new.pcm).max()))
        joined = np.concatenate([unbroken.codes[:, :cut], new.codes], axis=1).astype(np.int64)
        with torch.inference_mode():
            at_once = codec.decode(torch.from_numpy(joined)[None].to(device))[0, 0].float().cpu().numpy()
        joined_pcm = np.concatenate([unbroken.pcm[: cut * samples], new.pcm])
        seam = max(seam, float(np.abs(at_once - joined_pcm).max()))
    return {
        "equal": float(equal),
        "same_frames": statistics.median(same),
        "sound_worst": sound,
        "seam_worst": seam,
        "first_ms": statistics.median(take.first for take in resumed) * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--takes", type=int, default=16)
    arguments = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    report = check_resume(arguments.checkpoint, arguments.takes)
    print(json.dumps(report, indent=1))
    exact = report["reproducible"]
    assert exact["alone_equal"] == exact["together_equal"] == exact["takes"], "a reproducible take differed"
    worst = max(figures[f"{name}_seam_worst"] for figures in report.values() for name in ("alone", "together"))
    assert worst < 1e-3, f"the audio has a step of {worst}"


if __name__ == "__main__":
    main()

"""Measures an engine's use of GPU memory: four rows of 4,096 positions, a cloned voice, four takes at once.

python -m benchmarks.memory CHECKPOINT [--cards GIB …] [--weights KIND] [--minutes M] [--audio-minutes M] [--out FILE]

--cards: also the automatic choices within this many GiB, each in its own process, as smaller cards have them free at
the start. torch allocates no more, so an engine that generates on all its rows here would do so there. --minutes,
--audio-minutes: each of them clones new clips and generates on all its rows for so long, or so much audio, to its whole
context in every tenth round. --weights: their format, instead of the automatic choice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from benchmarks.common.material import noise, sentence
from benchmarks.common.report import Report, table
from engine import Engine, EngineConfig, Reference, Utterance
from engine.config import Weights

ROWS, CONTEXT = 4, 4096
GIB = 2**30
BUDGET = 14 * GIB
"""Bytes; too little for a copy of the weights in twelve bits."""
CLIP_SECONDS = 10
FRAMES = 60
"""Frames of a take."""
LONG_CHARACTERS = 2000
"""Of the text of a take that fills the context."""


@dataclass(frozen=True)
class Amount:
    """What an engine has to do: at least a round of takes, for so long, and this much audio."""

    minutes: float = 0.0
    audio_minutes: float = 0.0


ONE_ROUND = Amount()


async def clone(engine: Engine, amount: Amount) -> dict[str, float]:
    """Once all graphs are captured, clone a new clip and generate in it on all rows, again and again."""
    while engine.stats().graphs_left:
        await asyncio.sleep(0.05)
    rate, rows = engine.info.sample_rate, engine.info.max_rows
    clip, chance = noise(CLIP_SECONDS, rate), np.random.default_rng(0)
    started, rounds, audio, encoding = time.monotonic(), 0, 0.0, 0.0

    async def speak(reference: Reference, seed: int, frames: int) -> float:
        text = sentence(seed, LONG_CHARACTERS) if frames > FRAMES else "A sentence to be spoken."
        utterance = Utterance(text, (reference,), replace(engine.info.sampling, seed=seed), max_frames=frames)
        return sum([len(chunk.pcm) async for chunk in engine.speak(utterance)]) / rate

    while not rounds or time.monotonic() < started + 60 * amount.minutes or audio < 60 * amount.audio_minutes:
        new = clip + 0.01 * chance.standard_normal(len(clip)).astype(np.float32)
        began = time.monotonic()
        reference = await engine.encode_reference(new, rate, "Words that are said in ten seconds.")
        encoding = max(encoding, time.monotonic() - began)
        frames = engine.info.max_context if rounds % 10 == 9 else FRAMES
        audio += sum(await asyncio.gather(*(speak(reference, rows * rounds + row, frames) for row in range(rows))))
        rounds += 1
    return {
        "takes": rows * rounds,
        "clips": rounds,
        "clip_s_worst": round(encoding, 2),
        "audio_minutes": round(audio / 60, 2),
        "xrt": round(audio / (time.monotonic() - started), 1),
    }


def measure(config: EngineConfig, amount: Amount = ONE_ROUND) -> dict[str, Any]:
    """Start such an engine, generate and stop it: its plan, and its memory by the driver and by torch, in GiB."""
    free, began = torch.cuda.mem_get_info()[0], time.monotonic()
    engine = Engine.start(config)
    started = time.monotonic()
    done = asyncio.run(clone(engine, amount))
    taken = free - torch.cuda.mem_get_info()[0]
    figures = {
        "rows": engine.info.max_rows,
        "context": engine.info.max_context,
        "weights": engine.info.weights,
        "start_s": round(started - began, 1),
        **done,
        "plan": engine.info.memory,
        "gib_by_the_driver": round(taken / GIB, 2),
        "gib_allocated": round(torch.cuda.memory_allocated() / GIB, 2),
        "gib_reserved_at_most": round(torch.cuda.max_memory_reserved() / GIB, 2),
    }
    engine.stop()
    return figures


def measure_card(checkpoint: str, gib: float, options: argparse.Namespace) -> dict[str, Any]:
    """`measure` with automatic choices, in a process with this many GiB; or the error that ended it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        command = [sys.executable, "-m", "benchmarks.memory", checkpoint, "--within", str(gib)]
        command += ["--minutes", str(options.minutes), "--audio-minutes", str(options.audio_minutes), "--out", str(out)]
        command += ["--weights", options.weights] if options.weights else []
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return {"gib": gib, "error": done.stderr.strip().rpartition("\n")[2]}
        measured: dict[str, Any] = json.loads(out.read_text())["measured"]
        return {"gib": gib, "error": None} | measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--cards", type=float, nargs="*", default=[], metavar="GIB")
    parser.add_argument("--minutes", type=float, default=0.0, help="for each of the cards; default: one round")
    parser.add_argument("--audio-minutes", type=float, default=0.0, help="of audio, only for the cards, each")
    parser.add_argument("--weights", choices=get_args(Weights), help="of each of the cards; default: automatic")
    parser.add_argument("--within", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    if options.within:
        nbytes = int(options.within * GIB)
        torch.cuda.set_per_process_memory_fraction(nbytes / torch.cuda.get_device_properties(0).total_memory)
        # As the studio has it:
        config = EngineConfig(options.checkpoint, memory_bytes=nbytes, codec_dtype="tf32", weights=options.weights)
        report.add({"measured": measure(config, Amount(options.minutes, options.audio_minutes))})
        report.close()
        return
    if not options.audio_minutes:
        figures = measure(EngineConfig(options.checkpoint, max_rows=ROWS, max_context=CONTEXT, memory_bytes=BUDGET))
        taken = {"gib_4x4k": figures["gib_by_the_driver"], "gib_allocated": figures["gib_allocated"]}
        report.add({"plan": figures["plan"], **taken})
    cards = []
    for gib in options.cards:
        cards.append(measure_card(options.checkpoint, gib, options))
        report.add({"cards": cards})
    if cards:
        names = ["gib", "rows", "context", "weights", "start_s", "takes", "audio_minutes", "xrt", "clip_s_worst"]
        names += ["gib_by_the_driver", "gib_reserved_at_most", "error"]
        table("cards", [{name: card.get(name) for name in names} for card in cards])
    report.close()


if __name__ == "__main__":
    main()

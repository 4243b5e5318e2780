"""Measures an engine's use of GPU memory: four rows of 4,096 positions, a cloned voice, four takes at once.

python -m benchmarks.memory CHECKPOINT [--cards GIB …] [--minutes M] [--out FILE]

--cards: also the automatic choices within this many GiB, each in its own process, as smaller cards have them free at
the start. torch allocates no more, so an engine that generates on all its rows here would do so there. --minutes: each
of them clones new clips and generates on all its rows for so long, to its whole context in every tenth round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common.material import noise
from benchmarks.common.report import Report, table
from engine import Engine, EngineConfig, Reference, Sampling, Utterance

ROWS, CONTEXT = 4, 4096
GIB = 2**30
BUDGET = 14 * GIB
"""Bytes; too little for a copy of the weights in twelve bits."""
CLIP_SECONDS = 10
FRAMES = 60
"""Frames of a take."""


async def clone(engine: Engine, minutes: float) -> int:
    """Once all graphs are captured, clone a new clip and generate in it on all rows, again and again; returns takes."""
    while engine.stats().graphs_left:
        await asyncio.sleep(0.05)
    rate, rows = engine.info.sample_rate, engine.info.max_rows
    clip, chance = noise(CLIP_SECONDS, rate), np.random.default_rng(0)
    until, rounds = time.monotonic() + 60 * minutes, 0

    async def speak(reference: Reference, seed: int, frames: int) -> None:
        utterance = Utterance("A sentence to be spoken.", (reference,), Sampling(seed=seed), max_frames=frames)
        async for _ in engine.speak(utterance):
            pass

    while not rounds or time.monotonic() < until:
        new = clip + 0.01 * chance.standard_normal(len(clip)).astype(np.float32)
        reference = await engine.encode_reference(new, rate, "Words that are said in ten seconds.")
        frames = engine.info.max_context if rounds % 10 == 9 else FRAMES
        await asyncio.gather(*(speak(reference, rows * rounds + row, frames) for row in range(rows)))
        rounds += 1
    return rows * rounds


def measure(config: EngineConfig, minutes: float = 0.0) -> dict[str, Any]:
    """Start such an engine, generate and stop it: its plan, and its memory by the driver and by torch, in GiB."""
    free = torch.cuda.mem_get_info()[0]
    engine = Engine.start(config)
    takes = asyncio.run(clone(engine, minutes))
    taken = free - torch.cuda.mem_get_info()[0]
    figures = {
        "rows": engine.info.max_rows,
        "context": engine.info.max_context,
        "takes": takes,
        "plan": engine.info.memory,
        "gib_by_the_driver": round(taken / GIB, 2),
        "gib_allocated": round(torch.cuda.memory_allocated() / GIB, 2),
        "gib_reserved_at_most": round(torch.cuda.max_memory_reserved() / GIB, 2),
    }
    engine.stop()
    return figures


def measure_card(checkpoint: str, gib: float, minutes: float) -> dict[str, Any]:
    """`measure` with automatic choices, in a process with this many GiB; or the error that ended it."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "measured.json"
        command = [sys.executable, "-m", "benchmarks.memory", checkpoint, "--within", str(gib)]
        command += ["--minutes", str(minutes), "--out", str(out)]
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
    parser.add_argument("--within", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    if options.within:
        nbytes = int(options.within * GIB)
        torch.cuda.set_per_process_memory_fraction(nbytes / torch.cuda.get_device_properties(0).total_memory)
        config = EngineConfig(options.checkpoint, memory_bytes=nbytes, codec_dtype="tf32")  # as the studio has it
        report.add({"measured": measure(config, options.minutes)})
        report.close()
        return
    figures = measure(EngineConfig(options.checkpoint, max_rows=ROWS, max_context=CONTEXT, memory_bytes=BUDGET))
    report.add(
        {"plan": figures["plan"], "gib_4x4k": figures["gib_by_the_driver"], "gib_allocated": figures["gib_allocated"]}
    )
    cards = []
    for gib in options.cards:
        cards.append(measure_card(options.checkpoint, gib, options.minutes))
        report.add({"cards": cards})
    if cards:
        names = "gib", "rows", "context", "takes", "gib_by_the_driver", "gib_reserved_at_most", "error"
        table("cards", [{name: card.get(name) for name in names} for card in cards])
    report.close()


if __name__ == "__main__":
    main()

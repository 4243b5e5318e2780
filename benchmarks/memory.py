"""What an engine really takes of a GPU: four rows of 4,096 positions, a cloned voice, four takes at once.

python -m benchmarks.memory CHECKPOINT [--out FILE]
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import torch

from benchmarks.common.material import noise
from benchmarks.common.report import Report
from engine import Engine, EngineConfig, Sampling, Utterance

ROWS, CONTEXT = 4, 4096
BUDGET = 14 * 2**30
"""Bytes; too little for weights in twelve bits besides."""
CLIP_SECONDS = 10


async def clone(engine: Engine) -> None:
    """Encode a clip and speak with it on all rows."""
    rate = engine.info.sample_rate
    reference = await engine.encode_reference(noise(CLIP_SECONDS, rate), rate, "Words that are said in ten seconds.")

    async def speak(seed: int) -> None:
        utterance = Utterance("A sentence to be spoken.", (reference,), Sampling(seed=seed), max_frames=60)
        async for _ in engine.speak(utterance):
            pass

    await asyncio.gather(*(speak(seed) for seed in range(ROWS)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    free = torch.cuda.mem_get_info()[0]
    engine = Engine.start(EngineConfig(options.checkpoint, max_rows=ROWS, max_context=CONTEXT, memory_bytes=BUDGET))
    asyncio.run(clone(engine))
    taken = free - torch.cuda.mem_get_info()[0]
    report.add({"plan": engine.info.memory, "gib_4x4k": round(taken / 2**30, 2)})
    report.add({"gib_allocated": round(torch.cuda.memory_allocated() / 2**30, 2)})
    engine.stop()
    report.close()


if __name__ == "__main__":
    main()

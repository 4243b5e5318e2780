"""What quantised weights do to a checkpoint that speaks: how its own takes look to it with them, frame by frame.

python -m benchmarks.weights CHECKPOINT [--out FILE]

On a CPU in float32, so that nothing but the rounding of the weights counts. Each frame is judged after what was really
spoken before it, so that one that differs does not lead the others astray.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.common.report import Report, table
from engine import Engine, EngineConfig, Sampling, Utterance
from engine.checkpoint import Checkpoint, load
from engine.model.dual_ar import Causal
from engine.model.held_weight import BITS
from engine.model.prompt import build_prompt

TEXTS = (
    "The morning was quiet, and the harbour lay under a thin mist.",
    "One boat after the other came home.",
    "By noon the market was full of voices.",
    "She opened the letter slowly and read it twice.",
    "Nobody knew where the old road ended.",
    "Please leave your keys on the table.",
    "It rained for three days without a pause.",
    "He laughed, and the whole room laughed with him.",
)
SEEDS = range(4)

Spoken = tuple[Utterance, np.ndarray]


@dataclass(frozen=True, eq=False, slots=True)
class Take:
    """Slow-AR input of a take's prompt and frames: ids (1, steps), codes (1, codebooks, steps), int64."""

    ids: Tensor
    codes: Tensor
    start: int
    """Steps of the prompt."""

    @classmethod
    def of(cls, utterance: Utterance, codes: np.ndarray, checkpoint: Checkpoint) -> Take:
        prompt = build_prompt(utterance, checkpoint.tokenizer, checkpoint.config)
        ids = np.concatenate([prompt.ids, codes[0] + np.int64(checkpoint.config.semantic_start)])
        every = np.concatenate([prompt.codes, codes], 1)
        return cls(torch.from_numpy(ids)[None], torch.from_numpy(every)[None], len(prompt))


def taken(folder: Path, texts: int = len(TEXTS), seeds: int = len(SEEDS)) -> list[Spoken]:
    """The first texts with the first seeds: the codes (codebooks, frames) that the checkpoint makes of each."""
    return asyncio.run(
        _speak(folder, [Utterance(t, (), Sampling(seed=s)) for t in TEXTS[:texts] for s in SEEDS[:seeds]])
    )


async def _speak(folder: Path, utterances: list[Utterance]) -> list[Spoken]:
    engine = Engine.start(EngineConfig(str(folder), device="cpu"))

    async def take(utterance: Utterance) -> Spoken:
        return utterance, np.concatenate([chunk.codes async for chunk in engine.speak(utterance)], 1)

    takes = await asyncio.gather(*(take(utterance) for utterance in utterances))
    engine.stop()
    return takes


def logits(checkpoint: Checkpoint, spoken: list[Spoken]) -> tuple[Tensor, Tensor]:
    """Of every frame's semantic token (frames, columns), and of its residual codes (frames · codes, columns)."""
    model, semantic, residual = checkpoint.model, [], []
    for take in (Take.of(utterance, codes, checkpoint) for utterance, codes in spoken):
        x = model.embed(take.ids, take.codes)
        hidden = model.slow(x, torch.arange(x.shape[1])[None], Causal())[0, take.start - 1 : -1]
        semantic.append(F.linear(hidden, model.head()))
        known = model.fast.embeddings(take.codes[0, :-1, take.start :].t())  # all but a frame's last code
        x = torch.cat([model.fast_project_in(hidden)[:, None], known], 1)
        residual.append(model.fast_logits(x, torch.arange(x.shape[1])[None], Causal())[:, 1:].flatten(0, 1))
    return torch.cat(semantic), torch.cat(residual)


def compare(oracle: Tensor, other: Tensor) -> tuple[float, float]:
    """The share of rows whose likeliest column stays the same, and their mean divergence in nats."""
    kept = (oracle.argmax(1) == other.argmax(1)).float().mean()
    divergence = F.kl_div(other.log_softmax(1), oracle.log_softmax(1), reduction="batchmean", log_target=True)
    return float(kept), float(divergence)


@torch.inference_mode()
def judge(folder: Path, spoken: list[Spoken]) -> list[dict[str, Any]]:
    """A row of figures for each kind of quantised weights."""
    cpu, figures, oracle = torch.device("cpu"), [], None
    for weights in BITS:
        both = logits(load(folder, cpu, cpu, torch.float32, weights=weights), spoken)
        if oracle is None:
            oracle = both
            continue
        semantic, residual = map(compare, oracle, both)
        figures.append(
            {
                "weights": weights,
                "semantic_kept": semantic[0],
                "semantic_kl_nats": semantic[1],
                "residual_kept": residual[0],
                "residual_kl_nats": residual[1],
            }
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    spoken = taken(options.checkpoint)
    report.add({"takes": len(spoken), "frames": sum(codes.shape[1] for _, codes in spoken)})
    figures = judge(options.checkpoint, spoken)
    report.add({"weights": figures})
    table(f"Likeliest token and codes kept, of {report.results['frames']} frames", figures)
    report.close()


if __name__ == "__main__":
    main()

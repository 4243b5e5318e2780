"""Times frames by rows and prefills by positions, as CUDA graphs alone, with weights of each kind.

python -m benchmarks.engine.frames [--shape NAME] [--weights KIND …] [--rows ROWS …] [--out FILE]

Full-size random weights, 600 positions in the cache; the figures exclude the loop, the codec and the host's part,
so that versions of the kernels can be compared on one GPU. Each frame waits for the host; in a sequence the
GPU never pauses, as in `benchmarks.gpu`, which times whole frames.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.report import Report, table
from benchmarks.engine.model import CONFIGS, DEVICE, random_model
from benchmarks.gpu import floor, median_ms
from engine.config import ModelConfig
from engine.fused.frame import FusedFrame, FusedPrefill
from engine.kernels.compilation import compiling
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.slots import Slots
from engine.model.stored_weight import BITS
from engine.runtime.graphs import PREFILL_SIZES, CapturedGraph, no_garbage_collection

CONTEXT, FILLED = 1024, 600
ROWS = (1, 2, 3, 4, 8, 16, 32, 64)
PREFIX, TEXT = 300, 40
"""Positions of a cached voice before each prompt of a prefill, and positions of its text."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=CONFIGS, default="s2-pro")
    parser.add_argument("--weights", nargs="+", choices=tuple(BITS), default=["bf16"])
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    with torch.inference_mode():
        speed, least = floor()
        report.add({"device": torch.cuda.get_device_name(), "read_gb_s": round(speed), "floor_ms": round(least, 3)})
        model = random_model(CONFIGS[options.shape])
        for weights in options.weights:
            times = measure(model.quantised_as(weights), options.rows)
            report.add({f"{weights}_{name}": ms for name, ms in times.items()})
            for name, counted in (("frame_ms", "rows"), ("frame_ms_in_a_row", "rows"), ("prefill_ms", "positions")):
                table(f"{weights} {name}", [{counted: count, "ms": ms} for count, ms in times[name].items()])
    report.close()


def measure(model: DualAR, sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Milliseconds by rows of a frame, alone and in a sequence, and by positions of a prefill."""
    most = max(sizes)
    config = model.config
    slots = Slots(config, most, CONTEXT, DEVICE, torch.bfloat16)
    cache = KVCache(config.slow, most, CONTEXT, DEVICE, torch.bfloat16, spare=True)
    for filled in (cache.keys, cache.values, slots.input):
        filled.normal_()
    slots.seed.random_(2**62)
    frame = FusedFrame(model, cache, slots, True, twelve_bits="tiles")
    graphs = {rows: frame_graph(frame, slots, rows) for rows in sizes}
    read = FusedPrefill(model, frame.slow, cache)
    return {
        "frame_ms": {rows: round(median_ms(graph.again), 3) for rows, graph in graphs.items()},
        "frame_ms_in_a_row": {rows: sequence_ms(graph) for rows, graph in graphs.items()},
        "prefill_ms": {size: time_prefill(read, config, size) for size in PREFILL_SIZES if size // TEXT < most},
    }


def frame_graph(frame: FusedFrame, slots: Slots, rows: int) -> CapturedGraph:
    """A frame of this many rows."""

    def draw(which: Tensor) -> Tensor:
        slots.position[:] = FILLED
        return frame(which)

    return _graph(draw, torch.arange(rows, device=DEVICE))


def sequence_ms(graph: CapturedGraph, frames: int = 200) -> float:
    """Milliseconds per frame, for frames without waiting by the host."""

    def run() -> None:
        for _ in range(frames):
            graph.again()

    return round(median_ms(run, 3, 1) / frames, 3)


def time_prefill(read: FusedPrefill, config: ModelConfig, size: int) -> float:
    """Median milliseconds of reading prompts of TEXT positions after PREFIX cached ones, this many positions in all."""
    at, text = torch.arange(size, device=DEVICE), torch.randn(size, config.slow.dim, device=DEVICE).bfloat16()
    codes = torch.zeros(config.num_codebooks, size, dtype=torch.int64, device=DEVICE)
    return round(median_ms(_graph(read, text, at * 7, codes, at // TEXT, PREFIX + at % TEXT).again), 3)


def _graph(work: Callable[..., Any], *inputs: Tensor) -> CapturedGraph:
    with compiling():
        work(*inputs)
    with no_garbage_collection():
        return CapturedGraph.of(work, inputs, None, torch.cuda.Stream())


if __name__ == "__main__":
    main()

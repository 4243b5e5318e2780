"""The engine on one GPU with full-size random weights: correctness first, then times compared with physical limits.

python -m benchmarks.gpu SMALL_CHECKPOINT [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import json
import queue
import statistics
import time
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from benchmarks.engine.checks import check_batch_invariance, check_kernels, check_logits, check_small, check_stops
from benchmarks.engine.encoding import time_encoding
from benchmarks.engine.model import DEVICE, FRAME_SECONDS, S2_PRO, join, random_model, row
from benchmarks.engine.resume import check_resume
from engine import kernels
from engine.codec import Codec, CodecConfig, Precision
from engine.config import TwelveBits, Weights
from engine.fused.codec_decoder import FusedDecoder
from engine.model.dual_ar import DualAR
from engine.model.stored_weight import StoredWeight
from engine.runtime.codec_streams import GraphStreams
from engine.runtime.graphs import capture
from engine.runtime.loop import Loop
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.types import AudioChunk


def median_ms(run: Any, repeat: int = 30, warm: int = 3) -> float:
    """Median milliseconds by CUDA events."""
    times = []
    for i in range(warm + repeat):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        if i >= warm:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


SHAPES = {
    "qkv": (6144, 2560, "norm"),
    "wo": (2560, 4096, "residual"),
    "gate_up": (9728, 2560, "gated"),
    "down": (2560, 9728, "residual"),
    "head": (4097, 2560, "norm"),
}
"""Columns, depth and fused operations of every product in a frame."""


def time_products() -> dict[str, dict[str, float]]:
    """Every product of a frame by rows: TB/s of weights read, by our kernels and by cuBLAS without fused operations."""
    return {
        f"{rows} {name}": {way: round(product_speed(name, rows, way == "cublas"), 2) for way in ("kernel", "cublas")}
        for rows in (1, 8, 32, 64)
        for name in SHAPES
    }


def product_speed(name: str, rows: int, cublas: bool) -> float:
    """TB/s over copies of the weights that together far exceed the L2."""
    columns, depth, kind = SHAPES[name]
    stored = columns * (2 if kind == "gated" else 1)
    weights = [
        (torch.randn(stored, depth, device=DEVICE) * 0.02).bfloat16() for _ in range(2 + int(4e8 / stored / depth / 2))
    ]
    x = torch.randn(rows, depth, device=DEVICE).bfloat16()
    fused: dict[str, Any] = {"norm": torch.ones_like(x[0]), "eps": 1e-6, "gated": kind == "gated"}
    if kind == "residual":
        fused = {"residual": torch.randn(rows, columns, device=DEVICE).bfloat16()}
    if cublas:
        ms = graphed_ms(lambda: [torch.nn.functional.linear(x, weight) for weight in weights])
    else:
        ms = graphed_ms(lambda: [kernels.linear(x, StoredWeight(weight), **fused) for weight in weights])
    return sum(weight.nbytes for weight in weights) / ms / 1e9


def graphed_ms(run: Any) -> float:
    """Median milliseconds of one graph run."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return median_ms(graph.replay, 12, 2)


def floor() -> tuple[float, float]:
    """GB/s of a large read, and the milliseconds to read a frame's weights at that speed."""
    big = torch.randn(2**30, device=DEVICE)
    ms = median_ms(lambda: big.sum(), 10)
    speed = big.nbytes / ms / 1e6
    layer = 2560 * 6144 + 4096 * 2560 + 3 * 2560 * 9728
    weights = 2 * (36 * layer + 4097 * 2560 + 9 * (4 * layer + 4096 * 2560))
    return speed, weights / speed / 1e6


def time_frames(
    model: DualAR, sizes: tuple[int, ...], context: int, twelve_bits: TwelveBits = "tiles"
) -> dict[str, float]:
    """Milliseconds from frame to frame by rows, each starting after ``context`` positions."""
    runner = Runner(model, max(sizes), 1024)
    started = time.perf_counter()
    capture(*runner.use_graphs(True, twelve_bits=twelve_bits))
    torch.cuda.synchronize()
    out = {"capture_s": time.perf_counter() - started}
    for size in sizes:
        rows = join(runner, tuple(row(i, i, context, S2_PRO) for i in range(size)))
        out[f"frame_ms_b{size}"] = _frame_ms(runner, rows)
    return out


def _frame_ms(runner: Runner, batch: tuple[Row, ...], repeat: int = 40, warm: int = 10) -> float:
    """Median milliseconds from frame to frame, each launched before the previous one is read, as in the loop."""
    times, launched = [], runner.launch(batch)
    for _ in range(repeat + warm):
        ahead = runner.launch(batch)
        list(launched.read())
        times.append(time.perf_counter())
        launched = ahead
    list(launched.read())
    return statistics.median(b - a for a, b in itertools.pairwise(times[warm:])) * 1e3


class Listener:
    """A listener's record of a take: the time of each chunk, and its frames."""

    def __init__(self) -> None:
        self.chunks: list[tuple[float, int]] = []
        self.first = 0.0
        self.last: queue.SimpleQueue[AudioChunk] = queue.SimpleQueue()

    def __call__(self, item: Any) -> None:
        if not isinstance(item, AudioChunk):
            return
        self.chunks.append((time.perf_counter(), item.frames))
        self.first = self.first or item.timing.now
        if item.finish_reason:
            self.last.put(item)


def time_streams(model: DualAR, codec: Codec, rows: int, frames: int, precision: Precision) -> dict[str, float]:
    """The whole loop with the codec: every row generates `frames` frames; then first audio of a cached voice, alone."""
    runner = Runner(model, rows, 1024, 2**31)
    capture(*runner.use_graphs(True, twelve_bits="tiles"))
    decoder = FusedDecoder(codec, rows, precision)
    streams = GraphStreams(decoder, rows)
    started = time.perf_counter()
    capture(*streams.graphs)
    captured = time.perf_counter() - started
    loop = Loop(runner, streams, decoder.device, rows, 2 * rows, FRAME_SECONDS)
    loop.start()

    def submit(seed: int, steps: int, most: int) -> Listener:
        row_, listener = row(0, seed, steps, S2_PRO), Listener()
        row_.max_frames, row_.sink = most, listener
        loop.submit(row_)
        return listener

    submit(1, 300, 20).last.get()
    started = time.perf_counter()
    takes = [submit(i, 300, frames) for i in range(rows)]
    for listener in takes:
        listener.last.get()
    seconds = time.perf_counter() - started
    # All rows are active between the last one's first chunk and the first one's last.
    begin, end = max(listener.chunks[0][0] for listener in takes), min(listener.chunks[-1][0] for listener in takes)
    spoken = sum(count for listener in takes for at, count in listener.chunks if begin < at <= end)
    total = sum(count for listener in takes for _, count in listener.chunks)
    first = []
    for _ in range(20):  # the same prompt: all but its last 40 positions are cached
        listener = submit(7, 300, 6)
        listener.last.get()
        first.append(listener.first * 1e3)
    loop.stop()
    return {
        "xrt_with_codec": spoken * FRAME_SECONDS / (end - begin),
        "xrt_with_codec_and_prefill": total * FRAME_SECONDS / seconds,
        "first_audio_ms": statistics.median(first[2:]),
        "codec_capture_s": captured,
    }


def time_codec(codec: Codec) -> dict[str, float]:
    """The codec alone: streams of 32 rows in chunks of eight, and of one."""
    out = {}
    codes = np.random.default_rng(0).integers(0, 1024, (10, 8)).astype(np.int16)
    for precision in get_args(Precision):
        streams = GraphStreams(FusedDecoder(codec, 32, precision), 32)
        capture(*streams.graphs)
        pieces = [(i, codes) for i in range(32)]
        for name, _ in pieces:
            streams.open(name)
        ms = median_ms(lambda streams=streams, pieces=pieces: streams.decode(pieces), 10)
        out[f"codec_xrt_32_{precision}"] = 32 * 8 * FRAME_SECONDS / ms * 1e3
        one = pieces[:1]
        first = [(0, codes[:, :1])]
        out[f"chunk8_ms_{precision}"] = median_ms(lambda streams=streams, one=one: streams.decode(one), 10)
        out[f"chunk1_ms_{precision}"] = median_ms(lambda streams=streams, first=first: streams.decode(first), 10)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("small", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}

    def keep(name: str, value: Any) -> None:
        report[name] = value
        print(f"[{time.perf_counter() - began:6.1f} s] {name}: {json.dumps(value)}", flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(report, indent=1))

    began = time.perf_counter()
    with torch.inference_mode():
        keep("kernels", check_kernels())
        keep("small", check_small(arguments.small))
        speed, ms = floor()
        keep("read_gb_s", speed)
        keep("floor_ms", ms)
        if not arguments.quick:
            keep("products", time_products())
        model = random_model()
        keep("frames", time_frames(model, (1, 2, 4, 8, 16, 32, 64), 600))
        plain = time_frames(model, (1,), 600, twelve_bits="none")
        keep("frames_sixteen_bits", {"frame_ms_b1_sixteen_bits": plain["frame_ms_b1"]})
        keep("alike", check_batch_invariance(model))
        with DEVICE:
            codec = Codec(CodecConfig()).eval().requires_grad_(False)
        keep("codec", time_codec(codec))
        takes: tuple[tuple[int, Precision], ...] = ((1, "float32"), (64, "float32"), (64, "tf32"), (64, "bfloat16"))
        for count, precision in takes:
            keep(f"stream_{count}_{precision}", time_streams(model, codec, count, 250, precision))
        if torch.cuda.device_count() > 1:
            with torch.device("cuda:1"):
                apart = Codec(CodecConfig()).eval().requires_grad_(False)
            keep("stream_64_tf32_two_gpus", time_streams(model, apart, 64, 250, "tf32"))
        keep("encoding", time_encoding(model, codec))
        keep("logits", check_logits(model))
        quantised: tuple[Weights, ...] = ("int8", "int6")
        for weights in quantised:
            frames = time_frames(model.quantised_as(weights), (1, 64), 600)
            keep(f"frames_{weights}", {f"frame_ms_b{rows}_{weights}": frames[f"frame_ms_b{rows}"] for rows in (1, 64)})
        keep("stops", check_stops(arguments.small))  # takes half of the total time
        keep("resume", check_resume(arguments.small))
    print(json.dumps({key: value for key, value in report.items() if key not in ("products", "kernels")}))


if __name__ == "__main__":
    main()

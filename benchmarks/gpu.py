"""The engine on one GPU with full-size random weights: correctness first, then times beside the physical floor.

python -m benchmarks.gpu SMALL_CHECKPOINT [--quick]
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import itertools
import json
import queue
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from engine import kernels
from engine.cache import KVCache
from engine.checkpoint import load
from engine.codec import Codec, CodecConfig, Precision
from engine.codec.fused import FusedDecoder
from engine.config import ModelConfig, TransformerSizes
from engine.fused import FusedTransformer
from engine.layers import rope_angles
from engine.loop import Loop
from engine.model import Causal, DualAR
from engine.prompt import Prompt
from engine.row import Row
from engine.runner import Runner
from engine.streams import GraphStreams, PlainStreams
from engine.types import AudioChunk, Sampling

DEVICE = torch.device("cuda")
SLOW = TransformerSizes(155776, 36, 2560, 32, 8, 128, 9728, True, 1e6, 1e-6)
S2_PRO = ModelConfig(
    slow=SLOW,
    fast=replace(SLOW, vocab_size=4096, n_layer=4, qk_norm=False),
    num_codebooks=10,
    codebook_size=4096,
    max_context=32768,
    tie_word_embeddings=True,
    eos_token=151645,
    semantic_start=151678,
    semantic_end=155773,
)
FRAME_SECONDS = 2048 / 44100


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


def error(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm())


def row(slot: int, seed: int, steps: int, config: ModelConfig, sampling: Sampling | None = None) -> Row:
    """A row whose prompt is random text and frames."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, config.eos_token, steps)
    codes = np.zeros((config.num_codebooks, steps), np.int64)
    made = Row(Prompt(ids, codes, max(0, steps - 40)), sampling or Sampling(seed=seed), 100_000, lambda item: None)
    made.slot = slot
    return made


def join(runner: Runner, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    for each in rows:
        while not runner.prefill([each]):
            pass
    return rows


def check_kernels() -> dict[str, float]:
    """bf16 kernels against their twins in float64-ish float32: relative errors."""
    torch.manual_seed(0)
    out = {}
    for rows_, (columns, depth) in itertools.product((1, 5, 16), ((6144, 2560), (2560, 9728))):
        x = torch.randn(rows_, depth, device=DEVICE).bfloat16()
        w = (torch.randn(columns, depth, device=DEVICE) / depth**0.5).bfloat16()
        g = (1 + 0.1 * torch.randn(depth, device=DEVICE)).bfloat16()
        r = torch.randn(rows_, columns, device=DEVICE).bfloat16()
        f = [t.float() for t in (x, w, g, r)]
        key = f"linear {rows_}x{columns}x{depth}"
        out[key] = error(kernels.linear(x, w), kernels.linear_twin(f[0], f[1]))
        out[key + " norm"] = error(kernels.linear(x, w, g, 1e-6), kernels.linear_twin(f[0], f[1], f[2], 1e-6))
        out[key + " residual"] = error(kernels.linear(x, w, residual=r), kernels.linear_twin(f[0], f[1], residual=f[3]))
        gated = kernels.linear(x, w, g, 1e-6, gated=True)
        out[key + " gated"] = error(gated, kernels.linear_twin(f[0], f[1], f[2], 1e-6, gated=True))
    keys, values = (torch.randn(9, 2048, 8, 128, device=DEVICE).bfloat16() for _ in range(2))
    slots, positions = torch.tensor([3, 0, 8], device=DEVICE), torch.tensor([0, 600, 2047], device=DEVICE)
    table = torch.view_as_real(rope_angles(torch.arange(2048, device=DEVICE), 128, 1e6)).contiguous()
    qkv = torch.randn(3, 48 * 128, device=DEVICE).bfloat16()
    gains = [(1 + 0.1 * torch.randn(128, device=DEVICE)).bfloat16() for _ in range(2)]
    norms = (gains[0], gains[1])
    k2, v2 = keys.clone(), values.clone()
    q = kernels.rotate(qkv, norms, 1e-6, table, slots, positions, keys, values)
    out["rotate"] = error(q, kernels.rotate_twin(qkv, norms, 1e-6, table, slots, positions, k2, v2))
    out["rotate keys"] = error(keys, k2)
    how = qkv, norms, 1e-6, table
    y = kernels.decode_attention(*how, keys, values, slots, positions)
    out["attention"] = error(y, kernels.decode_attention_twin(*how, k2, v2, slots, positions))
    out["attention keys"] = error(keys, k2)
    logits = torch.randn(64, 4097, device=DEVICE) * 3
    drawing = (
        torch.randperm(64, device=DEVICE),
        torch.rand(64, device=DEVICE) * 1.5,
        torch.rand(64, device=DEVICE),
        torch.randint(1, 200, (64,), device=DEVICE),
        torch.randint(0, 2**62, (64,), device=DEVICE),
        torch.randint(0, 2000, (64,), device=DEVICE),
    )
    recent = torch.randint(-1, 4097, (64, 10), device=DEVICE)
    out["sample mismatches of 64"] = float(
        (kernels.sample(logits, *drawing, 3) != kernels.sample_twin(logits, *drawing, 3)).sum()
    )
    mine, twin = (f(logits, *drawing, 0, recent) for f in (kernels.sample, kernels.sample_twin))
    out["semantic mismatches of 64"] = float((mine != twin).sum())
    return out


def check_small(folder: Path) -> dict[str, Any]:
    """On a small checkpoint in float32: the graph path draws what plain torch draws, and decodes the same sound."""
    small = load(folder, DEVICE, DEVICE, torch.float32)
    texts = (Sampling(temperature=0.0), Sampling(seed=7), Sampling(temperature=1.1, top_p=0.95, top_k=60, seed=9))
    frames: list[np.ndarray] = []
    for graphs in (False, True):
        runner = Runner(small.model, 4, 1024)
        if graphs:
            runner.use_graphs(True, lambda done: None)
        prompts = tuple(row(i, i, 40 + 30 * i, small.config, texts[i]) for i in range(3))
        for each in prompts:
            each.prompt.ids[:] %= 256
        rows = join(runner, prompts)
        frames.append(np.stack([[codes for _, codes, _ in runner.launch(rows).read()] for _ in range(60)]))
    codes = frames[0].transpose(1, 2, 0) % small.codec.config.residual_codebook_size
    plain, graph = PlainStreams(small.codec), GraphStreams(FusedDecoder(small.codec, 4), 4)
    graph.capture(lambda done: None)
    worst = 0.0
    cuts = np.cumsum([0, 1, 2, 4, 8, 8, 7, 5, 3])
    for a, b in itertools.pairwise(cuts):
        pieces = [(i, codes[i, :, a:b]) for i in range(3)]
        for streams in (plain, graph):
            for name, _ in pieces:
                streams.open(name)
        for x, y in zip(plain.decode(pieces), graph.decode(pieces), strict=True):
            worst = max(worst, float(np.abs(x - y).max()))
    return {
        "frames_equal": int((frames[0] == frames[1]).all((1, 2)).sum()),
        "of_frames": len(frames[0]),
        "codec_worst": worst,
    }


SHAPES = {
    "qkv": (6144, 2560, "norm"),
    "wo": (2560, 4096, "residual"),
    "gate_up": (9728, 2560, "gated"),
    "down": (2560, 9728, "residual"),
    "head": (4097, 2560, "norm"),
}
"""Columns, depth and what is fused in, of every product of a frame."""


def time_products() -> dict[str, dict[str, float]]:
    """Every product of a frame by rows: TB/s of weights read, by our kernels and by cuBLAS without what is fused in."""
    return {
        f"{rows} {name}": {way: round(product_speed(name, rows, way == "cublas"), 2) for way in ("kernel", "cublas")}
        for rows in (1, 8, 32, 64)
        for name in SHAPES
    }


def product_speed(name: str, rows: int, cublas: bool) -> float:
    """TB/s over copies of the weights that together are far larger than the L2."""
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
        ms = graphed_ms(lambda: [kernels.linear(x, weight, **fused) for weight in weights])
    return sum(weight.nbytes for weight in weights) / ms / 1e9


def graphed_ms(run: Any) -> float:
    """Median milliseconds of a graph of the run."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return median_ms(graph.replay, 12, 2)


def random_model() -> DualAR:
    with torch.device("meta"):
        model = DualAR(S2_PRO)
    model = model.to_empty(device=DEVICE).bfloat16()
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            parameter.data.fill_(1.0)
        else:
            parameter.data.normal_(0, 0.02)
    return model.eval().requires_grad_(False)


def floor() -> tuple[float, float]:
    """GB/s of a large read, and the milliseconds that a frame's weights take at that speed."""
    big = torch.randn(2**30, device=DEVICE)
    ms = median_ms(lambda: big.sum(), 10)
    speed = big.nbytes / ms / 1e6
    layer = 2560 * 6144 + 4096 * 2560 + 3 * 2560 * 9728
    weights = 2 * (36 * layer + 4097 * 2560 + 9 * (4 * layer + 4096 * 2560))
    return speed, weights / speed / 1e6


def time_frames(model: DualAR, sizes: tuple[int, ...], context: int, float8: bool = False) -> dict[str, float]:
    runner = Runner(model, max(sizes), 1024)
    started = time.perf_counter()
    runner.use_graphs(True, lambda done: None, float8=float8)
    torch.cuda.synchronize()
    out = {"capture_s": time.perf_counter() - started}
    rows = join(runner, tuple(row(i, i, context, S2_PRO) for i in range(max(sizes))))
    for size in sizes:
        batch = rows[:size]
        out[f"frame_ms_b{size}"] = median_ms(lambda batch=batch: list(runner.launch(batch).read()), 30, 5)
    return out


class Heard:
    """What a listener notes of a take: when each chunk came, with how many frames."""

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
    """The whole loop, codec included: every row draws `frames` frames; then first audio of a known voice, alone."""
    runner = Runner(model, rows, 1024, 2**31)
    runner.use_graphs(True, lambda done: None)
    streams = GraphStreams(FusedDecoder(codec, rows, precision), rows)
    started = time.perf_counter()
    streams.capture(lambda done: None)
    captured = time.perf_counter() - started
    loop = Loop(runner, streams, DEVICE, rows, 2 * rows, FRAME_SECONDS)
    loop.start()

    def submit(seed: int, steps: int, most: int) -> Heard:
        made, heard = row(0, seed, steps, S2_PRO), Heard()
        made.max_frames, made.sink = most, heard
        loop.submit(made)
        return heard

    submit(1, 300, 20).last.get()
    started = time.perf_counter()
    takes = [submit(i, 300, frames) for i in range(rows)]
    for heard in takes:
        heard.last.get()
    seconds = time.perf_counter() - started
    # All rows speak between the last one's first chunk and the first one's last.
    begin, end = max(heard.chunks[0][0] for heard in takes), min(heard.chunks[-1][0] for heard in takes)
    spoken = sum(count for heard in takes for at, count in heard.chunks if begin < at <= end)
    total = sum(count for heard in takes for _, count in heard.chunks)
    first = []
    for _ in range(20):  # the same prompt: all but its last 40 positions are known
        heard = submit(7, 300, 6)
        heard.last.get()
        first.append(heard.first * 1e3)
    loop.stop()
    return {
        "xrt_with_codec": spoken * FRAME_SECONDS / (end - begin),
        "xrt_with_codec_and_prefill": total * FRAME_SECONDS / seconds,
        "first_audio_ms": statistics.median(first[2:]),
        "codec_capture_s": captured,
    }


def check_logits(model: DualAR) -> dict[str, float]:
    """Relative errors of logits against float32: plain torch in bfloat16, the kernels in bfloat16, and with fp8."""
    torch.manual_seed(1)
    steps = 48
    x = model.embed(torch.randint(0, 9999, (1, steps), device=DEVICE), torch.zeros(1, 10, steps, device=DEVICE).long())
    positions, slots = torch.arange(steps, device=DEVICE), torch.zeros(steps, dtype=torch.int64, device=DEVICE)
    head = model.head().contiguous()
    plain = torch.nn.functional.linear(model.slow(x, positions[None], Causal())[0], head)
    wide = copy.deepcopy(model.slow).float()
    oracle = torch.nn.functional.linear(wide(x.float(), positions[None], Causal())[0], head.float())
    del wide
    out = {"plain bfloat16": error(plain, oracle)}
    for name, float8 in (("kernels bfloat16", False), ("kernels fp8", True)):  # fp8 last: it takes the weights away
        fused = FusedTransformer(model.slow, 1024, kernels.decode_attention, alike=False, float8=float8)
        cache = KVCache(S2_PRO.slow, 1, 1024, DEVICE, torch.bfloat16)
        hidden = fused(x[0].clone(), slots, positions, cache, one_slot_twice=True)
        out[name] = error(fused.head(hidden, head), oracle)
        if not float8:
            cache = KVCache(S2_PRO.slow, 1, 1024, DEVICE, torch.bfloat16)
            alone = [fused(x[0, i : i + 1].clone(), slots[:1], positions[i : i + 1], cache) for i in range(steps)]
            out["kernels bfloat16, step by step"] = error(fused.head(torch.cat(alone), head), oracle)
    return out


def check_alike(model: DualAR) -> dict[str, int]:
    """Frames of a seeded row that are the same alone and among 63 others, in the reproducible mode and without it."""
    equal = {}
    for alike in (True, False):
        runner = Runner(model, 64, 1024)
        runner.use_graphs(True, lambda done: None, alike)
        drawn = []
        for company in (1, 64):
            rows = join(runner, tuple(row(i, 100 + i, 300 + i, S2_PRO) for i in range(company)))
            drawn.append(np.stack([next(iter(runner.launch(rows).read()))[1].copy() for _ in range(40)]))
        equal["reproducible" if alike else "usual"] = int((drawn[0] == drawn[1]).all(1).sum())
    return equal | {"of_frames": 40}


def time_codec(codec: Codec) -> dict[str, float]:
    """The codec alone: streams of 32 rows in chunks of eight, and a cold clip of 10 s."""
    out = {}
    codes = np.random.default_rng(0).integers(0, 1024, (10, 8)).astype(np.int16)
    for precision in get_args(Precision):
        streams = GraphStreams(FusedDecoder(codec, 32, precision), 32)
        streams.capture(lambda done: None)
        pieces = [(i, codes) for i in range(32)]
        for name, _ in pieces:
            streams.open(name)
        ms = median_ms(lambda streams=streams, pieces=pieces: streams.decode(pieces), 10)
        out[f"codec_xrt_32_{precision}"] = 32 * 8 * FRAME_SECONDS / ms * 1e3
        one = pieces[:1]
        first = [(0, codes[:, :1])]
        out[f"chunk8_ms_{precision}"] = median_ms(lambda streams=streams, one=one: streams.decode(one), 10)
        out[f"chunk1_ms_{precision}"] = median_ms(lambda streams=streams, first=first: streams.decode(first), 10)
    clip = torch.randn(1, 1, 441_000, device=DEVICE) * 0.1
    out["encode_10s_ms"] = median_ms(lambda: codec.encode(clip), 10)
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

    faulthandler.dump_traceback_later(240)
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
        keep("alike", check_alike(model))
        with DEVICE:
            codec = Codec(CodecConfig()).eval().requires_grad_(False)
        keep("codec", time_codec(codec))
        takes: tuple[tuple[int, Precision], ...] = ((1, "float32"), (64, "float32"), (64, "tf32"), (64, "bfloat16"))
        for count, precision in takes:
            keep(f"stream_{count}_{precision}", time_streams(model, codec, count, 250, precision))
        keep("logits", check_logits(model))
        keep("frames_fp8", {"frame_ms_b1_fp8": time_frames(random_model(), (1,), 600, float8=True)["frame_ms_b1"]})
    print(json.dumps({key: value for key, value in report.items() if key not in ("products", "kernels")}))


if __name__ == "__main__":
    main()

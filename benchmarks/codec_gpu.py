"""The fused codec decoder on one GPU: error against plain torch, times as CUDA graphs, tiles, and time by layer.

python benchmarks/codec_gpu.py [--out FILE]
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("TRITON_CACHE_DIR", "/tmp/codec_gpu_triton")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from engine.codec import Codec, CodecConfig, Precision, fused, load_codec  # noqa: E402
from engine.codec.fused import FusedDecoder  # noqa: E402
from engine.codec.products import in_halves, laid_out  # noqa: E402
from engine.kernels.conv import Snake, conv  # noqa: E402
from engine.kernels.past import Past  # noqa: E402
from engine.kernels.tiles import Tiles  # noqa: E402

DEVICE = torch.device("cuda")
FRAME_SECONDS = 2048 / 44100
PRECISIONS: tuple[Precision, ...] = ("tf32", "float32", "bfloat16")
SIZES = ((32, 8), (64, 8), (32, 4), (8, 1), (1, 8), (1, 1))
LAYERS: dict[str, tuple[int, int, int, int]] = {  # steps in all, inputs, outputs, taps
    "in": (1024, 1024, 1536, 7), "up1": (1024, 1536, 6144, 2), "seven1": (8192, 768, 768, 7),
    "one1": (8192, 768, 768, 1), "up2": (8192, 768, 3072, 2), "seven2": (65536, 384, 384, 7),
    "one2": (65536, 384, 384, 1), "up3": (65536, 384, 768, 2), "seven3": (262144, 192, 192, 7),
    "one3": (262144, 192, 192, 1), "up4": (262144, 192, 192, 2), "seven4": (524288, 96, 96, 7),
    "one4": (524288, 96, 96, 1), "last": (524288, 96, 1, 7),
}  # fmt: skip
SMALL: dict[str, tuple[int, int, int, int]] = {
    "qkv": (1, 1024, 3072, 1), "wo": (1, 1024, 1024, 1), "down": (1, 3072, 1024, 1), "in": (4, 1024, 1536, 7),
    "up1": (4, 1536, 6144, 2), "seven1": (32, 768, 768, 7), "up2": (32, 768, 3072, 2), "seven2": (256, 384, 384, 7),
    "seven3": (1024, 192, 192, 7), "seven4": (2048, 96, 96, 7), "qkv256": (256, 1024, 3072, 1),
    "down256": (256, 3072, 1024, 1),
}  # fmt: skip
MID: dict[str, tuple[int, int, int, int]] = {
    "in": (32, 1024, 1536, 7), "up1": (32, 1536, 6144, 2), "seven1": (256, 768, 768, 7), "up2": (256, 768, 3072, 2),
    "seven2": (2048, 384, 384, 7), "one2": (2048, 384, 384, 1), "up3": (2048, 384, 768, 2),
    "seven3": (8192, 192, 192, 7), "seven4": (16384, 96, 96, 7), "one4": (16384, 96, 96, 1),
}  # fmt: skip
TABLES = {"big": LAYERS, "small": SMALL, "mid": MID}
BIG_TILES = (
    (128, 128, 8, 3), (128, 128, 4, 3), (128, 128, 8, 4), (128, 64, 4, 3), (128, 64, 4, 4), (128, 64, 8, 3),
    (256, 64, 8, 3), (256, 64, 8, 4), (64, 128, 4, 3), (64, 128, 4, 4), (64, 64, 4, 4), (64, 64, 4, 3), (128, 32, 4, 3),
    (128, 32, 4, 4), (256, 128, 8, 3), (128, 256, 8, 3), (256, 32, 8, 3), (64, 256, 4, 3), (192, 64, 4, 3),
    (256, 16, 8, 3), (128, 16, 4, 4),
)  # fmt: skip
SMALL_TILES = (
    (16, 16, 128, 4, 4), (16, 32, 64, 4, 4), (16, 16, 256, 4, 3), (32, 32, 64, 4, 4), (32, 16, 128, 4, 4),
    (16, 32, 128, 4, 4), (32, 64, 32, 4, 4), (64, 32, 64, 4, 3), (64, 64, 32, 4, 4), (64, 16, 64, 4, 4),
    (16, 32, 128, 8, 3), (32, 32, 128, 8, 3), (16, 16, 128, 2, 5), (16, 16, 64, 2, 6), (32, 32, 32, 2, 6),
    (32, 32, 64, 2, 5), (16, 64, 64, 4, 4), (64, 32, 32, 4, 6), (32, 64, 64, 4, 4), (64, 128, 32, 4, 4),
)  # fmt: skip
SWEEPS: tuple[tuple[str, Precision], ...] = (
    ("big", "bfloat16"), ("mid", "bfloat16"), ("small", "bfloat16"), ("big", "float32"), ("mid", "float32"),
    ("small", "float32"), ("big", "tf32"),
)  # fmt: skip


def tiles_of(precision: Precision, table: str) -> list[Tiles]:
    depth = 64 if precision == "bfloat16" else 32
    big = [Tiles(m, n, depth, warps, stages) for m, n, warps, stages in BIG_TILES if m != 192]
    small = [Tiles(*each) for each in SMALL_TILES]
    return {"big": big, "small": small, "mid": big[3:14] + small}[table]


def median_ms(run: Any, repeat: int = 20, warm: int = 3) -> float:
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


def graphed(run: Any) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def random_codec() -> Codec:
    torch.manual_seed(0)
    with DEVICE:
        codec = Codec(CodecConfig()).eval().requires_grad_(False)
    for name, parameter in codec.named_parameters():
        if name.endswith("gamma"):
            parameter.data.uniform_(0.05, 0.3)
        elif name.endswith("alpha"):
            parameter.data.uniform_(0.5, 1.5)
    z = codec.quantizer.decode(codes_of(codec, 1, 8))
    layers: Any = codec.decoder.model
    for layer in layers[:-1]:
        z = layer(z)
    layers[-2].conv.weight.data.mul_(0.15 / z.std())  # as loud as speech
    return codec


def codes_of(codec: Codec, rows: int, frames: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    size, books = codec.config.residual_codebook_size, codec.config.num_codebooks
    return torch.randint(0, size, (rows, books, frames), generator=generator).to(DEVICE)


def error(codec: Codec, precision: Precision) -> dict[str, float]:
    """Four streams in uneven chunks, rows permuted, against the whole decoded by plain torch in float32."""
    codes = codes_of(codec, 4, 25)
    plain = codec.decode(codes)[:, 0]
    decoder = FusedDecoder(codec, 5, precision)
    orders, at, parts = ([0, 4, 2, 1], [4, 1, 0, 2]), 0, []
    for i, frames in enumerate((8, 1, 2, 4, 8, 1, 1)):
        turn = [0, 1, 2, 3] if i % 2 == 0 else [3, 0, 1, 2]
        slots = torch.tensor([orders[0][j] for j in turn], device=DEVICE)
        pcm = decoder(codes[turn, :, at : at + frames].contiguous(), slots)
        back = torch.empty_like(pcm)
        back[turn] = pcm
        parts.append(back)
        at += frames
    got = torch.cat(parts, 1)
    noise = (got.double() - plain.double()).square().mean()
    return {
        "max_abs": float((got - plain).abs().max()),
        "snr_db": float(10 * torch.log10(plain.double().square().mean() / noise)),
        "rms": float(plain.square().mean().sqrt()),
        "peak": float(plain.abs().max()),
    }


def decode_ms(decoder: FusedDecoder, codec: Codec, rows: int, frames: int) -> float:
    codes, slots = codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE)
    return median_ms(graphed(lambda: decoder(codes, slots)).replay)


def layer_run(shape: tuple[int, int, int, int], precision: Precision, tiles: Tiles) -> Any:
    """A launch of one layer with fresh random data."""
    total, inputs, outputs, taps = shape
    rows = 32 if total % 32 == 0 else 1
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    weight = torch.randn(outputs, taps, inputs, device=DEVICE) / (taps * inputs) ** 0.5
    weights = laid_out(weight, precision)
    x = torch.randn(rows, total // rows, inputs, device=DEVICE).to(kind)
    slots, turns = torch.arange(rows, device=DEVICE), torch.zeros(rows, dtype=torch.int64, device=DEVICE)
    past = None
    if taps > 1:
        past = Past(torch.randn(rows, 2, taps - 1, inputs, device=DEVICE).to(kind), slots, turns)
    bias, alpha = torch.randn(outputs, device=DEVICE), torch.ones(outputs, device=DEVICE)
    more: dict[str, Any] = {"snake": (Snake(alpha, alpha), kind)}
    if taps == 1:
        base = torch.randn(rows, total // rows, outputs, device=DEVICE)
        more |= {"residual": base, "out": torch.float32}
    return lambda: conv(x, weights, past, bias=bias, tiles=tiles, **more)


def sweep(table: str, precision: Precision, deadline: float) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, shape in TABLES[table].items():
        found = []
        for tiles in tiles_of(precision, table):
            if time.perf_counter() > deadline:
                break
            try:
                run = layer_run(shape, precision, tiles)
                ms = median_ms(graphed(run).replay, 7, 2)
            except Exception as failure:  # noqa: BLE001
                found.append((float("inf"), f"{tiles} {type(failure).__name__} {str(failure)[:60]}"))
                continue
            key = (tiles.steps, tiles.outputs, tiles.depth, tiles.warps, tiles.stages)
            found.append((ms, str(key)))
        found.sort()
        flop = 2 * shape[0] * shape[1] * shape[2] * shape[3]
        out[name] = [(round(ms * 1e3, 1), round(flop / ms / 1e9, 1), key) for ms, key in found[:6]]
        bytes_read = shape[1] * shape[2] * shape[3] * (2 if precision == "bfloat16" else 4)
        out[name].append(f"weights alone at 4.4 TB/s {bytes_read / 4.4e6:.1f} us; worst {found[-1]}")
    return out


def by_layer(decoder: FusedDecoder, codec: Codec, rows: int, frames: int) -> list[tuple[str, float]]:
    """Microseconds of every launch's group, in order, the queue kept full by a long sleep in front."""
    marks: list[tuple[str, torch.cuda.Event]] = []

    def mark(name: str) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        marks.append((name, event))

    others = ("look_up", "window_attention", "depthwise_norm", "advance")
    plain = {name: getattr(fused.kernels, name) for name in others}
    plain_conv = fused.conv

    def wrapped(name: str, function: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            result = function(*arguments, **more)
            label = name
            if name == "conv":
                x, weights = arguments[:2]
                label = f"conv {x.shape[0]}x{x.shape[1]} {tuple(weights.high.shape)}"
            mark(label)
            return result

        return call

    codes, slots = codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE)
    decoder(codes, slots)
    try:
        for name, function in plain.items():
            setattr(fused.kernels, name, wrapped(name, function))
        fused.conv = wrapped("conv", plain_conv)
        torch.cuda._sleep(100_000_000)
        mark("start")
        decoder(codes, slots)
        torch.cuda.synchronize()
    finally:
        for name, function in plain.items():
            setattr(fused.kernels, name, function)
        fused.conv = plain_conv
    return [(b[0], round(a[1].elapsed_time(b[1]) * 1e3, 1)) for a, b in itertools.pairwise(marks)]


def plain_error(codec: Codec) -> float:
    """What two devices differ by in plain torch: the largest difference."""
    codes = codes_of(codec, 2, 12)
    other = copy.deepcopy(codec).cpu()
    return float((codec.decode(codes).cpu() - other.decode(codes.cpu())).abs().max())


@contextmanager
def halves_in_bfloat16() -> Iterator[None]:
    plain = fused.laid_out
    fused.laid_out = lambda weight, precision: in_halves(weight.float().contiguous(), torch.bfloat16)
    try:
        yield
    finally:
        fused.laid_out = plain


@contextmanager
def unchained() -> Iterator[None]:
    """Without programmatic dependent launch, to see what it is worth."""
    names = ("codebooks", "conv", "depthwise", "window_attention")
    modules: list[Any] = [sys.modules[f"engine.kernels.{name}"] for name in names]
    plain = modules[0].can_chain
    try:
        for module in modules:
            module.can_chain = lambda device: False
        yield
    finally:
        for module in modules:
            module.can_chain = plain


def compile_task(task: tuple[Any, ...]) -> str:
    """In a process of its own: launch once what will be timed, so that its kernels lie in Triton's cache."""
    kind, precision, what = task
    began = time.perf_counter()
    try:
        with torch.inference_mode():
            if kind == "decode":
                codec = load_codec(ROOT / "assets/fry", DEVICE) if what == "fry" else random_codec()
                decoder = FusedDecoder(codec, 65, precision)
                for rows, frames in [(4, 8), (4, 4), (4, 2), (4, 1)] if what == "fry" else what:
                    decoder(codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE))
            elif kind == "unchained":
                codec = random_codec()
                decoder = FusedDecoder(codec, 65, precision)
                with unchained():
                    for rows, frames in what:
                        decoder(codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE))
            else:
                table, part = what
                for tiles in tiles_of(precision, table)[part::2]:
                    for taps in (7, 1):
                        try:
                            layer_run((64, 768, 768, taps), precision, tiles)()
                        except Exception as failure:  # noqa: BLE001
                            print(f"{precision} {tiles} {str(failure)[:80]}", flush=True)
            torch.cuda.synchronize()
    except Exception as failure:  # noqa: BLE001
        return f"{task}: {type(failure).__name__} {str(failure)[:300]}"
    return f"{task}: {time.perf_counter() - began:.1f} s"


def tasks() -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = []
    for precision in PRECISIONS:
        out.append(("decode", precision, ((1, 1), (1, 8), (8, 1), (4, 8), (4, 4), (4, 2), (4, 1))))
        out.append(("decode", precision, ((32, 8), (64, 8), (32, 4))))
        out.append(("decode", precision, "fry"))
    out.append(("unchained", "tf32", ((1, 1), (32, 8))))
    out += [("sweep", precision, (table, part)) for table, precision in SWEEPS for part in range(2)]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    report: dict[str, Any] = {}
    began = time.perf_counter()

    def keep(name: str, value: Any) -> None:
        report[name] = value
        print(f"[{time.perf_counter() - began:6.1f} s] {name}: {json.dumps(value)}", flush=True)
        if arguments.out:
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(report, indent=1))

    def guarded(name: str, run: Any) -> None:
        if time.perf_counter() - began > 112:
            return
        try:
            keep(name, run())
        except Exception as failure:  # noqa: BLE001
            keep(name, f"{type(failure).__name__}: {str(failure)[:500]}")

    faulthandler.dump_traceback_later(118, exit=True)
    keep("device", [torch.cuda.get_device_name(), torch.__version__])
    if not os.environ.get("CODEC_GPU_SERIAL"):
        pool = multiprocessing.get_context("spawn").Pool(min(15, os.cpu_count() or 1))
        done = []
        waiting = pool.imap_unordered(compile_task, tasks())
        try:
            for _ in tasks():
                done.append(waiting.next(timeout=max(1, 65 - (time.perf_counter() - began))))
                print(done[-1], flush=True)
        except multiprocessing.TimeoutError:
            done.append("not all compiled in time")
        pool.terminate()
        keep("compiled", len(done))
    with torch.inference_mode():
        codec, fry = random_codec(), load_codec(ROOT / "assets/fry", DEVICE)
        for precision in PRECISIONS:
            guarded(f"error full {precision}", lambda: error(codec, precision))  # noqa: B023
            guarded(f"error fry {precision}", lambda: error(fry, precision))  # noqa: B023
            times: dict[str, Any] = {}

            def measure() -> dict[str, Any]:
                decoder = FusedDecoder(codec, 65, precision)  # noqa: B023
                for rows, frames in SIZES:
                    ms = decode_ms(decoder, codec, rows, frames)
                    times[f"{rows}x{frames}"] = (round(ms, 3), round(rows * frames * FRAME_SECONDS / ms * 1e3, 1))  # noqa: B023
                return times  # noqa: B023

            guarded(f"ms and xRT {precision}", measure)
            if precision == "tf32":
                with unchained():
                    unchained_sizes = ((1, 1), (32, 8))
                    decoder = FusedDecoder(codec, 65, precision)
                    guarded("ms unchained", lambda: [decode_ms(decoder, codec, *size) for size in unchained_sizes])  # noqa: B023
            if precision in ("tf32", "float32"):
                decoder = FusedDecoder(codec, 65, precision)
                guarded(f"by layer 32x8 {precision}", lambda: by_layer(decoder, codec, 32, 8))  # noqa: B023
                guarded(f"by layer 1x1 {precision}", lambda: by_layer(decoder, codec, 1, 1))  # noqa: B023
        with halves_in_bfloat16():
            guarded("error full halves in bfloat16", lambda: error(codec, "float32"))
            guarded("error fry halves in bfloat16", lambda: error(fry, "float32"))
        guarded("plain on a CPU beside plain", lambda: plain_error(codec))
        for table, precision in SWEEPS:
            guarded(f"tiles {table} {precision}", lambda: sweep(table, precision, began + 112))  # noqa: B023


if __name__ == "__main__":
    main()

"""The codec's fused decoder on one GPU: its error against plain torch, its times by batch, and `conv`'s tiles by layer.

python -m benchmarks.codec_gpu SMALL_CHECKPOINT [--tiles] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import torch
import triton
from torch import Tensor

from benchmarks.gpu import DEVICE, graphed_ms
from engine.codec import Codec, CodecConfig, Precision, QwenCodecConfig, codec_of, load_codec
from engine.fused.codec_decoder import FusedDecoder
from engine.fused.codec_layer import ACTIVATION_DTYPES
from engine.fused.codec_products import conv_weights
from engine.kernels.compilation import compiling
from engine.kernels.conv import SnakeGains, conv
from engine.kernels.conv_state import ConvState
from engine.kernels.conv_tiles import ConvTiles, pick_tiles
from engine.kernels.launch import shared_memory

SIZES = ((64, 8), (32, 8), (32, 4), (8, 1), (1, 8), (1, 1))
"""Rows and frames."""
CODECS = {"S2 Pro": CodecConfig(), "Qwen": QwenCodecConfig()}
LAYERS = {
    # steps per frame, inputs, outputs, taps
    "qkv": (1, 1024, 3072, 1), "down": (1, 3072, 1024, 1), "in": (4, 1024, 1536, 7), "up1": (4, 1536, 6144, 2),
    "seven1": (32, 768, 768, 7), "one1": (32, 768, 768, 1), "up2": (32, 768, 3072, 2), "seven2": (256, 384, 384, 7),
    "one2": (256, 384, 384, 1), "up3": (256, 384, 768, 2), "seven3": (1024, 192, 192, 7), "one3": (1024, 192, 192, 1),
    "up4": (1024, 192, 192, 2), "seven4": (2048, 96, 96, 7), "one4": (2048, 96, 96, 1),
}  # fmt: skip
LARGE = [
    ConvTiles(*sizes, depth, *how)
    for sizes, depth, how in product(
        ((256, 128), (128, 128), (128, 64), (64, 128), (64, 64), (128, 16)), (32, 64), ((8, 3), (4, 3), (8, 4), (4, 4))
    )
]
SMALL = [
    ConvTiles(16, 16, 128, 4, 4), ConvTiles(16, 16, 256, 4, 3), ConvTiles(16, 32, 64, 4, 4),
    ConvTiles(16, 32, 128, 4, 4),
    ConvTiles(16, 64, 64, 4, 4), ConvTiles(32, 32, 64, 2, 5), ConvTiles(64, 16, 64, 4, 4), ConvTiles(64, 32, 32, 4, 6),
    ConvTiles(64, 32, 64, 4, 3), ConvTiles(64, 64, 32, 4, 3),
]  # fmt: skip


def random_codec(config: CodecConfig) -> Codec:
    """Every part matters, and the audio is about as loud as speech."""
    torch.manual_seed(0)
    with DEVICE:
        codec = codec_of(config).eval().requires_grad_(False)
    for name, parameter in codec.named_parameters():
        if name.endswith("gamma"):
            parameter.data.uniform_(0.05, 0.3)
        elif name.endswith(("alpha", "beta")):
            parameter.data.uniform_(0.5, 1.5)
    z = codec.quantizer.decode(codes_of(codec, 1, 8))
    layers: Any = codec.decoder.model
    for layer in layers[:-1]:
        z = layer(z)
    layers[-2].conv.weight.data.mul_(0.15 / z.std())
    return codec


def codes_of(codec: Codec, rows: int, frames: int) -> Tensor:
    shape = rows, codec.config.num_codebooks, frames
    codes = torch.randint(0, codec.config.residual_codebook_size, shape, generator=torch.Generator().manual_seed(0))
    return codes.to(DEVICE)


def error(codec: Codec, precision: Precision) -> dict[str, float]:
    """Four streams in uneven chunks, rows changing places, against plain torch in float32 on the whole."""
    codes = codes_of(codec, 4, 25)
    plain = codec.decode(codes)[:, 0]
    decoder = FusedDecoder(codec, 5, precision)
    at, parts = 0, []
    for i, frames in enumerate((8, 1, 2, 4, 8, 1, 1)):
        order = torch.arange(4, device=DEVICE).roll(i)
        pcm = decoder(codes[order, :, at : at + frames].contiguous(), order + 1)
        parts.append(pcm[order.argsort()])
        at += frames
    wrong = torch.cat(parts, 1).double() - plain
    return {
        "max_abs": float(wrong.abs().max()),
        "snr_db": float(10 * torch.log10(plain.double().square().mean() / wrong.square().mean())),
        "peak": float(plain.abs().max()),
    }


def times(codec: Codec, precision: Precision) -> dict[str, Any]:
    """Milliseconds and times real time of each batch as a graph, and the seconds to compile its kernels."""
    decoder = FusedDecoder(codec, max(rows for rows, _ in SIZES), precision)
    started = time.perf_counter()
    with compiling():
        for rows, frames in SIZES:
            decoder(codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE))
    out: dict[str, Any] = {"compile_s": time.perf_counter() - started}
    for rows, frames in SIZES:
        codes, slots = codes_of(codec, rows, frames), torch.arange(rows, device=DEVICE)
        ms = graphed_ms(lambda codes=codes, slots=slots: decoder(codes, slots))
        seconds = frames * codec.config.frame_samples / codec.config.sample_rate
        out[f"{rows}x{frames}"] = ms, rows * seconds / ms * 1e3
    return out


def layer(name: str, frames: int, precision: Precision) -> Callable[[ConvTiles], Any]:
    """One layer of the codec on fresh random data, as a function of its tiles."""
    steps, inputs, outputs, taps = LAYERS[name]
    rows = max(1, frames // 8)
    kind = ACTIVATION_DTYPES[precision]
    weights = conv_weights(torch.randn(outputs, taps, inputs, device=DEVICE) / (taps * inputs) ** 0.5, precision)
    x = torch.randn(rows, frames // rows * steps, inputs, device=DEVICE).to(kind)
    bias, one = torch.randn(outputs, device=DEVICE), torch.ones(outputs, device=DEVICE)
    more: dict[str, Any] = {"snake": (SnakeGains(one, one), kind)}
    if taps == 1:
        more |= {"residual": torch.randn(*x.shape[:2], outputs, device=DEVICE), "out": torch.float32}
    else:
        slots, turns = torch.arange(rows, device=DEVICE), torch.zeros(rows, dtype=torch.int64, device=DEVICE)
        more["state"] = ConvState(torch.randn(rows, 2, taps - 1, inputs, device=DEVICE).to(kind), slots, turns)
    return lambda tiles: conv(x, weights, bias, tiles=tiles, **more)


def tune(precision: Precision, frames: int) -> dict[str, Any]:
    """By layer: the best tiles with microseconds and TFLOP/s, and the chosen ones."""
    out = {}
    for name, (steps, inputs, outputs, taps) in LAYERS.items():
        run, total = layer(name, frames, precision), frames * steps
        nbytes = (4, 4) if precision == "float32" else (2, 2)
        limit = shared_memory(torch.device("cuda", torch.cuda.current_device()))
        picked = pick_tiles(total, outputs, taps, inputs, nbytes, precision == "float32", limit)
        timings = []
        variants = {picked, *SMALL} | (set(LARGE) if total >= 1024 else set())
        for tiles in variants:
            try:
                timings.append((graphed_ms(lambda run=run, tiles=tiles: run(tiles)), tiles))
            except (RuntimeError, triton.TritonError) as failure:  # tiles that do not fit are a result, too
                print(f"{name} {tiles}: {str(failure)[:80]}")
        timings.sort(key=lambda item: item[0])
        flop = 2 * total * inputs * outputs * taps
        rows = [(f"{ms * 1e3:.1f} us", f"{flop / ms / 1e9:.0f} TFLOP/s", str(tiles)) for ms, tiles in timings]
        out[name] = rows[:3] + [row for row in rows if row[2] == str(picked)]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("small", type=Path)
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    report: dict[str, Any] = {"device": torch.cuda.get_device_name()}
    precisions: tuple[Precision, ...] = get_args(Precision)
    with torch.inference_mode():
        codecs = {"small": load_codec(arguments.small, DEVICE)}
        codecs |= {name: random_codec(config) for name, config in CODECS.items()}
        for precision in precisions:
            for name, codec in codecs.items():
                report[f"error {name} {precision}"] = error(codec, precision)
            for name in CODECS:
                report[f"ms and times real time {name} {precision}"] = times(codecs[name], precision)
            for frames in (1, 8, 256) if arguments.tiles else ():
                report[f"tiles {frames} {precision}"] = tune(precision, frames)
    for name, value in report.items():
        print(f"{name}: {json.dumps(value)}")
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

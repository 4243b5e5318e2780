"""Compiles, without a GPU, kernels that a Hopper GPU would want: python -m tests.engine.kernels.compiling

A process of its own, for Triton is interpreted in the tests' process. Ends with an error where a kernel does not
compile; prints how many were compiled.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from engine.codec.config import Precision
from engine.codec.fused.decoder import FusedDecoder
from engine.codec.fused.encoder import FusedEncoder
from engine.config import ModelConfig, TransformerSizes, Weights
from engine.fused.frame import FusedFrame, FusedPrefill
from engine.kernels.codec.conv import ConvWeights
from engine.kernels.codec.conv_tiles import ConvTiles, UnitTiles, pick_tiles, pick_unit_tiles
from engine.kernels.launch import compiling
from engine.kernels.linear import CUBLAS_ROWS
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.slots import Slots
from tests.engine.codec.small_codec import random_codec, transformer

COMPANY: dict[Precision, tuple[int, ...]] = {"float32": (1,), "tf32": (8,), "bfloat16": (1,)}
"""Rows, and frames of each, that decoders are compiled for: one has the tiles of a few steps, eight those of many. No
branch of a kernel depends on its tiles, so each precision has either; float32 has those of many in the encoder too."""
SHARED = 232448
"""Bytes of shared memory that a program may have on an H200."""


class Hopper:
    """As much of Triton's driver as compiling asks for."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


def tiles_of_a_gpu(x: Tensor, weights: ConvWeights, total: int | None) -> ConvTiles:
    (rows, steps, inputs), (outputs, taps, _) = x.shape, weights.high.shape
    nbytes = x.itemsize, weights.high.itemsize + (0 if weights.low is None else weights.low.itemsize)
    return pick_tiles(total or rows * steps, outputs, taps, inputs, nbytes, weights.low is not None, SHARED)


def unit_tiles_of_a_gpu(x: Tensor) -> UnitTiles | None:
    """Those of very many steps: the tests' own are too few."""
    return pick_unit_tiles(10**6, x.shape[2], SHARED)


def compile_frames() -> None:
    """Those of a frame and a prefill, started early, as they are on a GPU that can do that."""
    attention = "rope", "decode_attention", "prefill_attention"
    for name in ("gemv", "packed12", "gemm", "rms_norm", *attention, "swiglu", "sample", "end_frame"):
        module: Any = sys.modules[f"engine.kernels.{name}"]
        module.supports_pdl, module.pdl_launch = lambda device: True, lambda device: {"launch_pdl": True}
    sizes = TransformerSizes(400, 1, 128, 8, 2, 16, 256, True, 1e6, 1e-6)
    fast = replace(sizes, vocab_size=64, qk_norm=False)
    config = ModelConfig(sizes, fast, 4, 64, 256, True, eos_token=299, semantic_start=300, semantic_end=363)
    for weights in get_args(Weights):
        model = DualAR(config).bfloat16().eval().requires_grad_(False)
        device, dtype = torch.device("cpu"), torch.bfloat16
        cache, slots = KVCache(sizes, 2, 256, device, dtype, spare=True), Slots(config, 2, 256, device, dtype)
        frame = FusedFrame(model, cache, slots, 2, 256, True, weights=weights, packed12=True)
        read = FusedPrefill(model, frame.slow, cache)
        few, many = torch.zeros(8, dtype=torch.int64), torch.zeros(CUBLAS_ROWS + 1, dtype=torch.int64)
        with compiling():
            frame(torch.arange(1))
            frame(torch.arange(2))
            for lines in (few, many):
                read(lines, lines.repeat(4, 1), lines, lines)


def main() -> None:
    driver.set_active(Hopper())
    module: Any = sys.modules["engine.kernels.codec.conv"]
    module._tiles = tiles_of_a_gpu
    module = sys.modules["engine.codec.fused.layer"]
    module.unit_tiles = unit_tiles_of_a_gpu
    compile_frames()
    assert set(COMPANY) == set(get_args(Precision))
    for precision, sizes in COMPANY.items():
        decoder = FusedDecoder(random_codec(transformer(), decoder_dim=96), 8, precision)  # 48 and 24 channels
        with torch.inference_mode(), compiling():
            for size in sizes:
                decoder(torch.zeros(size, decoder.num_codebooks, size).long(), torch.arange(size))
    FusedEncoder(random_codec(transformer()), 2).prepare()
    print(sum(1 for path in Path(knobs.cache.dir).rglob("*.cubin")))


if __name__ == "__main__":
    main()

"""Compiles, without a GPU, kernels that a Hopper GPU would want: python -m tests.engine.compiling

A process of its own, for Triton is interpreted in the tests' process. Ends with an error where a kernel does not
compile; prints how many were compiled.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from engine.codec.fused import FusedDecoder
from engine.kernels.conv import Weights
from engine.kernels.tiles import Tiles, pick
from tests.engine.small_codec import random_codec, transformer

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


def tiles_of_a_gpu(x: Tensor, weights: Weights, total: int | None) -> Tiles:
    (rows, steps, inputs), (outputs, taps, _) = x.shape, weights.high.shape
    nbytes = x.itemsize, weights.high.itemsize + (0 if weights.low is None else weights.low.itemsize)
    return pick(total or rows * steps, outputs, taps, inputs, nbytes, weights.low is not None, SHARED)


def main() -> None:
    driver.set_active(Hopper())  # type: ignore[no-untyped-call]
    module: Any = sys.modules["engine.kernels.conv"]
    module._tiles = tiles_of_a_gpu
    for precision in ("float32", "tf32", "bfloat16"):
        decoder = FusedDecoder(random_codec(transformer()), 8, precision)  # type: ignore[arg-type]
        decoder.prepare([(1, 1), (8, 8)])
    print(sum(1 for path in Path(knobs.cache.dir).rglob("*.cubin")))


if __name__ == "__main__":
    main()

"""Compiles every kernel for a GPU, without one: python -m tests.engine.kernels.compiling HOW CAPABILITY

CAPABILITY is that of CUDA, 90 for Hopper. HOW: "here", which prints the number of kernels, or "elsewhere": a few, by
processes as at an engine's first start. In a process of its own, because Triton is interpreted in the tests' process.
Ends with an error where a kernel does not compile, needs more shared memory than there is, or where another process
would compile something else from its description.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, get_args

import torch
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from engine.codec.codec_config import Precision
from engine.codec.fused.decoder import FusedDecoder
from engine.codec.fused.encoder import FusedEncoder
from engine.config import ModelConfig, TransformerSizes, Weights
from engine.fused.frame import FusedFrame, FusedPrefill
from engine.kernels.codec.conv import ConvWeights
from engine.kernels.codec.conv_tiles import ConvTiles, UnitTiles, pick_tiles, pick_unit_tiles
from engine.kernels.compilation.compiling import compiling
from engine.kernels.compilation.process import CompilingDriver
from engine.kernels.compilation.processes import CompilerProcesses, Specialisation, kept_kernels
from engine.kernels.linear import CUBLAS_ROWS
from engine.kernels.packed12 import PACKED12_ROWS
from engine.kernels.rms_norm import rms_norm
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.slots import Slots
from tests.engine.codec.small_codec import random_codec, transformer

COMPANY: dict[Precision, tuple[int, ...]] = {"float32": (1,), "tf32": (8,), "bfloat16": (1,)}
"""Rows, and frames of each, that decoders are compiled for: one has the tiles of a few steps, eight those of many. No
branch of a kernel depends on its tiles, so each precision has either; float32 has those of many in the encoder too."""
SHARED = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 120: 101376}
"""Bytes of shared memory that a program may have, by capability."""


def tiles_of_a_gpu(shared: int, x: Tensor, weights: ConvWeights, total: int | None) -> ConvTiles:
    (rows, steps, inputs), (outputs, taps, _) = x.shape, weights.high.shape
    nbytes = x.itemsize, weights.high.itemsize + (0 if weights.low is None else weights.low.itemsize)
    return pick_tiles(total or rows * steps, outputs, taps, inputs, nbytes, weights.low is not None, shared)


def unit_tiles_of_a_gpu(shared: int, x: Tensor) -> UnitTiles | None:
    """Those of very many steps: the tests' own are too few."""
    return pick_unit_tiles(10**6, x.shape[2], shared)


def be_on(capability: int) -> None:
    """Have kernels started early and tiles picked as they are on such a GPU."""
    is_hopper = capability >= 90
    pdl = {"launch_pdl": True} if is_hopper else {}
    products = "gemv", "gemm", "packed12.packed_gemv", "packed12.packed_gemm", "swiglu"
    attention = (f"attention.{name}" for name in ("rope", "decode_attention", "prefill_attention", "short_attention"))
    for name in (*products, *attention, "rms_norm", "sample", "frame_ends"):
        module: Any = sys.modules[f"engine.kernels.{name}"]
        module.supports_pdl, module.pdl_launch = lambda device: is_hopper, lambda device: pdl
    sys.modules["engine.kernels.gemv"].converts_by_ptx = lambda device: True  # type: ignore[attr-defined]
    module = sys.modules["engine.kernels.gemm"]
    module.converts_by_ptx = lambda device: True
    module.has_tma, module.shared_memory = lambda device: is_hopper, lambda device: SHARED[capability]
    module = sys.modules["engine.kernels.codec.sound_conv"]
    module._samples = lambda x: 32
    module = sys.modules["engine.kernels.codec.conv"]
    module._tiles = functools.partial(tiles_of_a_gpu, SHARED[capability])
    module = sys.modules["engine.codec.fused.layer"]
    module.unit_tiles = functools.partial(unit_tiles_of_a_gpu, SHARED[capability])


def compile_frames(processes: CompilerProcesses) -> None:
    """Those of a frame and a prefill."""
    sizes = TransformerSizes(400, 1, 128, 8, 2, 16, 256, True, 1e6, 1e-6)
    fast = replace(sizes, vocab_size=64, qk_norm=False)
    config = ModelConfig(sizes, fast, 4, 64, 256, True, eos_token=299, semantic_start=300, semantic_end=363)
    for weights in get_args(Weights):
        model = DualAR(config).bfloat16().quantised_as(weights)
        device, dtype = torch.device("cpu"), torch.bfloat16
        cache, slots = KVCache(sizes, 2, 256, device, dtype, spare=True), Slots(config, 2, 256, device, dtype)
        frame = FusedFrame(model, cache, slots, 2, 256, True, twelve_bits="tiles")
        read = FusedPrefill(model, frame.slow, cache)
        with compiling(processes):
            frame(torch.arange(1))
            frame(torch.arange(2))
            for size in (PACKED12_ROWS, 16, CUBLAS_ROWS, CUBLAS_ROWS + 1):
                lines = torch.zeros(size, dtype=torch.int64)
                read(torch.zeros(size, sizes.dim, dtype=dtype), lines, lines.repeat(4, 1), lines, lines)


def compile_codecs(processes: CompilerProcesses) -> None:
    assert set(COMPANY) == set(get_args(Precision))
    for precision, sizes in COMPANY.items():
        decoder = FusedDecoder(random_codec(transformer(), decoder_dim=96), 8, precision)  # 48 and 24 channels
        with torch.inference_mode(), compiling(processes):
            for size in sizes:
                decoder(torch.zeros(size, decoder.num_codebooks, size).long(), torch.arange(size))
    encoder = FusedEncoder(random_codec(transformer()), 2)
    with compiling(processes):
        encoder(torch.zeros(1, 1, 2048))


class Requests(CompilerProcesses):
    """What compiler processes would be asked for; this process compiles it."""

    def __init__(self) -> None:
        self.all: list[Specialisation] = []

    def __len__(self) -> int:
        return 2

    def compile(self, specialisation: Specialisation) -> None:
        self.all.append(specialisation)


def compile_here(capability: int) -> int:
    """Every kernel, and each once more as a compiler process would; how many."""
    requests = Requests()
    with watched(capability):
        compile_frames(requests)
        compile_codecs(requests)
    with watched(capability) as compiled:
        for kernel in requests.all:
            getattr(importlib.import_module(kernel.module), kernel.function).preload(kernel.data)
    assert not compiled, f"other processes would have compiled something else: {compiled}"
    return len(requests.all)


def compile_elsewhere(capability: int, target: dict[str, object]) -> None:
    """By another process, which this one finds; by this one if that has died. The complete cache is marked."""
    with watched(capability) as compiled:
        with closing(CompilerProcesses(1, target)) as living, compiling(living):
            norm(100)
            norm(1000)
        assert not compiled, f"not found where another process had compiled them: {compiled}"
        with closing(CompilerProcesses(1, target)) as dead:
            dead._all[0].kill()
            with compiling(dead):
                norm(2000)
        assert compiled == ["_rms_norm"]
    for settings, are_complete in (("some", False), ("some", True), ("others", False)):
        with kept_kernels(settings) as kept:
            assert kept.are_complete == are_complete


def norm(size: int) -> None:
    rms_norm(torch.zeros(2, size), torch.zeros(size), 1e-6)


@contextmanager
def watched(capability: int) -> Iterator[list[str]]:
    """The kernels that this process compiles, by name."""
    compiled, too_large = [], []

    def note(*, src: Any, metadata: Any, cache_hit: bool, **about: Any) -> None:
        if not cache_hit:
            compiled.append(src.name)
        if metadata["shared"] > SHARED[capability]:
            too_large.append((src.name, metadata["shared"]))

    knobs.compilation.listener = note
    yield compiled
    assert not too_large, f"kernels want more shared memory than there is: {too_large}"


def main() -> None:
    how, capability = sys.argv[1], int(sys.argv[2])
    target = GPUTarget("cuda", capability, 32)
    driver.set_active(CompilingDriver(target))
    be_on(capability)
    if how == "elsewhere":
        compile_elsewhere(capability, vars(target))
    else:
        print(compile_here(capability))


if __name__ == "__main__":
    main()

"""Compile every kernel for a GPU, without a GPU: python -m tests.engine.kernels.compiling HOW CAPABILITY

CAPABILITY is CUDA's (90 for Hopper). HOW is "here", which prints the number of kernels, or "elsewhere": a few, by
processes as at an engine's first start. Runs in a process of its own, as Triton is interpreted in that of the tests.
Ends with an error if a kernel does not compile or needs more shared memory than available, or if another process
would compile something else from its description.

For 90 every combination of arguments is compiled that an engine uses. For the others each type and flag is, and each
combination of sizes, since these decide how much shared memory a kernel needs. Triton generates the same PTX for 80,
86 and 89, so 80 stands for all three; an error reports PTX that differs.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import compile as compile_kernel
from triton.runtime.driver import driver

from engine.codec.codec_config import Precision
from engine.codec.qwen_codec import ExactConfig
from engine.config import ModelConfig, TalkerConfig, TransformerSizes, Weights
from engine.fused.codec_decoder import FusedDecoder
from engine.fused.codec_encoder import FusedEncoder
from engine.fused.frame import FusedFrame, FusedPrefill
from engine.kernels.compilation import CompilerProcesses, CompilingDriver, Specialisation, cached_kernels, compiling
from engine.kernels.conv import ConvWeights
from engine.kernels.conv_tiles import ConvTiles, UnitTiles, pick_tiles, pick_unit_tiles
from engine.kernels.linear import CUBLAS_ROWS
from engine.kernels.packed_gemm import PACKED12_ROWS
from engine.kernels.rms_norm import rms_norm
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.slots import Slots
from tests.engine.codec.small_codec import random_codec, random_qwen_codec, transformer

COMPANY: dict[Precision, int] = {"float32": 8, "tf32": 8, "bfloat16": 1}
"""Rows, and frames of each, to compile decoders for: one uses the tiles for few steps, eight the tiles for many. No
branch of a kernel depends on its tiles, so each precision has either."""
EVERY = 90
"""The capability for which every combination is compiled."""
SHARED = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 120: 101376}
"""Bytes of shared memory available to a program, by capability."""
ALIKE = {80: (86, 89)}
"""Capabilities for which Triton generates the same PTX."""
CHECKED = "conv_kernel", "_split_k_gemm", "_gemv"
"""Kernels compiled for every capability in `ALIKE`, to verify that the PTX is the same."""
DEPTH, FUSED_CHANNELS = 16, 48
"""Depth of the codec's 16-bit tiles: unrolled products compile slowly, and equal depths result in fewer kernels.
Residual units with more channels are compiled as two launches."""


def tiles_of_a_gpu(shared: int, x: Tensor, weights: ConvWeights, total: int | None) -> ConvTiles:
    (rows, steps, inputs), (outputs, taps, _) = x.shape, weights.high.shape
    nbytes = x.itemsize, weights.high.itemsize + (0 if weights.low is None else weights.low.itemsize)
    # An encoder has many steps, but few here, so that it shares kernels with the decoder.
    tiles = pick_tiles(rows * steps, outputs, taps, inputs, nbytes, weights.low is not None, shared)
    return tiles if nbytes == (4, 4) else replace(tiles, depth=min(DEPTH, tiles.depth))


def unit_tiles_of_a_gpu(shared: int, x: Tensor) -> UnitTiles | None:
    """Tiles for very many steps: the tests use too few steps."""
    return pick_unit_tiles(10**6 if x.shape[2] <= FUSED_CHANNELS else 1, x.shape[2], shared)


def be_on(capability: int, shared: int) -> None:
    """Start kernels early and pick tiles as on a GPU with this capability and shared memory."""
    is_hopper = capability >= 90
    for name in ("launch", "frame_ends"):
        module: Any = sys.modules[f"engine.kernels.{name}"]
        module.is_hopper = lambda device: is_hopper
    sys.modules["engine.kernels.gemv"].converts_by_ptx = lambda device: True  # type: ignore[attr-defined]
    module = sys.modules["engine.kernels.gemm"]
    module.converts_by_ptx = lambda device: True
    module.has_tma, module.shared_memory = lambda device: is_hopper, lambda device: shared
    module = sys.modules["engine.kernels.sound_conv"]
    module._samples = lambda x: 32
    module = sys.modules["engine.kernels.conv"]
    module._tiles = functools.partial(tiles_of_a_gpu, shared)
    module = sys.modules["engine.fused.codec_layer"]
    module.unit_tiles = functools.partial(unit_tiles_of_a_gpu, shared)


class Requests(CompilerProcesses):
    """Records requests to compiler processes; this process compiles them."""

    def __init__(self, every: bool) -> None:
        self._every = every
        self._seen = set[tuple[object, ...]]()
        self.all: list[Specialisation] = []

    def __len__(self) -> int:
        return 2

    def compile(self, specialisation: Specialisation) -> None:
        self.all.append(specialisation)

    @contextmanager
    def compiled(self) -> Iterator[None]:
        """Launches in this context compile their kernels; unless every one is wanted, only those with something new."""
        with compiling(self):
            note = knobs.runtime.jit_cache_hook
            assert note

            def is_known(*, fn: Any, compile: dict[str, Any], **about: Any) -> bool:
                constants = compile["constants"].items()
                arguments = [*compile["signature"].items(), *compile["configs"][0].items(), *constants]
                sizes = [pair for pair in constants if type(pair[1]) is int]
                all_sizes = repr((compile["num_warps"], compile["num_stages"], sizes))
                values = {(fn.name, repr(argument)) for argument in arguments} | {(fn.name, all_sizes)}
                if not self._every and values <= self._seen:
                    return True
                self._seen |= values
                return bool(note(fn=fn, compile=compile, **about))

            knobs.runtime.jit_cache_hook = is_known
            yield


def compile_frames(requests: Requests) -> None:
    """Compile the kernels of a frame and a prefill."""
    sizes = TransformerSizes(400, 1, 128, 8, 2, 16, 256, True, 1e6, 1e-6)
    fast = replace(sizes, vocab_size=64, qk_norm=False)
    config = ModelConfig(sizes, fast, 4, 64, 256, True, eos_token=299, semantic_start=300, semantic_end=363)
    values: Any = (*range(11), {}, {}, {}, False, 0)
    talker, fast = TalkerConfig("base", *values), replace(fast, vocab_size=3 * 64)
    penalised = replace(config, codes_apart=True, talker=talker, fast=fast)
    kinds: list[Weights] = [*get_args(Weights)]
    for config, weights in [*((config, weights) for weights in kinds), (penalised, "bf16")]:
        model = DualAR(config).bfloat16().quantised_as(weights)
        device, dtype = torch.device("cpu"), torch.bfloat16
        cache, slots = KVCache(sizes, 2, 256, device, dtype, spare=True), Slots(config, 2, 256, device, dtype)
        frame = FusedFrame(model, cache, slots, True, twelve_bits="tiles")
        read = FusedPrefill(model, frame.slow, cache)
        with requests.compiled():
            frame(torch.arange(1))
            frame(torch.arange(2))
            for size in (PACKED12_ROWS, 16, CUBLAS_ROWS, CUBLAS_ROWS + 1):
                lines = torch.zeros(size, dtype=torch.int64)
                read(torch.zeros(size, sizes.dim, dtype=dtype), lines, lines.repeat(4, 1), lines, lines)


def compile_codecs(requests: Requests) -> None:
    """Compile the kernels of decoders and an encoder with channels in multiples of 16, as in every published codec."""
    assert set(COMPANY) == set(get_args(Precision))
    part = transformer(input_dim=48, dim=48, head_dim=16, intermediate_size=48)
    sizes: dict[str, Any] = {"latent_dim": 48, "downsample_dims": (48,), "pre_module": part}
    for precision, size in COMPANY.items():
        decoder = FusedDecoder(random_codec(part, decoder_dim=4 * FUSED_CHANNELS, **sizes), 7, precision)
        with torch.inference_mode(), requests.compiled():
            decoder(torch.zeros(size, decoder.num_codebooks, size).long(), torch.arange(size))
    post = ExactConfig(48, 48, n_layer=1, n_head=3, head_dim=16, intermediate_size=48, window=5)
    kept: dict[str, Any] = {"latent_dim": 48, "decoded_dim": 48, "decoder_dim": 4 * FUSED_CHANNELS}
    decoder = FusedDecoder(random_qwen_codec(48, post_module=post, **kept), 7, "tf32")
    with torch.inference_mode(), requests.compiled():
        decoder(torch.zeros(1, decoder.num_codebooks, 1).long(), torch.arange(1))
    encoder = FusedEncoder(random_codec(part, encoder_dim=16, **sizes), 2)
    with requests.compiled():
        encoder(torch.zeros(1, 1, 2048))


def compile_here(capability: int) -> int:
    """Compile every kernel, and each again as a compiler process would; return their number."""
    requests, alike, unchecked = Requests(capability == EVERY), ALIKE.get(capability, ()), set(CHECKED)
    # The smallest first: kernels that fit into it are not compiled again for larger ones.
    for shared in sorted({SHARED[one] for one in (capability, *alike)}):
        be_on(capability, shared)
        with watched(capability, shared, functools.partial(compile_alike, alike, unchecked)):
            compile_frames(requests)
            compile_codecs(requests)
    with watched(capability, SHARED[capability]) as compiled:
        for kernel in requests.all:
            getattr(importlib.import_module(kernel.module), kernel.function).preload(kernel.data)
    assert not compiled, f"other processes would have compiled something else: {compiled}"
    return len(requests.all)


def compile_alike(alike: tuple[int, ...], unchecked: set[str], src: Any, ptx: str, options: dict[str, Any]) -> None:
    """Compile a kernel for other capabilities if its name is in `unchecked`; the PTX has to be the same."""
    if src.name not in unchecked:
        return
    unchecked.remove(src.name)
    for capability in alike:
        own = re.sub(r"\.target sm_\d+", f".target sm_{capability}", ptx)
        compiled = compile_kernel(src, GPUTarget("cuda", capability, 32), options).asm["ptx"]
        assert compiled == own, f"{src.name} differs on {capability}, which cannot be in ALIKE"


def compile_elsewhere(capability: int, target: dict[str, object]) -> None:
    """Check that another process's kernels are found, dead processes are replaced and complete caches are marked."""
    with watched(capability, SHARED[capability]) as compiled:
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
        with cached_kernels(settings) as kernels:
            assert kernels.are_complete == are_complete


def norm(size: int) -> None:
    rms_norm(torch.zeros(2, size), torch.zeros(size), 1e-6)


@contextmanager
def watched(
    capability: int, shared: int, then: Callable[[Any, str, dict[str, Any]], None] = lambda *about: None
) -> Iterator[list[str]]:
    """The kernels that this process compiles for this capability, by name; `then` gets the source, PTX and options."""
    compiled, too_large = [], []

    def note(*, src: Any, metadata: Any, metadata_group: dict[str, str], cache_hit: bool, **about: Any) -> None:
        if metadata["target"].arch != capability:
            return
        if metadata["shared"] > shared:
            too_large.append((src.name, metadata["shared"]))
        if not cache_hit:
            compiled.append(src.name)
            options = {name: value for name, value in metadata.items() if name != "arch"}
            then(src, Path(metadata_group[f"{src.name}.ptx"]).read_text(encoding="utf-8"), options)

    knobs.compilation.listener = note
    yield compiled
    assert not too_large, f"kernels want more shared memory than there is: {too_large}"


def main() -> None:
    how, capability = sys.argv[1], int(sys.argv[2])
    target = GPUTarget("cuda", capability, 32)
    driver.set_active(CompilingDriver(target))
    if how == "elsewhere":
        be_on(capability, SHARED[capability])
        compile_elsewhere(capability, vars(target))
    else:
        print(compile_here(capability))


if __name__ == "__main__":
    main()

"""What `benchmarks.cpu` compares: the same work in torch and in native code, of shapes with random weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.full_size import AUDIO8
from engine.checkpoint.families import family_of
from engine.codec import Codec, CodecConfig
from engine.config import ModelConfig
from engine.model.dual_ar import DualAR, only_shapes
from engine.model.kv_cache import KVCache
from engine.model.prompt import Prompt
from engine.model.slots import Slots
from engine.native import library
from engine.native.decoder import NativeDecoder
from engine.native.encoder import NativeEncoder
from engine.runtime.codec_streams import PlainStreams
from engine.runtime.cpu_frame import CpuFrame, torch_steps
from engine.runtime.row import Row
from engine.types import Sampling
from studio import ROOT

CPU = torch.device("cpu")
Pair = tuple[str, Callable[[], object], Callable[[], object]]


def use_isa(name: str | None) -> str:
    """The instruction set that the native code uses from now on. Exits without native code."""
    if library.library() is None:
        raise SystemExit(f"native code cannot be used here: {library.problem()}")
    if name and not library.use_isa(name):
        raise SystemExit(f"this processor has no {name}")
    return library.isa()


def set_threads(count: int) -> None:
    torch.set_num_threads(count)
    library.set_threads(count)


@torch.inference_mode()
def pairs(shape: str, position: int, context: int) -> Iterator[Pair]:
    """A name, the work in torch, and the same in native code, of every part."""
    config = _config(shape)
    for weights in ("int8",) if shape == "audio8" else ("bf16", "int8"):
        in_torch, natively = _frames(config, weights, position, context)
        yield f"AR frame, {'float32' if weights == 'bf16' else weights}", in_torch, natively
    codec = _codec(shape)
    plain, decoder = PlainStreams(codec), NativeDecoder(codec, 1)
    plain.open("take")
    for frames in (1, 4):
        codes = np.random.default_rng(0).integers(0, 1000, (codec.config.num_codebooks, frames)).astype(np.int16)
        in_torch, natively = _decoding(plain, decoder, codes)
        yield f"codec, a chunk of {frames}", in_torch, natively
    audio = torch.randn(1, 1, 5 * codec.config.sample_rate) * 0.1
    in_torch, natively = _encoding(codec, audio)
    yield "encode 5 s", in_torch, natively


def _decoding(plain: PlainStreams, decoder: NativeDecoder, codes: np.ndarray) -> tuple[Callable[[], object], ...]:
    return lambda: plain.decode([("take", codes)]), lambda: decoder(0, codes)


def _encoding(codec: Codec, audio: Tensor) -> tuple[Callable[[], object], ...]:
    encoder = NativeEncoder(codec)

    @torch.inference_mode()
    def in_torch() -> Tensor:
        return codec.encode(audio)

    def natively() -> Tensor:  # as an idle engine encodes: with the weights' arrangement
        encoder.release()
        return encoder(audio)

    return in_torch, natively


def _codec(shape: str) -> Codec:
    """Random weights that keep the signal's size."""
    config = CodecConfig.of(ROOT / "assets/fry") if shape == "fry" else family_of(AUDIO8).codec(AUDIO8)
    with only_shapes():
        codec = Codec(config)
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, like in codec.state_dict().items():
        role, noise = name.rpartition(".")[2], torch.randn(like.shape, generator=generator)
        if role == "alpha":
            state[name] = 1 + 0.3 * noise.tanh()
        elif role == "bias":
            state[name] = 0.02 * noise
        elif role == "gamma" or like.ndim == 1:
            state[name] = torch.full(like.shape, 0.3 if role == "gamma" else 1.0)
        else:
            state[name] = noise if "codebook" in name else noise / like[0].numel() ** 0.5
    codec.load_state_dict(state, assign=True)
    return codec.eval().requires_grad_(False)


def _config(shape: str) -> ModelConfig:
    tree = AUDIO8 if shape == "audio8" else json.loads((ROOT / "assets/fry/config.json").read_text())
    return family_of(tree).read(tree, dict)


def _frames(config: ModelConfig, weights: Any, position: int, context: int) -> tuple[Callable[[], object], ...]:
    with only_shapes():
        models = [DualAR(config, weights) for _ in range(2)]
    state = {name: _random(name, like) for name, like in models[0].state_dict().items()}
    frames = []
    for model, is_native in zip(models, (False, True), strict=True):
        model.load_state_dict(state, assign=True)
        model.eval().requires_grad_(False)
        cache = KVCache(config.slow, 1, context, CPU, torch.float32, spare=True)
        slots = Slots(config, 1, context, CPU, torch.float32)
        slots.input.normal_(0, 0.02)
        slots.temperature.fill_(0.7)
        slots.top_p.fill_(0.9)
        slots.top_k.fill_(30)
        # Before the native frame packs the weights, which both models share, into memory of its own.
        frame = CpuFrame(model, cache, slots, 1, context) if is_native else _in_torch(model, cache, slots, context)
        assert frame.is_native == is_native
        frames.append(_repeated(frame, position))
    return tuple(frames)


def _in_torch(model: DualAR, cache: KVCache, slots: Slots, context: int) -> CpuFrame:
    return CpuFrame(model, cache, slots, 1, context, torch_steps(model, cache, 1, context))


def _repeated(frame: CpuFrame, position: int) -> Callable[[], object]:
    row = Row(Prompt.__new__(Prompt), Sampling(), 10**6, lambda chunk: None, slot=0, position=position)

    @torch.inference_mode()
    def work() -> Tensor:
        return frame((row,))

    return work


def _random(name: str, like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(len(name))
    if like.dtype == torch.int8:
        return torch.randint(-127, 128, like.shape, dtype=torch.int8, generator=generator)
    if name.endswith("scales"):
        return torch.full(like.shape, 0.02 / 73)
    if name.endswith("norm.weight"):
        return torch.ones(like.shape)
    return torch.empty(like.shape).normal_(0, 0.02, generator=generator).bfloat16().float()  # as published

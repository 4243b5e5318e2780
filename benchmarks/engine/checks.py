"""Correctness on the GPU, checked before timing: kernels, frames, the codec's audio, logits, batch invariance."""

from __future__ import annotations

import asyncio
import copy
import itertools
import wave
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.engine.model import DEVICE, S2_PRO, error, join, row
from engine import Engine, EngineConfig, Sampling, Utterance, kernels
from engine.checkpoint import load
from engine.config import TwelveBits
from engine.fused.codec_decoder import FusedDecoder
from engine.fused.frame import FusedTransformer, Sharing, Weight
from engine.model.dual_ar import Causal, DualAR, Transformer
from engine.model.kv_cache import KVCache
from engine.model.layers import rope_angles
from engine.model.slots import Slots
from engine.model.stored_weight import BITS, StoredWeight
from engine.runtime.codec_streams import GraphStreams, PlainStreams
from engine.runtime.graphs import capture
from engine.runtime.runner import Runner
from tests.engine.kernels import twins


def check_kernels() -> dict[str, float]:
    """Relative errors of bf16 kernels against their twins in float32."""
    torch.manual_seed(0)
    out = {}
    for rows_, (columns, depth) in itertools.product((1, 5, 16), ((6144, 2560), (2560, 9728))):
        x = torch.randn(rows_, depth, device=DEVICE).bfloat16()
        w = (torch.randn(columns, depth, device=DEVICE) / depth**0.5).bfloat16()
        g = (1 + 0.1 * torch.randn(depth, device=DEVICE)).bfloat16()
        r = torch.randn(rows_, columns, device=DEVICE).bfloat16()
        fx, fg, fr = (t.float() for t in (x, g, r))
        for bits in (16, 8, 6):
            weight = StoredWeight.of(w, bits)
            wide = StoredWeight(weight.dequantised(torch.float32))
            weight = weight.paired() if bits == 8 else weight
            key = f"linear {bits} bits {rows_}x{columns}x{depth}"
            out[key] = error(kernels.linear(x, weight), twins.linear_twin(fx, wide))
            out[key + " norm"] = error(kernels.linear(x, weight, g, 1e-6), twins.linear_twin(fx, wide, fg, 1e-6))
            summed = kernels.linear(x, weight, residual=r.clone())
            out[key + " residual"] = error(summed, twins.linear_twin(fx, wide, residual=fr))
            gated = kernels.linear(x, weight, g, 1e-6, gated=True)
            out[key + " gated"] = error(gated, twins.linear_twin(fx, wide, fg, 1e-6, gated=True))
    keys, values = (torch.randn(9, 2048, 8, 128, device=DEVICE).bfloat16() for _ in range(2))
    slots, positions = torch.tensor([3, 0, 8], device=DEVICE), torch.tensor([0, 600, 2047], device=DEVICE)
    table = rope_angles(torch.arange(2048, device=DEVICE), 128, 1e6)
    qkv = torch.randn(3, 48 * 128, device=DEVICE).bfloat16()
    gains = [(1 + 0.1 * torch.randn(128, device=DEVICE)).bfloat16() for _ in range(2)]
    norms = (gains[0], gains[1])
    k2, v2 = keys.clone(), values.clone()
    inputs = kernels.HeadInputs(qkv, norms, 1e-6, table, keys, values, slots, positions)
    plain_inputs = inputs._replace(keys=k2, values=v2)
    out["rotate"] = error(kernels.rope(inputs), twins.rope_twin(plain_inputs))
    out["rotate keys"] = error(keys, k2)
    out["attention"] = error(kernels.decode_attention(inputs), twins.decode_attention_twin(plain_inputs))
    out["attention keys"] = error(keys, k2)
    logits = torch.randn(64, 4097, device=DEVICE) * 3
    drawing, state = torch.randperm(64, device=DEVICE), Slots(S2_PRO, 63, 2048, DEVICE, torch.bfloat16)
    state.temperature[:], state.top_p[:] = torch.rand(64) * 1.5, torch.rand(64)
    state.top_k[:], state.seed[:] = torch.randint(1, 200, (64,)), torch.randint(0, 2**62, (64,))
    state.frame[:], state.memory[:] = torch.randint(0, 2000, (64,)), torch.randint(-1, 4097, (64, 10))
    out["sample mismatches of 64"] = float(
        (kernels.sample(logits, drawing, state, 3) != twins.sample_twin(logits, drawing, state, 3)).sum()
    )
    mine, twin = (f(logits, drawing, state, 0, True) for f in (kernels.sample, twins.sample_twin))
    out["semantic mismatches of 64"] = float((mine != twin).sum())
    return out


def check_small(folder: Path) -> dict[str, Any]:
    """On a small checkpoint in float32: graphs and plain torch sample the same and decode the same audio."""
    small = load(folder, DEVICE, DEVICE, torch.float32)
    texts = (Sampling(temperature=0.0), Sampling(seed=7), Sampling(temperature=1.1, top_p=0.95, top_k=60, seed=9))
    frames: list[np.ndarray] = []
    for graphs in (False, True):
        runner = Runner(small.model, 4, 1024)
        if graphs:
            capture(*runner.use_graphs(True))
        prompts = tuple(row(i, i, 40 + 30 * i, small.config, texts[i]) for i in range(3))
        for prompt in prompts:
            prompt.prompt.ids[:] %= 256
        rows = join(runner, prompts)
        frames.append(np.stack([[codes for _, codes, _ in runner.launch(rows).read()] for _ in range(60)]))
    codes = frames[0].transpose(1, 2, 0) % small.codec.config.residual_codebook_size
    plain, graph = PlainStreams(small.codec), GraphStreams(FusedDecoder(small.codec, 4), 4)
    capture(*graph.graphs)
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


def check_logits(model: DualAR) -> dict[str, float]:
    """Relative errors of logits against float32: plain torch in bfloat16, and the kernels with weights of each kind."""
    torch.manual_seed(1)
    steps = 48
    x = model.embed(torch.randint(0, 9999, (1, steps), device=DEVICE), torch.zeros(1, 10, steps, device=DEVICE).long())
    positions, slots = torch.arange(steps, device=DEVICE), torch.zeros(steps, dtype=torch.int64, device=DEVICE)
    legal = model.head().contiguous()
    head = Weight(StoredWeight(legal))
    plain = torch.nn.functional.linear(model.slow(x, positions[None], Causal())[0], legal)
    wide = copy.deepcopy(model.slow).float()
    oracle = torch.nn.functional.linear(wide(x.float(), positions[None], Causal())[0], legal.float())
    del wide
    out = {"plain bfloat16": error(plain, oracle)}

    def drawn(slow: Transformer, twelve_bits: TwelveBits, pieces: list[slice]) -> float:
        """The error when the steps are processed in these pieces, each with the previous ones in the cache."""
        fused = FusedTransformer(slow, 1024, True, False, twelve_bits)
        cache = KVCache(S2_PRO.slow, 1, 1024, DEVICE, torch.bfloat16)
        kind: Sharing = "none" if len(pieces) == steps else "prompts"
        states = [fused(x[0, piece].clone(), slots[piece], positions[piece], cache, kind)[0] for piece in pieces]
        hidden = torch.cat(states)
        return error(fused.head(hidden, fused.norm(hidden), head), oracle)

    alone = [slice(i, i + 1) for i in range(steps)]
    for weights in BITS:
        slow = model.quantised_as(weights).slow
        out[f"kernels {weights}"] = drawn(slow, "none", [slice(0, steps)])
        out[f"kernels {weights}, step by step"] = drawn(slow, "none", alone)
    out["twelve bits, step by step"] = drawn(model.slow, "words", alone)
    out["twelve bits, by eights"] = drawn(model.slow, "tiles", [slice(i, i + 8) for i in range(0, steps, 8)])
    return out


def check_batch_invariance(model: DualAR) -> dict[str, int]:
    """Frames of a seeded row that are the same alone and among 63 others, in reproducible and in normal mode."""
    equal = {}
    for batch_invariant in (True, False):
        runner = Runner(model, 64, 1024)
        capture(*runner.use_graphs(True, batch_invariant))
        drawn = []
        for company in (1, 64):
            rows = join(runner, tuple(row(i, 100 + i, 300 + i, S2_PRO) for i in range(company)))
            drawn.append(np.stack([next(iter(runner.launch(rows).read()))[1].copy() for _ in range(40)]))
        equal["reproducible" if batch_invariant else "usual"] = int((drawn[0] == drawn[1]).all(1).sum())
    return equal | {"of_frames": 40}


def check_stops(folder: Path, count: int = 200) -> dict[str, int]:
    """Takes of a trained checkpoint: the lengths and frames on which plain torch and the graphs agree, in float32.

    Among some 100,000 samples one or two depend on the last bits of a sum.
    """
    with wave.open(str(next((folder / "voices").glob("*.wav")))) as sound:
        rate = sound.getframerate()
        clip = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32) / 2**15
    words = next((folder / "voices").glob("*.txt")).read_text().strip()
    takes = [asyncio.run(_hear(folder, clip, rate, words, count, graphs)) for graphs in (False, True)]
    pairs = list(zip(*takes, strict=True))
    return {
        "takes": count,
        "same_length": sum(a.shape == b.shape for a, b in pairs),
        "same_frames": sum(np.array_equal(a, b) for a, b in pairs),
        "ended_by_themselves": sum(a.shape[1] < STOP_BY for a, _ in pairs),
    }


STOP_BY = 150
"""Frames after which a take is cut off: about twice what its text needs."""


async def _hear(folder: Path, clip: np.ndarray, rate: int, words: str, count: int, graphs: bool) -> list[np.ndarray]:
    """The codes of several takes in a cached voice, each with its own text and seed."""
    engine = Engine.start(EngineConfig(str(folder), dtype="float32", graphs=graphs, max_rows=16, max_waiting=count))
    reference = await engine.encode_reference(clip, rate, words)

    async def take(number: int) -> np.ndarray:
        text = f"This is sentence number {number}, and it ends here."
        utterance = Utterance(text, (reference,), Sampling(seed=number), max_frames=STOP_BY)
        return np.concatenate([chunk.codes async for chunk in engine.speak(utterance)], 1)

    codes = await asyncio.gather(*(take(number) for number in range(count)))
    engine.stop()
    return list(codes)

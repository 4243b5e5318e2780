"""Native steps: the sums of their own arithmetic in float64, and the same bits for any threads, rows and pieces."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.config import TransformerSizes
from engine.model.dual_ar import Causal, Transformer
from engine.model.stored_weight import QuantisedLinear, StoredWeight, set_weight, weight_of
from engine.native import library
from engine.native.transformer import NativeTransformer, runs

SIZES = TransformerSizes(
    vocab_size=8, n_layer=3, dim=96, n_head=6, n_kv_head=2, head_dim=16, intermediate_size=160, qk_norm=True,
    rope_base=10_000.0, norm_eps=1e-6, qkv_bias=True,
)  # fmt: skip
BEST = library.isa() if library.library() else "none"
ISAS = [name for name in ("base", "avx2", "avxvnni", "avx512vnni", "dotprod") if library.use_isa(name)]
STEPS, CONTEXT = 150, 200


@pytest.fixture(params=["float32", "bfloat16", "int8"])
def plain(request: pytest.FixtureRequest) -> Transformer:
    """A model with weights in 8 bits, or in float32, whose values may be ones of bfloat16."""
    plain = model(8 if request.param == "int8" else 16)
    if request.param == "bfloat16":
        for part in plain.modules():
            if isinstance(part, nn.Linear):
                part.weight.data = part.weight.data.bfloat16().float()
    return plain


@torch.inference_mode()
def model(bits: int) -> Transformer:
    torch.manual_seed(2)
    plain = Transformer(SIZES, bits)
    for part in plain.modules():
        if isinstance(part, QuantisedLinear):
            set_weight(part, StoredWeight.of(torch.randn(*weight_of(part).shape) / 8, 8))
            if part.bias is not None:
                part.bias.data = torch.randn(len(part.bias)) / 9
        elif isinstance(part, nn.Linear) and part.bias is not None:
            part.bias.data.normal_(0, 0.1)
    for name, parameter in plain.named_parameters():
        if name.endswith("norm.weight"):
            parameter.data.uniform_(0.5, 1.5)
    return plain.eval().requires_grad_(False)


def native(plain: Transformer, rows: int = 1) -> NativeTransformer:
    shape = (SIZES.n_layer, rows, CONTEXT, SIZES.n_kv_head, SIZES.head_dim)
    head = torch.randn(53, SIZES.dim, generator=torch.Generator().manual_seed(3)) / 10
    return NativeTransformer(plain, [head], torch.zeros(shape), torch.zeros(shape))


def inputs(seed: int = 0, steps: int = STEPS) -> Tensor:
    return torch.randn(steps, SIZES.dim, generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def whole(plain: Transformer, x: Tensor) -> list[Tensor]:
    """Hidden states, normed and logits of steps that are read in one call."""
    x = x.clone()
    return [x, *native(plain)(x, [0] * len(x), range(len(x)))]


@torch.inference_mode()
def test_steps_match_the_plain_transformer(plain: Transformer) -> None:
    assert runs(plain)
    exact = Transformer(SIZES)
    state = {name: value for name, value in plain.state_dict().items() if "scales" not in name}
    for name, part in plain.named_modules():
        if isinstance(part, QuantisedLinear):
            state[f"{name}.weight"] = weight_of(part).dequantised(torch.float32)
    exact.load_state_dict(state)
    x = inputs()
    expected = exact(x[None], torch.arange(len(x))[None], Causal())[0]
    _, normed, _ = whole(plain, x)
    limit = 1e-5 if weight_of(plain.layers[0].attention.wo).scales is None else 0.03  # type: ignore[union-attr, arg-type]
    assert (normed - expected).norm() <= limit * expected.norm()


@torch.inference_mode()
def test_int8_steps_are_their_own_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded activations are discrete, so a single layer is compared, before rounding errors can cross a boundary."""
    plain = model(8)
    plain.layers = plain.layers[:1]
    plain.sizes = replace(SIZES, n_layer=1)
    x = inputs(steps=40)

    def times(weight: StoredWeight, x: Tensor, out: Any = None) -> Tensor:
        blocks = x.float().unflatten(-1, (-1, 32))
        most = blocks.abs().amax(-1, keepdim=True)
        rounded = (blocks * (127 / most)).round().double() * (most / 127).double()
        return rounded.flatten(-2) @ weight.dequantised(torch.float32).double().t()

    run = NativeTransformer(plain, [torch.zeros(8, SIZES.dim)], *(torch.zeros(1, 1, CONTEXT, 2, 16) for _ in "kv"))
    hidden = x.clone()
    run(hidden, [0] * len(x), range(len(x)), every=0)
    monkeypatch.setattr(StoredWeight, "times", times)
    expected = plain.double().states(x[None].double(), torch.arange(len(x))[None], Causal())[0]
    errors = (hidden - expected).norm(dim=1) / expected.norm(dim=1)
    assert errors.median() <= 1e-6
    assert errors.max() <= 1e-3, "a rounding boundary is crossed at most here and there"


@pytest.mark.parametrize("isa", ISAS)
def test_any_number_of_threads_gives_the_same_bits(plain: Transformer, isa: str) -> None:
    assert library.use_isa(isa)
    results = []
    for threads in (1, 2, 4, 8):
        library.set_threads(threads)
        results.append(whole(plain, inputs()))
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(results[0], result, strict=True))


def test_instruction_sets_agree(plain: Transformer) -> None:
    results = {}
    for isa in ISAS:
        library.use_isa(isa)
        results[isa] = whole(plain, inputs())[1]
    first, *others = (result for isa, result in results.items() if isa != "base")
    assert all(torch.equal(first, other) for other in others)
    if weight_of(plain.layers[0].attention.wo).scales is None:  # type: ignore[union-attr, arg-type]
        assert (results["base"] - first).norm() <= 1e-5 * first.norm()
    else:
        assert (results["base"] - first).norm() <= 0.01 * first.norm()


@torch.inference_mode()
def test_pieces_and_single_steps_give_the_bits_of_the_whole(plain: Transformer) -> None:
    expected = whole(plain, inputs())[1]
    run, x, at = native(plain), inputs(), 0
    for length in (1, 1, 7, 64, 2, 3, 70, 2):
        normed, _ = run(x[at : at + length].clone(), [0] * length, range(at, at + length))
        assert torch.equal(normed, expected[at : at + length])
        at += length
    assert at == STEPS


@torch.inference_mode()
def test_rows_are_as_one_row_alone(plain: Transformer) -> None:
    takes = [inputs(seed, 30) for seed in range(5)]
    alone = [whole(plain, take) for take in takes]
    run = native(plain, rows=5)
    run(takes[3][:9].clone(), [3] * 9, range(9))
    for step in range(20):
        rows = [0, 3, 1, 4, 2][: 1 + step // 4]
        places = [step + 9 * (row == 3) - 4 * max(0, [0, 3, 1, 4, 2].index(row)) for row in rows]
        x = torch.stack([takes[row][place] for row, place in zip(rows, places, strict=True)])
        normed, logits = run(x, rows, places)
        for line, (row, place) in enumerate(zip(rows, places, strict=True)):
            assert torch.equal(normed[line], alone[row][1][place])
            assert torch.equal(logits[line], alone[row][2][place])


@torch.inference_mode()
def test_logits_of_every_second_step(plain: Transformer) -> None:
    x = inputs(steps=2)
    _, normed, logits = whole(plain, x)
    every = native(plain)(x.clone(), [0, 0], [0, 1], every=2)
    assert torch.equal(every[0], normed) and torch.equal(every[1], logits[1:])
    assert native(plain)(x.clone(), [0, 0], [0, 1], every=0)[1].shape == (0, 53)


def test_packed_weights_are_unpacked_for_torch() -> None:
    rng = np.random.default_rng(0)
    weight = StoredWeight(torch.from_numpy(rng.integers(-127, 128, (24, 64), np.int8)), torch.rand(24))
    packed = weight.packed(library.LargePages().empty)
    assert packed.is_packed and packed.shape == weight.shape
    assert torch.equal(packed.dequantised(torch.float32), weight.dequantised(torch.float32))
    x = torch.randn(3, 64)
    assert torch.equal(packed.times(x), weight.times(x))
    assert math.isclose(float(packed.scales.sum()), float(weight.scales.sum()))  # type: ignore[union-attr]

"""Every fused kernel against its plain equivalent: in float32 under Triton's interpreter, also in bfloat16 on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.model.draw_rules import DrawRule, Penalised, RepetitionAware
from engine.model.layers import rope_angles
from engine.model.slots import Slots
from engine.model.stored_weight import StoredWeight
from tests.engine.kernels.interpreter import DEVICE

kernels = pytest.importorskip("engine.kernels")
twins = pytest.importorskip("tests.engine.kernels.twins")

DTYPES = [torch.float32] + ([torch.bfloat16] if DEVICE == "cuda" else [])  # interpreted bfloat16 dots are not real


def close(a: Tensor, b: Tensor) -> bool:
    """Whether the relative error of the whole is within the type's rounding."""
    limit = 1e-5 if a.dtype == torch.float32 else 1e-2
    return bool((a.double() - b.double()).norm() <= limit * b.double().norm())


def state_of(rule: DrawRule | None = None, **tensors: Tensor) -> Slots:
    """A state that has only these tensors."""
    state = object.__new__(Slots)
    state.rule = rule or RepetitionAware(stop=0)
    vars(state).update(tensors)
    return state


def random(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).to(DEVICE, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(1, 48, 96), (1, 17, 2100), (2, 17, 2100), (3, 40, 320), (6, 70, 90), (20, 40, 600), (70, 24, 32)],
)
def test_product_with_norm_gate_and_residual_matches_the_plain_one(
    rows: int, columns: int, depth: int, dtype: torch.dtype
) -> None:
    x = random(rows, depth, dtype=dtype, seed=1)
    weight = StoredWeight(random(columns, depth, dtype=dtype, scale=depth**-0.5, seed=2))
    double = StoredWeight(random(2 * columns, depth, dtype=dtype, scale=depth**-0.5, seed=3))
    gains = (1 + random(depth, scale=0.1, seed=4)).to(dtype)
    residual = random(rows, columns, dtype=dtype, seed=5)
    assert close(kernels.linear(x, weight), twins.linear_twin(x, weight))
    assert close(kernels.linear(x, weight, gains, 1e-6), twins.linear_twin(x, weight, gains, 1e-6))
    summed = twins.linear_twin(x, weight, residual=residual)
    for preload in (False, True):
        assert close(kernels.linear(x, weight, residual=residual.clone(), preload=preload), summed)
    gated = twins.linear_twin(x, double, gains, 1e-6, gated=True)
    assert close(kernels.linear(x, double, gains, 1e-6, gated=True), gated)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", [16, 8, 6])
@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(3, 40, 320), (40, 40, 576), (64, 24, 320), (70, 24, 64), (40, 600, 64)]
)
@torch.inference_mode()
def test_product_and_the_norm_of_its_sum_match_the_plain_ones(
    rows: int, columns: int, depth: int, bits: int, dtype: torch.dtype
) -> None:
    x, residual = random(rows, depth, dtype=dtype, seed=1), random(rows, columns, dtype=dtype, seed=2)
    weight = StoredWeight.of(random(columns, depth, dtype=dtype, scale=depth**-0.5, seed=3), bits).paired()
    gains = (1 + random(columns, scale=0.1, seed=4)).to(dtype)
    both = kernels.linear_norm(x, weight, residual.clone(), gains, 1e-6)
    plain = twins.linear_norm_twin(x, weight, residual, gains, 1e-6)
    assert all(close(a, b) for a, b in zip(both, plain, strict=True))
    invariant = kernels.linear_norm(x, weight, residual.clone(), gains, 1e-6, batch_invariant=True)
    total = kernels.linear(x, weight, residual=residual.clone(), batch_invariant=True)
    assert torch.equal(invariant[0], total) and torch.equal(invariant[1], kernels.rms_norm(total, gains, 1e-6))


@pytest.mark.parametrize("bits", [8, 6])
@pytest.mark.parametrize("rows", [1, 2, 5, 40, 70])
@torch.inference_mode()
def test_product_with_quantised_weights_matches_the_dequantised_ones(rows: int, bits: int) -> None:
    x, residual = random(rows, 192, seed=1), random(rows, 40, seed=3)
    weight = StoredWeight.of(random(80, 192, seed=2), bits).paired()
    gains = 1 + random(192, scale=0.1, seed=4)
    how = x, weight, gains, 1e-6, True
    assert close(kernels.linear(*how), twins.linear_twin(*how))
    half, _ = weight.halves()
    plain = twins.linear_twin(x, half, residual=residual)
    for preload in (False, True):
        assert close(kernels.linear(x, half, residual=residual.clone(), preload=preload), plain)


@torch.inference_mode()
def test_twelve_bit_weights_match_bfloat16_within_their_precision() -> None:
    weight = random(1030, 256, scale=0.02, seed=1).bfloat16()  # more rows than are packed at once, not in fours
    weight[0], weight[1, :3], weight[2, 0] = 0, torch.tensor([1e-9, -2e-6, 1e-30]), 30_000
    unpacked = kernels.Packed12.of(weight).unpacked()
    largest = weight.float().abs().amax(1, keepdim=True)
    error = (unpacked - weight.float()).abs()
    assert (error <= 2**-22 * largest).all()
    assert (error[weight.float().abs() > 2**-13 * largest] == 0).all()
    assert (error[3:] == 0).double().mean() > 0.999


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("columns", [40, 17])
@torch.inference_mode()
def test_product_with_twelve_bit_weights_matches_the_unpacked_ones(columns: int, rows: int) -> None:
    x, residual, gains = random(rows, 640, seed=1), random(rows, columns, seed=3), 1 + random(640, scale=0.1, seed=4)
    weight = StoredWeight(random(columns, 640, seed=2))
    packed12 = kernels.Packed12.of(weight.values)
    plain = StoredWeight(packed12.unpacked())
    assert close(kernels.linear(x, weight, gains, 1e-6, packed12=packed12), twins.linear_twin(x, plain, gains, 1e-6))
    for preload in (False, True):
        product = kernels.linear(x, weight, residual=residual.clone(), packed12=packed12, preload=preload)
        assert close(product, twins.linear_twin(x, plain, residual=residual))
    if columns % 8 == 0:
        gated = kernels.linear(x, weight, gains, 1e-6, gated=True, packed12=packed12)
        assert close(gated, twins.linear_twin(x, plain, gains, 1e-6, gated=True))
    small = kernels.linear(1e-6 * x, weight, packed12=packed12)
    assert close(small, twins.linear_twin(1e-6 * x, plain))


@pytest.mark.parametrize("rows", [3, 8])
@pytest.mark.parametrize("dtype", DTYPES)
@torch.inference_mode()
def test_tiled_twelve_bit_gates_match_the_unpacked_weights(rows: int, dtype: torch.dtype) -> None:
    x, weight, gains = (
        random(rows, 384, dtype=dtype, seed=1),
        random(128, 384, seed=2),
        random(384, dtype=dtype, seed=3),
    )
    packed12 = kernels.Packed12.of(weight, tiled=True)
    assert packed12.tiles is not None and packed12.tiles.nbytes == packed12.words.nbytes
    how = x, StoredWeight(packed12.unpacked().to(dtype)), gains, 1e-6, True
    assert close(kernels.linear(*how, packed12=packed12), twins.linear_twin(*how))
    assert kernels.Packed12.of(weight[:96], tiled=True).tiles is None  # 48 gates do not fill whole tiles


def test_weights_that_do_not_fit_twelve_bits_are_refused() -> None:
    weight = random(8, 128)
    x, other = random(1, 128), random(12, 128)
    with pytest.raises(ValueError, match="multiple of four columns"):
        kernels.linear(x, StoredWeight(other), gated=True, packed12=kernels.Packed12.of(other))
    with pytest.raises(ValueError, match="do not match"):
        kernels.linear(x, StoredWeight(other), packed12=kernels.Packed12.of(weight))
    for worse in (random(8, 64), torch.where(weight > 1, 40_000, weight), weight.log()):
        with pytest.raises(ValueError, match="multiple of 128, every weight finite and below 32768"):
            kernels.Packed12.of(worse)


def test_product_refuses_wrong_shapes() -> None:
    with pytest.raises(ValueError, match="residual"):
        kernels.linear(random(2, 8), StoredWeight(random(4, 8)), residual=random(1, 4))
    with pytest.raises(ValueError, match="cannot be preloaded"):
        kernels.linear(random(1, 8), StoredWeight(random(4, 8)), random(8), preload=True)
    with pytest.raises(ValueError, match="does not fit"):
        kernels.linear(random(1, 8), StoredWeight(random(4, 16)))
    with pytest.raises(ValueError, match="needs scales"):
        kernels.linear(random(1, 8), StoredWeight(random(4, 8).to(torch.int8)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(8, 2, 32), (4, 4, 16), (6, 2, 64)])
def test_rotation_and_attention_over_slots_match_plain_torch(
    heads: int, kv_heads: int, head_dim: int, normed: bool, dtype: torch.dtype
) -> None:
    context, layers, slots = 300, 2, 4
    table = rope_angles(torch.arange(context, device=DEVICE), head_dim, 1e4)
    gains = tuple((1 + random(head_dim, scale=0.1, seed=s)).to(dtype) for s in (1, 2)) if normed else None
    qkv = random(3, (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    keys, values = (random(layers, slots, context, kv_heads, head_dim, dtype=dtype, seed=s) for s in (3, 4))
    plain_keys, plain_values = keys.clone(), values.clone()
    where = torch.tensor([2, 0, 3], device=DEVICE), torch.tensor([0, 131, 299], device=DEVICE)
    how = qkv, gains, 1e-6, table
    q = kernels.rope(kernels.HeadInputs(*how, keys[1], values[1], *where))
    plain = twins.rope_twin(kernels.HeadInputs(*how, plain_keys[1], plain_values[1], *where))
    assert close(q, plain) and close(keys, plain_keys) and torch.equal(values, plain_values)
    keys, values = plain_keys.clone(), plain_values.clone()
    y = kernels.decode_attention(kernels.HeadInputs(*how, keys[0], values[0], *where))
    assert close(y, twins.decode_attention_twin(kernels.HeadInputs(*how, plain_keys[0], plain_values[0], *where)))
    assert close(keys, plain_keys) and torch.equal(values, plain_values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(8, 2, 32), (4, 4, 16), (6, 2, 64)])
@pytest.mark.parametrize("pairs", [True, False])
def test_attention_over_few_keys_matches_the_plain_one(
    pairs: bool, heads: int, kv_heads: int, head_dim: int, normed: bool, dtype: torch.dtype
) -> None:
    context, slots = 10, 4
    table = rope_angles(torch.arange(context, device=DEVICE), head_dim, 1e4)
    gains = tuple((1 + random(head_dim, scale=0.1, seed=s)).to(dtype) for s in (1, 2)) if normed else None
    keys, values = (random(slots, context, kv_heads, head_dim, dtype=dtype, seed=s) for s in (3, 4))
    plain_keys, plain_values = keys.clone(), values.clone()
    at = [[2, 0, 3, 2, 0, 3], [0, 0, 0, 1, 1, 1]] if pairs else [[2, 0, 3], [0, 4, 9]]
    where = torch.tensor(at[0], device=DEVICE), torch.tensor(at[1], device=DEVICE)
    how = random(len(at[0]), (heads + 2 * kv_heads) * head_dim, dtype=dtype), gains, 1e-6, table
    y = kernels.short_attention(kernels.HeadInputs(*how, keys, values, *where), pairs)
    assert close(y, twins.decode_attention_twin(kernels.HeadInputs(*how, plain_keys, plain_values, *where)))
    assert close(keys, plain_keys) and torch.equal(values, plain_values)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("heads", "kv_heads"), [(8, 2), (4, 4), (6, 2)])
def test_prompts_in_a_batch_attend_as_each_does_alone(heads: int, kv_heads: int, dtype: torch.dtype) -> None:
    context, head_dim = 300, 32
    table = rope_angles(torch.arange(context, device=DEVICE), head_dim, 1e4)
    gains = (1 + random(head_dim, scale=0.1, seed=1)).to(dtype), (1 + random(head_dim, scale=0.1, seed=2)).to(dtype)
    keys, values = (random(5, context, kv_heads, head_dim, dtype=dtype, seed=s) for s in (3, 4))
    runs = (2, 100, 20), (0, 0, 3), (4, 299, 1), (2, 120, 1), (1, 60, 12), (3, 0, 1)  # slot, first position, count
    slots = torch.cat([torch.full((count,), slot) for slot, _, count in runs]).to(DEVICE)
    positions = torch.cat([torch.arange(start, start + count) for _, start, count in runs]).to(DEVICE)
    qkv = random(len(slots), (heads + 2 * kv_heads) * head_dim, dtype=dtype)
    plain_keys, plain_values = keys.clone(), values.clone()
    how = gains, 1e-6, table
    y = kernels.prefill_attention(kernels.HeadInputs(qkv, *how, keys, values, slots, positions))
    plain = twins.decode_attention_twin(kernels.HeadInputs(qkv, *how, plain_keys, plain_values, slots, positions))
    assert close(y, plain) and close(keys, plain_keys) and torch.equal(values, plain_values)
    alone = slice(20, 23)  # a prompt alone has the same result
    where = slots[alone], positions[alone]
    by_itself = kernels.prefill_attention(kernels.HeadInputs(qkv[alone], *how, keys, values, *where))
    # Bit-equal with tensor cores; in the interpreter, numpy's rounding may depend on a row's place.
    assert torch.equal(y[alone], by_itself) if DEVICE == "cuda" else close(y[alone], by_itself)


@pytest.mark.parametrize(
    ("kind", "columns", "least", "stops"),
    [  # the last column is the main token's stop: most likely, in between, least likely
        (RepetitionAware, 41, -1, (9.0, 2.0, 0.0, -9.0)),
        (Penalised, 41, 0, (9.0, 2.0, 0.0, -9.0)),
        (Penalised, 300, 0, (0.0,)),
    ],
)
def test_sampled_tokens_equal_the_plain_ones(
    kind: type[RepetitionAware | Penalised], columns: int, least: int, stops: tuple[float, ...]
) -> None:
    rows, rule = 8, kind(columns - 1)
    temperature = torch.tensor([0.0, 0.7, 1.0, 0.8, 1.5, 0.3, 0.0, 2.0], device=DEVICE)
    top_p = torch.tensor([0.9, 0.5, 1.0, 0.95, 1.0, 0.9, 0.0, 0.99], device=DEVICE)
    top_k = torch.tensor([30, 5, 41, 30, 1, 200, 3, 1000], device=DEVICE)
    generator = torch.Generator().manual_seed(0)
    slots = torch.randperm(rows, generator=generator).to(DEVICE)
    table = random(columns, 70)
    for trial, stop in enumerate(stops):
        logits = random(rows, columns, scale=3.0, seed=trial)
        logits[:, 7] = logits[:, 5]  # ties are ordered by column
        logits[:, -1] = stop
        seed = torch.randint(0, 2**63 - 1, (rows,), generator=generator).to(DEVICE)
        frame = torch.randint(0, 5000, (rows,), generator=generator).to(DEVICE)
        frame[:4] = torch.arange(4)  # the first ones, of which some must not be the last
        memory = torch.randint(least, columns, (rows, rule.remembered), generator=generator).to(DEVICE)
        if kind is Penalised:
            memory = (memory - columns // 2).clamp(min=0)
            memory[:, -1] = 0
        how = {"temperature": temperature, "top_p": top_p, "top_k": top_k}
        state = state_of(rule, **how, seed=seed, frame=frame, memory=memory)
        assert torch.equal(kernels.sample(logits, slots, state, 3), twins.sample_twin(logits, slots, state, 3))
        drawn = []
        for draw in (kernels.sample, twins.sample_twin):
            codes, x = torch.full((rows, 3), -1, device=DEVICE), torch.empty(rows, 70, device=DEVICE)
            token = draw(logits, slots, state, 0, True, kernels.EmbedOut(codes[:, 1], table, x))
            drawn.append((token, codes, x))
        assert all(torch.equal(a, b) for a, b in zip(*drawn, strict=True))


def test_begin_frame_equals_the_plain_one() -> None:
    slots, positions = torch.tensor([3, 0, 3], device=DEVICE), torch.tensor([5, 6, 7, 98], device=DEVICE)
    state = state_of(input=random(4, 1100), position=positions)
    both = zip(kernels.begin_frame(slots, state), twins.begin_frame_twin(slots, state), strict=True)
    assert all(torch.equal(a, b) for a, b in both)


@pytest.mark.parametrize("rule", [RepetitionAware(17), Penalised(17)])
def test_end_frame_matches_the_plain_one(rule: DrawRule) -> None:
    books, size, width = 3, 11, 70
    text, audio = random(35, width), random(books * size, width, seed=1)
    slots, codes = torch.tensor([3, 0], device=DEVICE), torch.tensor([[4, 10, 0], [0, 3, 7]], device=DEVICE)
    states = []
    for end_frame in (kernels.end_frame, twins.end_frame_twin):
        count = rule.remembered
        inputs, memory = random(4, width, seed=2), torch.arange(4 * count, device=DEVICE).view(4, count)
        positions, frames = torch.tensor([0, 6, 7, 98], device=DEVICE), torch.arange(4, device=DEVICE)
        last = torch.tensor([0, 99, 99, 99], device=DEVICE)
        drawn = torch.tensor([17, 0], device=DEVICE)  # 17 stops
        state = state_of(rule, input=inputs, position=positions, frame=frames, memory=memory, last_position=last)
        host = end_frame(slots, codes, drawn, 17, text, audio, 2.5, state)
        states.append((inputs, memory, positions, frames, host))
    assert close(states[0][0], states[1][0])
    assert all(torch.equal(a, b) for a, b in zip(states[0][1:], states[1][1:], strict=True))
    assert states[0][4].tolist() == [[4, 10, 0, 1], [0, 3, 7, 0]] and states[0][4].dtype == torch.int16

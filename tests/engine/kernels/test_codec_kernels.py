"""The kernels of the codec's decoder against their plain equivalents, with states, in sizes that fill no tile."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.engine.kernels.interpreter import DEVICE
from tests.engine.kernels.test_kernels import close, kernels, random, twins

conv = pytest.importorskip("engine.kernels.conv")
units = pytest.importorskip("engine.kernels.residual_unit")
products = pytest.importorskip("engine.fused.codec_products")

UNIT_TILES = units.UnitTiles(64, 16, 16, 4, 2, 168)
SLOTS, TURNS = [4, 0, 2], [1, 0, 0, 0, 2]


def state(rows: int, context: int, channels: int) -> Any:
    columns = random(5, 2, context, channels, seed=9)
    return conv.ConvState(columns, torch.tensor(SLOTS[:rows], device=DEVICE), torch.tensor(TURNS, device=DEVICE))


def copy_of(original: Any) -> Any:
    return conv.ConvState(original.columns.clone(), original.slots, original.turns)


@pytest.mark.parametrize("halves", [True, False], ids=["halves", "whole"])
@pytest.mark.parametrize(
    ("rows", "steps", "inputs", "outputs", "taps", "dilation"),
    [(3, 5, 40, 24, 7, 3), (2, 50, 32, 33, 2, 1), (1, 70, 96, 1, 7, 9)],
)
def test_convolution_with_snake_and_residual_and_its_state_match_the_plain_one(
    rows: int, steps: int, inputs: int, outputs: int, taps: int, dilation: int, halves: bool
) -> None:
    x, residual = random(rows, steps, inputs, seed=1), random(rows, steps, outputs, seed=2)
    weight = random(outputs, taps, inputs, scale=(taps * inputs) ** -0.5, seed=3)
    weights = products.split_float16(weight) if halves else conv.ConvWeights(weight)
    alpha = 0.2 + random(outputs, seed=4).abs()
    snake = conv.SnakeGains(alpha, alpha.reciprocal()), torch.float32
    mine = state(rows, (taps - 1) * dilation, inputs)
    plain = copy_of(mine)
    bias = random(outputs, seed=5)
    more = {"dilation": dilation, "residual": residual, "out": torch.float32}
    got = kernels.conv(x, weights, bias, mine, snake=snake, **more)
    expected = twins.conv_twin(x, weights, bias, plain, snake=snake, **more)
    assert all(close(a, b) for a, b in zip(got, expected, strict=True))
    assert torch.equal(mine.columns, plain.columns)


def test_last_convolution_and_its_state_match_the_plain_one() -> None:
    for rows, steps, channels, clamps in ((3, 5, 40, False), (2, 50, 96, True), (1, 3, 16, False)):
        x, weight, bias = random(rows, steps, channels, seed=1), random(7, channels, scale=0.1, seed=2), random(1)
        mine = state(rows, 6, channels)
        plain = copy_of(mine)
        got = kernels.sound_conv(x, weight, bias, mine, clamps)
        assert close(got, twins.sound_conv_twin(x, weight, bias, plain, clamps))
        assert torch.equal(mine.columns, plain.columns)


def unit_of(channels: int, dilation: int, dtype: torch.dtype) -> Any:
    wide, narrow = random(channels, 7, channels, seed=3), random(channels, 1, channels, seed=4)
    snakes = []
    for seed in (5, 6):
        alpha = 0.2 + random(channels, seed=seed).abs()
        snakes.append(conv.SnakeGains(alpha, alpha.reciprocal()))
    weights = [conv.ConvWeights(weight.to(dtype), None, 0.5 / channels**0.5) for weight in (wide, narrow)]
    biases = random(channels, seed=7), random(channels, seed=8)
    return units.UnitWeights(weights[0], biases[0], snakes[0], weights[1], biases[1], snakes[1], dilation)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    ("rows", "steps", "channels", "dilation", "out"),
    [(3, 5, 48, 3, True), (2, 50, 32, 1, False), (1, 70, 96, 9, True), (2, 1, 16, 9, True)],
)
def test_residual_unit_and_its_state_match_the_plain_one(
    rows: int, steps: int, channels: int, dilation: int, out: bool, dtype: torch.dtype
) -> None:
    x, residual = random(rows, steps, channels, dtype=dtype, seed=1), random(rows, steps, channels, seed=2)
    unit = unit_of(channels, dilation, dtype)
    columns = random(5, 2, 6 * dilation, channels, dtype=dtype, seed=9)
    mine = conv.ConvState(columns, torch.tensor(SLOTS[:rows], device=DEVICE), torch.tensor(TURNS, device=DEVICE))
    plain = copy_of(mine)
    for tiles in (UNIT_TILES, units.UnitTiles(128, 16, 16, 8, 2, 128)):
        now = copy_of(mine)
        got = kernels.residual_unit(x, unit, residual, now, out, tiles)
        expected = twins.residual_unit_twin(x, unit, residual, plain, out)
        limit = 1e-5 if dtype == torch.float32 else 1e-3  # values in between are float16; the last bit may differ
        for a, b in zip(got, expected, strict=True):
            assert (a is None) == (b is None)
            assert a is None or (a.double() - b.double()).norm() <= limit * b.double().norm()
        assert torch.equal(now.columns, plain.columns)


def test_residual_unit_is_one_launch_if_it_fills_the_gpu_and_its_tiles_fit() -> None:
    limit = 227 * 1024
    assert units.pick_unit_tiles(1024, 192, limit) is None and units.pick_unit_tiles(10**6, 192, 40_000) is None
    many = units.pick_unit_tiles(10**6, 192, limit)
    assert many.shared(192) == many.stages * many.depth * (many.steps + 192) * 2
    assert units.pick_unit_tiles(10**6, 96, limit).registers < many.registers
    fitted = units.pick_unit_tiles(10**6, 48, limit)
    assert (fitted.depth, fitted.chunk) == (16, 16)
    assert [units.unit_parts(channels) for channels in (8, 24, 96, 112, 128, 192, 384)] == [
        None, None, (64, 32), None, (128, 0), (128, 64), None,
    ]  # fmt: skip


def test_intermediate_values_of_a_residual_unit_are_clipped() -> None:
    x = torch.zeros(1, 4, 16, device=DEVICE, dtype=torch.float16)
    x[0, 1, 2] = 6e4
    one = conv.SnakeGains(torch.ones(16, device=DEVICE), torch.ones(16, device=DEVICE))
    wide, narrow = torch.zeros(16, 7, 16, device=DEVICE).half(), torch.eye(16, device=DEVICE)[:, None].half()
    wide[:, 6] = 4 * torch.eye(16, device=DEVICE)
    bias, slot = torch.zeros(16, device=DEVICE), torch.zeros(1, dtype=torch.int64, device=DEVICE)
    unit = units.UnitWeights(conv.ConvWeights(wide), bias, one, conv.ConvWeights(narrow), bias, one, 1)
    held = conv.ConvState(torch.zeros(1, 2, 6, 16, device=DEVICE).half(), slot, slot)
    out, active = kernels.residual_unit(x, unit, torch.zeros(1, 4, 16, device=DEVICE), held, True, UNIT_TILES)
    assert out[0, 1, 2] == 65504 and active.isfinite().all()


def test_float16_clips_values_out_of_range() -> None:
    """An infinity would silence a stream for good."""
    x, bias = random(1, 4, 16, seed=1), torch.zeros(16, device=DEVICE)
    x[0, 1, 2] = 1e6
    eye = conv.ConvWeights(torch.eye(16, device=DEVICE)[:, None].half())
    one = conv.SnakeGains(torch.ones(16, device=DEVICE), torch.ones(16, device=DEVICE))
    out, active = kernels.conv(x, eye, bias, out=torch.float16, snake=(one, torch.float16))
    assert out[0, 1, 2] == 65504 and active[0, 1, 2] >= 65472
    assert out.isfinite().all() and active.isfinite().all()


@pytest.mark.parametrize("activation", ["none", "gelu", "silu_gate"])
def test_linear_layer_with_norm_and_activation_matches_the_plain_one(activation: str) -> None:
    x = random(2, 5, 48, seed=1)
    weights = conv.ConvWeights(random(50, 1, 48, scale=0.2, seed=2))
    how = {"norm_eps": 1e-5, "activation": activation, "out": torch.float32}
    bias = random(50, seed=3)
    assert close(kernels.conv(x, weights, bias, **how)[0], twins.conv_twin(x, weights, bias, **how)[0])


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_snake_is_accurate_for_small_and_large_inputs(size: float) -> None:
    x, one = random(1, 64, 16, scale=size), torch.ones(16, device=DEVICE)
    weights = conv.ConvWeights(torch.eye(16, device=DEVICE)[:, None])
    _, got = kernels.conv(x, weights, 0 * one, snake=(conv.SnakeGains(one, one), torch.float32))
    assert (got.double() - (x.double() + x.double().sin().square())).abs().max() <= 4e-7 * max(1.0, size)


def test_depthwise_convolution_with_norm_matches_the_plain_one() -> None:
    for steps in (2, 9):
        x = random(3, steps, 40, seed=1)
        mine = state(3, 6, 40)
        plain = copy_of(mine)
        how = random(7, 40, seed=2), random(40, seed=3), random(40, seed=4), random(40, seed=5), 1e-6
        got = kernels.depthwise_norm(x, *how, mine, torch.float32)
        assert close(got, twins.depthwise_norm_twin(x, *how, plain, torch.float32))
        assert torch.equal(mine.columns, plain.columns)


@pytest.mark.parametrize(
    ("steps", "heads", "head_dim", "window", "exact"),
    [(1, 2, 64, 128, False), (5, 3, 12, 7, True), (8, 1, 32, 4, False)],
)
def test_window_attention_and_its_ring_match_the_plain_one(
    steps: int, heads: int, head_dim: int, window: int, exact: bool
) -> None:
    shape = (5, window - 1 + steps, heads, head_dim)
    keys, values = random(*shape, seed=1), random(*shape, seed=2)
    plain_keys, plain_values = keys.clone(), values.clone()
    frequencies = 1e4 ** -torch.linspace(0, 1, head_dim // 2, device=DEVICE)
    slots, positions = torch.tensor(SLOTS, device=DEVICE), torch.tensor([3, 0, 1000, 0, 70_000], device=DEVICE)
    qkv = random(3, steps, 3, heads, head_dim, seed=3)
    how = slots, positions, window, exact
    got = kernels.window_attention(qkv, frequencies, keys, values, *how)
    plain = twins.window_attention_twin(qkv, frequencies, plain_keys, plain_values, *how)
    assert close(got, plain) and close(keys, plain_keys) and torch.equal(values, plain_values)


def test_code_lookup_and_clock_advance_match_the_plain_ones() -> None:
    table = random(16 + 8 + 8, 40)
    starts, sizes = torch.tensor([0, 16, 24], device=DEVICE), torch.tensor([16, 8, 8], device=DEVICE)
    codes = torch.randint(0, 12, (2, 3, 5), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    assert close(kernels.look_up(codes, table, starts, sizes), twins.look_up_twin(codes, table, starts, sizes))
    clocks = [torch.arange(5, device=DEVICE) for _ in range(4)]
    kernels.advance(torch.tensor(SLOTS, device=DEVICE), clocks[0], clocks[1], 8)
    twins.advance_twin(torch.tensor(SLOTS, device=DEVICE), clocks[2], clocks[3], 8)
    assert torch.equal(clocks[0], clocks[2]) and torch.equal(clocks[1], clocks[3])
    assert clocks[0].tolist() == [8, 1, 10, 3, 12] and clocks[1].tolist() == [1, 1, 3, 3, 5]


def test_wrong_shapes_are_refused() -> None:
    x, weights, bias = random(2, 5, 8), conv.ConvWeights(random(4, 7, 8)), random(4)
    with pytest.raises(ValueError, match="need a state of 6 columns of 8"):
        kernels.conv(x, weights, bias)
    with pytest.raises(ValueError, match="does not fit weights"):
        kernels.conv(x, conv.ConvWeights(random(4, 1, 9)), bias)
    with pytest.raises(ValueError, match="residual"):
        kernels.conv(x, conv.ConvWeights(random(4, 1, 8)), bias, residual=random(2, 5, 8))
    unit, slots = unit_of(16, 1, torch.float32), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    x = random(2, 5, 16)
    for wrong, columns, match in (
        (random(2, 5, 17), random(5, 2, 6, 17), "these no tile"), (x.half(), random(5, 2, 6, 16), "do not multiply"),
        (x, random(5, 2, 7, 16), "need a state of 6 columns of 16"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            kernels.residual_unit(wrong, unit, wrong, conv.ConvState(columns, slots, slots), True, UNIT_TILES)
    with pytest.raises(ValueError, match="ring of 6 is too small"):
        kernels.window_attention(
            random(1, 3, 3, 2, 8), random(4), random(5, 6, 2, 8), random(5, 6, 2, 8),
            torch.zeros(1, dtype=torch.int64, device=DEVICE), torch.zeros(5, dtype=torch.int64, device=DEVICE), 5,
        )  # fmt: skip

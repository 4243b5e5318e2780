"""Causal convolutions of streams as implicit GEMMs: time by channels, left context from each stream's own state.

y[r, t] = act(norm(Σ_j W[:, j] · x[r, t − (taps − 1 − j) · dilation]) · scale + bias) + residual, and snake(y) =
y + sin²(αy) / α (Ziyin et al. 2020), the next layer's activation, in the same launch. Implicit GEMM as in cuDNN
(Chetlur et al. 2014): a tile gathers its inputs tap by tap, and no unrolled copy is ever made.

A linear layer is a convolution of one tap; a transposed one whose kernel is twice its stride has two taps and
stride times the outputs, of which (steps, stride · channels) is (steps · stride, channels) in the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.kernels.conv_state import ConvState
from engine.kernels.conv_tiles import ConvTiles, pick_interpreter_tiles, pick_tiles
from engine.kernels.implicit_gemm import conv_kernel
from engine.kernels.launch import launch, shared_memory

Activation = Literal["none", "gelu", "silu_gate"]


@dataclass(frozen=True, slots=True)
class ConvWeights:
    """(outputs, taps, inputs), to be multiplied by scale; products use the type of high and are summed in float32.

    With low, the part of a weight that float16 lost in high, both factors are halves of eleven bits each: three
    products have about 22 bits (Ootomo & Yokota 2022), at twice the speed of three in TF32. Inputs beyond 65,504 are
    clipped.
    """

    high: Tensor
    low: Tensor | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class SnakeGains:
    """α and 1/β (outputs,) float32 of Snake, x + sin²(αx)/β."""

    alpha: Tensor
    inverse: Tensor


def conv(
    x: Tensor,
    weights: ConvWeights,
    bias: Tensor,
    state: ConvState | None = None,
    dilation: int = 1,
    norm_eps: float | None = None,
    activation: Activation = "none",
    residual: Tensor | None = None,
    out: torch.dtype | None = None,
    snake: tuple[SnakeGains, torch.dtype] | None = None,
    total: int | None = None,
    tiles: ConvTiles | None = None,
) -> tuple[Tensor | None, Tensor | None]:
    """x (rows, steps, inputs), after each row's state, by weights (outputs, taps, inputs) → (rows, steps, outputs).

    out: the type of the result, None if only its snake is needed; snake: the second result. The order is norm (x over
    its root mean square), product, bias (outputs,), activation, residual (rows, steps, outputs). silu_gate takes
    outputs in pairs gate, up and halves their number. The state advances by x, into its other half. total: steps of all
    rows together for which tiles are chosen; by default those of x.
    """
    rows, steps, inputs = x.shape
    outputs, taps, depth = weights.high.shape
    context = (taps - 1) * dilation
    if depth != inputs or len(bias) != outputs or not (x.is_contiguous() and weights.high.is_contiguous()):
        raise ValueError(f"x {tuple(x.shape)} does not fit weights {tuple(weights.high.shape)} or {len(bias)} biases")
    if state:
        state.check(context, x)
    elif context:
        raise ValueError(f"the taps need a state of {context} columns of {inputs}")
    wide = outputs // 2 if activation == "silu_gate" else outputs
    if residual is not None and (residual.shape != (rows, steps, outputs) or not residual.is_contiguous()):
        raise ValueError(f"residual {tuple(residual.shape)} is not {(rows, steps, outputs)}")
    result = None if out is None else torch.empty(rows, steps, wide, device=x.device, dtype=out)
    active = None if snake is None else torch.empty(rows, steps, wide, device=x.device, dtype=snake[1])
    tiles = tiles or _tiles(x, weights, total)
    programs = tiles.programs(rows * steps, outputs)
    state_programs = state.state_programs if state else 0
    launch(
        conv_kernel, (programs + state_programs,),
        x, weights.high, _or(weights.low, x), bias, snake[0].alpha if snake else x,
        snake[0].inverse if snake else x, _or(residual, x), _or(result, x), _or(active, x),
        state.columns if state else x, state.slots if state else x, state.turns if state else x,
        rows, steps, inputs, outputs, taps, dilation, context, state.columns.stride(0) if state else 0,
        programs, state_programs, norm_eps or 0.0, weights.scale,
        HAS_STATE=state is not None, HAS_LOW=weights.low is not None,
        HAS_NORM=norm_eps is not None, HAS_RESIDUAL=residual is not None, HAS_OUT=out is not None,
        HAS_SNAKE=snake is not None, ACTIVATION=activation,
        EVEN=inputs % tiles.depth == 0, BLOCK_M=tiles.steps, BLOCK_N=tiles.outputs, BLOCK_K=tiles.depth,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    return result, active


def _or(tensor: Tensor | None, other: Tensor) -> Tensor:
    return other if tensor is None else tensor


def _tiles(x: Tensor, weights: ConvWeights, total: int | None) -> ConvTiles:
    (rows, steps, inputs), (outputs, taps, _) = x.shape, weights.high.shape
    if x.device.type == "cpu":
        return pick_interpreter_tiles(rows * steps, outputs, inputs)
    nbytes = x.itemsize, weights.high.itemsize + (0 if weights.low is None else weights.low.itemsize)
    return pick_tiles(
        total or rows * steps, outputs, taps, inputs, nbytes, weights.low is not None, shared_memory(x.device)
    )

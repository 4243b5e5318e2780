"""The codec's layers as launches of fused kernels, their state, and what all layers of a stack share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.codec.codec_config import Precision
from engine.codec.codec_layers import ResidualUnit, Snake
from engine.fused.codec_products import Product, as_product, conv_weights, snake_of
from engine.kernels.codebooks import advance
from engine.kernels.conv import Activation, conv
from engine.kernels.conv_state import ConvState
from engine.kernels.conv_tiles import unit_parts
from engine.kernels.residual_unit import UnitWeights, residual_unit, unit_tiles

ACTIVATION_DTYPES = {"float32": torch.float32, "tf32": torch.float16, "bfloat16": torch.bfloat16}
"""The dtype of activations between layers; sums are float32. TF32 has the eleven bits of float16, which is twice as
fast and half as large; the range that float16 lacks is not needed here."""

_ALIGNMENT = 256


class LayerSetup:
    """Shared by all layers of a stack: the dtypes, and in each slot a stream's state and its clock.

    Layers reserve their columns one by one; then memory is allocated for all layers and slots at once.
    """

    def __init__(self, precision: Precision) -> None:
        self.precision = precision
        self.activation_dtype = ACTIVATION_DTYPES[precision]
        """The dtype of activations between layers; the few of the transformer's residual stream stay in float32."""
        self._layouts: list[tuple[int, int, int, torch.dtype]] = []  # offset in bytes, context, channels, type
        self.bytes_per_slot = 0

    def reserve(self, context: int, channels: int, dtype: torch.dtype) -> int:
        """Reserve `context` columns, twice, as one half is read while the other is written; returns the layer's
        number."""
        self._layouts.append((self.bytes_per_slot, context, channels, dtype))
        size = 2 * context * channels * dtype.itemsize
        self.bytes_per_slot += -(-size // _ALIGNMENT) * _ALIGNMENT
        return len(self._layouts) - 1

    def allocate(self, slots: int, device: torch.device) -> None:
        self._memory = torch.zeros(slots, self.bytes_per_slot, dtype=torch.uint8, device=device)
        self.positions, self.turns = torch.zeros(2, slots, dtype=torch.int64, device=device)
        """The frames, and the chunks, that the stream in each slot has had."""

    def columns(self, number: int) -> Tensor:
        """The layer's (slots, 2, context, channels)."""
        start, context, channels, dtype = self._layouts[number]
        size = 2 * context * channels * dtype.itemsize
        return self._memory[:, start : start + size].view(dtype).unflatten(1, (2, context, channels))

    def clear(self, slots: int | slice) -> None:
        """Start new streams in these slots."""
        for part in (self._memory, self.positions, self.turns):
            part[slots].zero_()


@dataclass(frozen=True, slots=True)
class StreamSlots:
    """The slots (rows,) of a call."""

    setup: LayerSetup
    slots: Tensor

    def state(self, number: int) -> ConvState:
        return ConvState(self.setup.columns(number), self.slots, self.setup.turns)

    def advance(self, frames: int) -> None:
        """Advance the clocks at the end of a call, by a turn and these frames."""
        advance(self.slots, self.setup.positions, self.setup.turns, frames)


class FusedConv:
    """A product with fused operations: norm before; activation, residual and the next layer's Snake after."""

    def __init__(
        self,
        product: Product,
        setup: LayerSetup,
        *,
        reads: torch.dtype | None = None,
        norm_eps: float | None = None,
        activation: Activation = "none",
        adds: bool = False,
        result: torch.dtype | None = torch.float32,
        snake: Snake | None = None,
        total: int | None = None,
    ) -> None:
        """``total``: steps for which tiles are chosen, so that the actual number has no effect; None: the actual
        number."""
        self.weights = conv_weights(product.weight, setup.precision)
        self.bias = product.weight.new_zeros(len(product.weight)) if product.bias is None else product.bias
        self.stride, self.folds, self.dilation, self.total = product.stride, product.folds, product.dilation, total
        self.number = None
        if product.context:
            self.number = setup.reserve(product.context, product.weight.shape[2], reads or setup.activation_dtype)
        self.norm_eps, self.activation, self.adds, self.result = norm_eps, activation, adds, result
        self.snake = None if snake is None else (snake_of(snake, self.stride), setup.activation_dtype)

    def __call__(
        self, x: Tensor, streams: StreamSlots | None, base: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """x (rows, steps, inputs) → the result and its Snake, each (rows, steps · stride / folds, channels) or None."""
        x = x if self.folds == 1 else x.view(x.shape[0], x.shape[1] // self.folds, -1)
        state = None if self.number is None or streams is None else streams.state(self.number)
        result, active = conv(
            x, self.weights, self.bias, state, self.dilation, self.norm_eps, self.activation,
            base if self.adds else None, self.result, self.snake, self.total,
        )  # fmt: skip
        return self._unfolded(result), self._unfolded(active)

    def only(self, x: Tensor, streams: StreamSlots | None, base: Tensor | None = None) -> Tensor:
        """Only the result, without its Snake."""
        result, _ = self(x, streams, base)
        assert result is not None
        return result

    def _unfolded(self, x: Tensor | None) -> Tensor | None:
        """Views outputs that hold several steps as steps, in the same memory."""
        return x if x is None or self.stride == 1 else x.view(x.shape[0], x.shape[1] * self.stride, -1)


class FusedUnit:
    """Both convolutions of a residual unit: one launch if there are enough steps, else one each."""

    def __init__(self, wide: FusedConv, narrow: FusedConv) -> None:
        assert wide.snake and narrow.snake and wide.number is not None
        self.wide, self.narrow, self.number = wide, narrow, wide.number
        self.weights = UnitWeights(
            wide.weights, wide.bias, wide.snake[0], narrow.weights, narrow.bias, narrow.snake[0], wide.dilation
        )

    def __call__(self, x: Tensor, streams: StreamSlots, base: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """x (rows, steps, channels), already activated, and the base to add to → the result and its Snake."""
        if tiles := unit_tiles(x):
            out = self.narrow.result is not None
            return residual_unit(x, self.weights, base, streams.state(self.number), out, tiles)
        _, active = self.wide(x, streams)
        assert active is not None
        return self.narrow(active, streams, base)


Layer = FusedConv | FusedUnit


def run_layers(layers: Iterable[Layer], x: Tensor, streams: StreamSlots) -> tuple[Tensor, Tensor]:
    """x through these layers in order: the last result, to which the next residual is added, and x."""
    base = x
    for layer in layers:
        result, active = layer(x, streams, base)
        base, x = base if result is None else result, x if active is None else active
    return base, x


def residual_units(
    units: Iterable[ResidualUnit], end: Snake, setup: LayerSetup, total: int | None = None
) -> list[Layer]:
    """Both convolutions of each unit, whose input is already activated; `end` is the Snake after the last one."""
    blocks: list[Any] = [unit.block for unit in units]
    layers: list[Layer] = []
    for (_, wide, snake, narrow), following in zip(blocks, [*(block[0] for block in blocks[1:]), end], strict=True):
        first = FusedConv(as_product(wide), setup, result=None, snake=snake, total=total)
        result = None if following is end else setup.activation_dtype  # nothing is added to the last sum
        second = FusedConv(as_product(narrow), setup, adds=True, result=result, snake=following, total=total)
        whole = setup.precision != "float32" and unit_parts(narrow.conv.in_channels)
        layers += [FusedUnit(first, second)] if whole else [first, second]
    return layers

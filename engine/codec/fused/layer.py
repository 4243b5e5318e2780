"""A layer of the codec as one launch of a fused kernel, and what all layers of a decoder or an encoder share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.codec.config import Precision
from engine.codec.fused.conv_states import Pasts
from engine.codec.fused.products import Product, laid_out, product_of, snake_of
from engine.codec.layers import ResidualUnit
from engine.codec.layers import Snake as PlainSnake
from engine.kernels.codec.conv import Activation, conv
from engine.kernels.codec.conv_state import Past

KINDS = {"float32": torch.float32, "tf32": torch.float16, "bfloat16": torch.bfloat16}
"""What activations are kept in that only go into a product. TF32 has the eleven bits of float16, which is twice as fast
and half as large; the range that float16 lacks is not needed here."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Which slots a call is about, and what they remember."""

    pasts: Pasts
    slots: Tensor
    positions: Tensor
    turns: Tensor

    def past(self, number: int) -> Past:
        """That of the layer of this number."""
        return Past(self.pasts.columns(number), self.slots, self.turns)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types and memory that all layers share."""

    pasts: Pasts
    precision: Precision

    @property
    def between(self) -> torch.dtype:
        """Of activations that only go into a product; sums stay in float32."""
        return KINDS[self.precision]


class Layer:
    """A product and what is fused with it: norm before; activation, residual and the next layer's Snake after."""

    def __init__(
        self,
        product: Product,
        kinds: Kinds,
        *,
        reads: torch.dtype | None = None,
        norm_eps: float | None = None,
        activation: Activation = "none",
        adds: bool = False,
        result: torch.dtype | None = torch.float32,
        snake: PlainSnake | None = None,
        total: int | None = None,
    ) -> None:
        """``total``: steps for which tiles are chosen, so that their number changes nothing; None: as many as come."""
        self.weights = laid_out(product.weight, kinds.precision)
        self.bias = product.weight.new_zeros(len(product.weight)) if product.bias is None else product.bias
        self.stride, self.folds, self.dilation, self.total = product.stride, product.folds, product.dilation, total
        self.number = None
        if product.context:
            self.number = kinds.pasts.reserve(product.context, product.weight.shape[2], reads or kinds.between)
        self.norm_eps, self.activation, self.adds, self.result = norm_eps, activation, adds, result
        self.snake = None if snake is None else (snake_of(snake, self.stride), kinds.between)

    def __call__(
        self, x: Tensor, streams: Streams | None, base: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """x (rows, steps, inputs) → the result and its Snake, each (rows, steps · stride / folds, channels) or None."""
        x = x if self.folds == 1 else x.view(x.shape[0], x.shape[1] // self.folds, -1)
        past = None if self.number is None or streams is None else streams.past(self.number)
        result, active = conv(
            x, self.weights, self.bias, past, self.dilation, self.norm_eps, self.activation,
            base if self.adds else None, self.result, self.snake, self.total,
        )  # fmt: skip
        return self._unfolded(result), self._unfolded(active)

    def only(self, x: Tensor, streams: Streams | None, base: Tensor | None = None) -> Tensor:
        """The result alone."""
        result, _ = self(x, streams, base)
        assert result is not None
        return result

    def _unfolded(self, x: Tensor | None) -> Tensor | None:
        """Outputs that hold several steps, as steps: memory stays as it is."""
        return x if x is None or self.stride == 1 else x.view(x.shape[0], x.shape[1] * self.stride, -1)


def through(layers: Iterable[Layer], x: Tensor, streams: Streams) -> tuple[Tensor, Tensor]:
    """x through these layers, each after the one before: the last result, which the next residual adds to, and x."""
    base = x
    for layer in layers:
        result, active = layer(x, streams, base)
        base, x = base if result is None else result, x if active is None else active
    return base, x


def residual_units(
    units: Iterable[ResidualUnit], end: PlainSnake, kinds: Kinds, total: int | None = None
) -> list[Layer]:
    """Both convolutions of each unit, whose input is active already; `end` is the Snake after the last one."""
    blocks: list[Any] = [unit.block for unit in units]
    layers = []
    for (_, wide, snake, narrow), following in zip(blocks, [*(block[0] for block in blocks[1:]), end], strict=True):
        layers.append(Layer(product_of(wide), kinds, result=None, snake=snake, total=total))
        result = None if following is end else torch.float32  # nothing adds to the last sum
        layers.append(Layer(product_of(narrow), kinds, adds=True, result=result, snake=following, total=total))
    return layers

"""The codec's layers as matrix products: weights (outputs, taps, inputs), gains and scales multiplied in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import Precision
from engine.codec.codec_layers import CausalConv1d, CausalConvTranspose1d, Snake
from engine.kernels.conv import ConvWeights, SnakeGains


@dataclass(frozen=True, slots=True)
class Product:
    """out[t] = Σ weight[:, j] · x[t − (taps − 1 − j) · dilation] + bias.

    stride: steps per output; folds: steps per input.
    """

    weight: Tensor
    bias: Tensor | None = None
    stride: int = 1
    dilation: int = 1
    folds: int = 1

    @property
    def context(self) -> int:
        return (self.weight.shape[1] - 1) * self.dilation

    def of_normed(self, gain: Tensor) -> Product:
        """The same for inputs that are first multiplied by gains (inputs,)."""
        return replace(self, weight=self.weight * gain.detach())

    def then(self, layer: nn.Linear) -> Product:
        """The same with this layer after it."""
        weight = layer.weight.detach()
        assert self.bias is not None
        return replace(
            self, weight=(weight @ self.weight.flatten(1)).unflatten(1, self.weight.shape[1:]), bias=layer(self.bias)
        )

    def scaled(self, gain: Tensor) -> Product:
        """The same with outputs multiplied by gains (outputs,)."""
        gain = gain.detach()
        bias = None if self.bias is None else self.bias * gain
        return replace(self, weight=self.weight * gain[:, None, None], bias=bias)


def as_product(layer: nn.Module) -> Product:
    """A linear, causal or transposed layer's product, sharing its memory where no copy is needed."""
    if isinstance(layer, nn.Linear):
        return Product(layer.weight.detach()[:, None], _detached(layer.bias))
    if isinstance(layer, CausalConv1d):
        if layer.conv.stride[0] > 1:
            return _strided(layer)
        weight = layer.conv.weight.detach().transpose(1, 2)
        return Product(weight, _detached(layer.conv.bias), dilation=layer.conv.dilation[0])
    if isinstance(layer, CausalConvTranspose1d):
        return _transposed(layer)
    raise TypeError(f"{type(layer).__name__} is not a product")


def _strided(layer: CausalConv1d) -> Product:
    """An input is as many adjacent steps as the stride has; the kernel is padded with zeros at its start."""
    weight, stride = layer.conv.weight.detach(), layer.conv.stride[0]
    outputs, inputs, kernel = weight.shape
    weight = F.pad(weight, (-kernel % stride, 0)).transpose(1, 2)
    return Product(weight.reshape(outputs, -1, stride * inputs), _detached(layer.conv.bias), folds=stride)


def _transposed(layer: CausalConvTranspose1d) -> Product:
    """All `stride` outputs of a step side by side; the later part of the kernel applies to the earlier input."""
    weight, stride, taps = layer.conv.weight.detach(), layer.stride, layer.context + 1
    inputs, outputs, kernel = weight.shape
    parts = F.pad(weight, (0, taps * stride - kernel)).view(inputs, outputs, taps, stride).flip(2)
    bias = _detached(layer.conv.bias)
    return Product(
        parts.permute(3, 1, 2, 0).reshape(stride * outputs, taps, inputs),
        None if bias is None else bias.repeat(stride),
        stride,
    )


def snake_of(layer: Snake, times: int) -> SnakeGains:
    """A Snake for outputs that hold `times` steps each."""
    alpha, inverse = (part.detach().flatten().float().repeat(times) for part in (layer.alpha, layer.inverse))
    return SnakeGains(alpha, inverse)


def conv_weights(weight: Tensor, precision: Precision) -> ConvWeights:
    """Weights (outputs, taps, inputs) in the layout of a precision."""
    weight = weight.float().contiguous()
    if precision == "bfloat16":
        return ConvWeights(weight.bfloat16())
    halves = split_float16(weight)
    return replace(halves, low=None) if precision == "tf32" else halves


def split_float16(weight: Tensor) -> ConvWeights:
    """Weights as two halves; a power of two brings the largest near 2^14, so that the low half loses nothing."""
    power = 14 - math.frexp(float(weight.abs().max()) or 1.0)[1]
    scaled = weight * 2.0**power
    high = scaled.half()
    return ConvWeights(high, (scaled - high.float()).half(), 2.0**-power)


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()

"""The codec's convolution stacks as two-dimensional, channels-last convolutions: the same results, faster to train."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_layers import CausalConv1d, CausalConvTranspose1d, ResidualUnit, Snake, Stack, Stateful
from engine.codec.model import Decoder, DecoderBlock, Encoder, EncoderBlock


def through_images(stack: Stateful, x: Tensor) -> Tensor:
    """The result of stack(x), for x (rows, channels, steps)."""
    return _run(stack, x.unsqueeze(2).contiguous(memory_format=torch.channels_last)).squeeze(2)


def _run(module: nn.Module, x: Tensor) -> Tensor:
    """x (rows, channels, 1, steps)."""
    if isinstance(module, Stack):
        for part in module:
            x = _run(part, x)
        return x
    if isinstance(module, (Encoder, EncoderBlock, DecoderBlock)):
        return _run(module.block, x)
    if isinstance(module, Decoder):
        return _run(module.model, x)
    if isinstance(module, ResidualUnit):
        return x + _run(module.block, x)
    if isinstance(module, Snake):
        alpha = module.alpha.unsqueeze(2)
        return x + (alpha + 1e-9).reciprocal() * torch.sin(alpha * x).pow(2)
    if isinstance(module, CausalConv1d):
        conv = module.conv
        padded = F.pad(x, (module.context, 0))
        weight = conv.weight.unsqueeze(2)
        return F.conv2d(padded, weight, conv.bias, (1, conv.stride[0]), 0, (1, conv.dilation[0]))
    if isinstance(module, CausalConvTranspose1d):
        weight = module.conv.weight.unsqueeze(2)
        wide = F.conv_transpose2d(x, weight, module.conv.bias, (1, module.stride))
        return wide[..., : x.shape[-1] * module.stride]
    if isinstance(module, nn.Tanh):
        return module(x)
    raise TypeError(f"{type(module).__name__} has no form for images")

"""The codec's convolutional layers, all causal, under upstream's names (`modded_dac`, `rvq`); weight norm is folded."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.stream import Stack, Stateful, StreamState


class CausalConv1d(Stateful):
    """A convolution that sees only the past: left context kernel − stride (dilated), none on the right.

    Input lengths are whole multiples of the stride.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, dilation=dilation, groups=groups)
        self.context = (kernel - 1) * dilation + 1 - stride

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        if state is None:
            return self.conv(F.pad(x, (self.context, 0)))
        return self.conv(state.extend(self, "tail", x, self.context, dim=2))


class CausalConvTranspose1d(Stateful):
    """An upsampling convolution; outputs that would need the next input are dropped, as upstream does."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        self.stride = stride
        self.context = -(-kernel // stride) - 1  # input columns whose output reaches into the next one's

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        skip = 0
        samples = x.shape[-1] * self.stride
        if state is not None:
            x = state.extend(self, "tail", x, self.context, dim=2)
            skip = self.context * self.stride
        return self.conv(x)[..., skip : skip + samples]


class Snake(nn.Module):
    """x + sin²(αx)/α, a periodic activation (Liu et al. 2020, as DAC uses it)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)


class ResidualUnit(Stateful):
    """Snake, dilated 7-tap convolution, Snake, 1-tap convolution, and the input added."""

    def __init__(self, dim: int, dilation: int) -> None:
        super().__init__()
        self.block = Stack(
            Snake(dim),
            CausalConv1d(dim, dim, 7, dilation=dilation),
            Snake(dim),
            CausalConv1d(dim, dim, 1),
        )

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        return x + self.block(x, state)


class ConvNeXtBlock(Stateful):
    """Depthwise 7-tap convolution, LayerNorm, a 4× wider GELU layer, scaled by gamma, and the input added."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dwconv = CausalConv1d(dim, dim, 7, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 4 * dim)
        self.pwconv2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(torch.full((dim,), 1e-6))

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        y = self.norm(self.dwconv(x, state).transpose(1, 2))
        y = self.gamma * self.pwconv2(F.gelu(self.pwconv1(y)))
        return x + y.transpose(1, 2)

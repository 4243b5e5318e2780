"""The codec's causal convolutions with upstream's names (`modded_dac`, `rvq`), and their state between chunks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Stateful(nn.Module):
    """A layer with left context: `forward(x, state)` continues a stream, `forward(x)` takes x as the whole."""


class Stack(nn.Sequential, Stateful):
    """Layers in order, which passes the stream's state to those that are stateful."""

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        for layer in self:
            x = layer(x, state) if isinstance(layer, Stateful) else layer(x)
        return x


class StreamState:
    """The left context of every stateful layer, for `rows` streams that advance together.

    Buffers are created at a layer's first call, as zeros like a fresh stream's past.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._buffers: dict[tuple[nn.Module, str], Tensor] = {}

    def past(self, layer: nn.Module, name: str, shape: tuple[int, ...], dtype: torch.dtype, like: Tensor) -> Tensor:
        """The layer's buffer (rows, *shape), on like's device; zeros on first use."""
        key = (layer, name)
        if key not in self._buffers:
            self._buffers[key] = torch.zeros((self.rows, *shape), dtype=dtype, device=like.device)
        return self._buffers[key]

    def keep(self, layer: nn.Module, name: str, value: Tensor) -> None:
        self._buffers[layer, name].copy_(value)

    def extend(self, layer: nn.Module, name: str, x: Tensor, columns: int, dim: int) -> Tensor:
        """Prepend the last `columns` of this layer's earlier input to x along dim, and store x's own last ones."""
        if columns == 0:
            return x
        shape = list(x.shape)
        shape[dim] = columns
        joined = torch.cat([self.past(layer, name, tuple(shape[1:]), x.dtype, x), x], dim)
        self.keep(layer, name, joined.narrow(dim, joined.shape[dim] - columns, columns))
        return joined


class CausalConv1d(Stateful):
    """A causal convolution: left context kernel − stride (dilated), none on the right.

    Input lengths are whole multiples of the stride.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, stride=stride, dilation=dilation, groups=groups)
        self.context = (kernel - 1) * dilation + 1 - stride
        self.by_products = False
        """Whether a stream's columns go through `_by_products`."""

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        if state is None:
            return self.conv(F.pad(x, (self.context, 0)))
        x = state.extend(self, "tail", x, self.context, dim=2)
        return _by_products(self.conv, x) if self.by_products else self.conv(x)

    def use_products(self) -> None:
        """Arrange each tap's weights for `_by_products`, and use that where it supports this layer."""
        conv = self.conv
        if conv.groups == 1 and conv.stride == (1,):
            conv.weight.data = conv.weight.data.permute(2, 0, 1).contiguous().permute(1, 2, 0)
            self.by_products = True


class CausalConvTranspose1d(Stateful):
    """An upsampling convolution; outputs that need the next input are dropped, as upstream does."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(inputs, outputs, kernel, stride=stride)
        self.stride = stride
        self.context = -(-kernel // stride) - 1  # input columns whose output overlaps the next one's
        self.by_products = False

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        skip = 0
        samples = x.shape[-1] * self.stride
        if state is not None:
            x = state.extend(self, "tail", x, self.context, dim=2)
            if self.by_products:
                return self._by_one_product(x)
            skip = self.context * self.stride
        return self.conv(x)[..., skip : skip + samples]

    def use_products(self) -> None:
        """Use `_by_one_product` for a stream's columns, where it supports this layer."""
        self.by_products = self.conv.kernel_size[0] % self.stride == 0

    def _by_one_product(self, x: Tensor) -> Tensor:
        """The outputs after the context, (rows, outputs, samples): the inputs' shares by one product, then added up.

        Torch's transposed convolution takes twice as long on a CPU for a stream's few columns.
        """
        weight, context = self.conv.weight, self.context
        shares = weight.flatten(1).t() @ x
        shares = shares.unflatten(1, (weight.shape[1], context + 1, self.stride))
        total = shares[:, :, 0, :, context:]
        for distance in range(1, context + 1):
            total = total + shares[:, :, distance, :, context - distance : -distance]
        assert self.conv.bias is not None
        return total.transpose(2, 3).flatten(2).add_(self.conv.bias[:, None])


def _by_products(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """conv of x (rows, inputs, columns) as one product per tap.

    On a CPU torch unrolls few columns into a copy, channel by channel if the convolution is dilated: for one frame
    that takes up to four times as long.
    """
    (dilation,), weight = conv.dilation, conv.weight
    assert conv.bias is not None
    rows, columns = len(x), x.shape[2] - (weight.shape[2] - 1) * dilation
    y = conv.bias[:, None].expand(rows, -1, columns)
    for tap in range(weight.shape[2]):
        window, factor = x[:, :, tap * dilation : tap * dilation + columns], weight[:, :, tap].expand(rows, -1, -1)
        y = torch.baddbmm(y, factor, window) if tap == 0 else y.baddbmm_(factor, window)
    return y


class Snake(nn.Module):
    """x + sin²(αx)/β, a periodic activation (Liu et al. 2020): β is α, as in DAC, or a parameter of its own."""

    beta: nn.Parameter | None

    def __init__(self, channels: int, has_beta: bool = False) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))
        self.register_parameter("beta", nn.Parameter(torch.ones(1, channels, 1)) if has_beta else None)

    @property
    def inverse(self) -> Tensor:
        """1/β (1, channels, 1)."""
        return ((self.alpha if self.beta is None else self.beta) + 1e-9).reciprocal()

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return x + self.inverse * torch.sin(self.alpha * x).pow(2)
        y = self.alpha * x  # in place, with the same result
        return y.sin_().square_().mul_(self.inverse).add_(x)


class ResidualUnit(Stateful):
    """Two convolutions, an activation before each, and the input added."""

    def __init__(self, *block: nn.Module) -> None:
        super().__init__()
        self.block = Stack(*block)

    @classmethod
    def dilated(cls, dim: int, dilation: int, has_beta: bool = False) -> ResidualUnit:
        """Snake, dilated 7-tap convolution, Snake, 1-tap convolution."""
        first, second = Snake(dim, has_beta), Snake(dim, has_beta)
        return cls(first, CausalConv1d(dim, dim, 7, dilation=dilation), second, CausalConv1d(dim, dim, 1))

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

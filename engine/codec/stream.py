"""What a causal stack remembers between chunks: one buffer a stateful layer, rows first."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Stateful(nn.Module):
    """A layer that looks back: `forward(x, state)` continues a stream, `forward(x)` takes x as the whole."""


class Stack(nn.Sequential, Stateful):
    """Layers in order, handing the stream's state to those that look back."""

    def forward(self, x: Tensor, state: StreamState | None = None) -> Tensor:
        for layer in self:
            x = layer(x, state) if isinstance(layer, Stateful) else layer(x)
        return x


class StreamState:
    """The left context of every stateful layer, for `rows` streams that advance together.

    Buffers are made at a layer's first call, zero as a fresh stream's past is.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._buffers: dict[tuple[nn.Module, str], Tensor] = {}

    def past(self, layer: nn.Module, name: str, shape: tuple[int, ...], dtype: torch.dtype, like: Tensor) -> Tensor:
        """What this layer kept (rows, *shape), on like's device; zeros on first use."""
        key = (layer, name)
        if key not in self._buffers:
            self._buffers[key] = torch.zeros((self.rows, *shape), dtype=dtype, device=like.device)
        return self._buffers[key]

    def keep(self, layer: nn.Module, name: str, value: Tensor) -> None:
        """Replace what this layer kept."""
        self._buffers[layer, name].copy_(value)

    def extend(self, layer: nn.Module, name: str, x: Tensor, columns: int, dim: int) -> Tensor:
        """Put the last `columns` of this layer's earlier input in front of x along dim, and remember x's own last."""
        if columns == 0:
            return x
        shape = list(x.shape)
        shape[dim] = columns
        joined = torch.cat([self.past(layer, name, tuple(shape[1:]), x.dtype, x), x], dim)
        self.keep(layer, name, joined.narrow(dim, joined.shape[dim] - columns, columns))
        return joined

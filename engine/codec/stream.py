"""The state of a causal stack between chunks: one buffer per stateful layer, rows first."""

from __future__ import annotations

import torch
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
        """Replace the layer's buffer."""
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

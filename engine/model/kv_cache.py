"""The KV cache: keys and values of all rows of a transformer in slots, and attention over them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.config import TransformerSizes
from engine.model.dual_ar import attention


class KVCache:
    """Keys and values (layers, slots, context, kv_heads, head_dim) of one transformer.

    spare: one extra slot, the last, with memory only for its position 0. Its other positions overlap the next layer's
    first slot (or, after the last layer, unused memory): they are never written, and attention over a slot's whole
    context masks them like any future position.
    """

    def __init__(
        self,
        sizes: TransformerSizes,
        slots: int,
        context: int,
        device: torch.device,
        dtype: torch.dtype,
        spare: bool = False,
    ) -> None:
        shape = (sizes.n_layer, slots + spare, context, sizes.n_kv_head, sizes.head_dim)
        position = sizes.n_kv_head * sizes.head_dim
        strides = ((slots * context + spare) * position, context * position, position, sizes.head_dim, 1)
        values = self.nbytes(sizes, slots, context, dtype, spare) // 2 // dtype.itemsize
        self.keys, self.values = (_zeros(values, device, dtype).as_strided(shape, strides) for _ in range(2))

    def span(self, slots: slice, start: int) -> Span:
        """Several steps from `start` on, the same for all these slots: a prefill, or a frame of the fast AR."""
        return Span(self, slots, start)

    def steps(self, slots: list[int], positions: list[int]) -> Steps:
        """One step for each of these slots, each at its own position."""
        return Steps(self, slots, positions)

    @staticmethod
    def nbytes(sizes: TransformerSizes, slots: int, context: int, dtype: torch.dtype, spare: bool = False) -> int:
        """Bytes of such a cache, keys and values together."""
        positions = sizes.n_layer * (slots * context + spare) + spare * (context - 1)
        return 2 * positions * sizes.n_kv_head * sizes.head_dim * dtype.itemsize


def _zeros(values: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """On a CPU, memory that is taken only when it is written; torch's own zeros are written."""
    if device.type != "cpu":
        return torch.zeros(values, device=device, dtype=dtype)
    return torch.from_numpy(np.zeros(values * dtype.itemsize, np.uint8)).view(dtype)


class Span:
    """KeyValues of consecutive steps with the same start."""

    def __init__(self, cache: KVCache, slots: slice, start: int) -> None:
        self._cache, self._slots, self._start = cache, slots, start

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        start, end = self._start, self._start + q.shape[1]
        keys, values = self._cache.keys[layer, self._slots], self._cache.values[layer, self._slots]
        keys[:, start:end], values[:, start:end] = k, v
        mask = None
        if start > 0 and end - start > 1:
            mask = torch.ones(end - start, end, dtype=torch.bool, device=q.device).tril(start)
        return attention(q, keys[:, :end], values[:, :end], mask, causal=start == 0 and end > 1)


class Steps:
    """KeyValues of one step per row. Each row attends only to its own keys, so it reads nothing of its neighbours."""

    def __init__(self, cache: KVCache, slots: list[int], positions: list[int]) -> None:
        self._cache, self._rows = cache, list(zip(slots, positions, strict=True))

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        outputs = []
        for row, (slot, position) in enumerate(self._rows):
            keys, values = self._cache.keys[layer, slot], self._cache.values[layer, slot]
            keys[position], values[position] = k[row, 0], v[row, 0]
            end = position + 1
            outputs.append(attention(q[row : row + 1], keys[None, :end], values[None, :end]))
        return torch.cat(outputs)

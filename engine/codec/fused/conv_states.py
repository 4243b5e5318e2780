"""The convolution state of every layer and stream of a fused decoder or encoder, in one block of memory."""

from __future__ import annotations

import torch
from torch import Tensor

_ALIGNMENT = 256


class ConvStates:
    """Layers reserve their columns one by one; then memory is allocated for all layers and slots at once."""

    def __init__(self) -> None:
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

    def columns(self, number: int) -> Tensor:
        """The layer's (slots, 2, context, channels)."""
        start, context, channels, dtype = self._layouts[number]
        size = 2 * context * channels * dtype.itemsize
        return self._memory[:, start : start + size].view(dtype).unflatten(1, (2, context, channels))

    def clear(self, slot: int | slice) -> None:
        self._memory[slot].zero_()

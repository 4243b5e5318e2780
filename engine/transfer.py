"""Tensors between the host's memory and a GPU, through page-locked memory alone.

A copy from or to other memory waits inside the driver for all that its stream has to do, and other threads' copies wait
with it. And page-locked memory that is made while the device works waits for everybody's work (CUDA C++ Programming
Guide, "Implicit Synchronization"): so torch is given a reserve of it before anybody speaks.
"""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Tensor

PIECE = 32 * 2**20
"""Bytes of a thread's buffer."""
AT_ONCE, LARGE, LARGE_AT_ONCE = 16, 2**18, 3
"""Pieces of each size that are under way at the same time, and those above so many bytes."""


class Uploader:
    """To one device; any thread may call it.

    CUDA copies pageable memory piece by piece in the calling thread, one call at a time: 6 GB/s to an H100, whose link
    moves 50. Four threads with buffers of their own bring S2 Pro's 9 GB there in 0.3 s.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._own = threading.local()

    def __call__(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """A copy on the device in this type, complete on return."""
        if self._device.type != "cuda":
            return tensor.to(self._device, dtype)
        with torch.cuda.device(self._device):
            return self._copied(tensor.contiguous(), dtype)

    def _copied(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        whole, stream = self._buffer_and_stream()
        buffer = whole.view(dtype)
        made = torch.empty(tensor.shape, dtype=dtype, device=self._device)
        stream.wait_stream(torch.cuda.current_stream())  # whose memory this was
        with torch.cuda.stream(stream):
            for piece, to in zip(tensor.view(-1).split(len(buffer)), made.view(-1).split(len(buffer)), strict=True):
                part = buffer[: len(piece)]
                part.copy_(piece)
                to.copy_(part, non_blocking=True)
                stream.synchronize()
        return made

    def _buffer_and_stream(self) -> tuple[Tensor, torch.cuda.Stream]:
        if not hasattr(self._own, "both"):
            self._own.both = torch.empty(PIECE, dtype=torch.uint8, pin_memory=True), torch.cuda.Stream()
        both: tuple[Tensor, torch.cuda.Stream] = self._own.both
        return both


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """It on the device, without waiting for what that still has to do."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def taken(table: Tensor, indices: Tensor) -> Tensor:
    """Rows of a table in the host's memory: torch's own lookup wakes all its threads, which takes two milliseconds."""
    rows = table.detach().view(torch.uint8).numpy().take(indices.numpy(), 0)
    return torch.from_numpy(rows).view(table.dtype)


def reserve(largest: int) -> None:
    """Have torch keep pieces of every size up to `largest` bytes; it rounds each up to a power of two."""
    sizes = [2**power for power in range(3, max(largest - 1, 1).bit_length() + 1)]
    held = [[_piece(size) for _ in range(AT_ONCE if size <= LARGE else LARGE_AT_ONCE)] for size in sizes]
    del held  # only here, so that no piece serves twice


def fetched(tensor: Tensor) -> np.ndarray:
    """A copy in the host's memory, waiting for what the current stream has to do before."""
    if tensor.device.type != "cuda":
        return tensor.numpy().copy()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    done.synchronize()
    return host.numpy().copy()


def _piece(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)

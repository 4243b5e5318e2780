"""Copies tensors between the host's memory and a GPU, always through page-locked memory.

A copy from or to other memory waits inside the driver for all pending work of its stream, and other threads' copies
wait with it. And allocating page-locked memory while the device works synchronises everything (CUDA C++ Programming
Guide, "Implicit Synchronization"): so torch gets a reserve of it before the first take.
"""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import Tensor

PIECE = 32 * 2**20
"""Bytes of a thread's buffer."""
AT_ONCE, LARGE, LARGE_AT_ONCE = 16, 2**18, 3
"""Simultaneous pieces of each size, and of sizes above so many bytes."""


class Uploader:
    """Uploads to one device; any thread may call it.

    CUDA copies pageable memory piece by piece in the calling thread, one call at a time: 6 GB/s to an H100, whose link
    moves 50. Four threads with their own buffers upload S2 Pro's 9 GB in 0.3 s.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._thread_local = threading.local()

    def __call__(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        """A copy on the device with this dtype, complete on return."""
        if self._device.type != "cuda":
            return tensor.to(self._device, dtype, copy=True)
        with torch.cuda.device(self._device):
            return self._upload(tensor.contiguous(), dtype)

    def _upload(self, tensor: Tensor, dtype: torch.dtype) -> Tensor:
        pinned, stream = self._buffer_and_stream()
        buffer = pinned.view(dtype)
        copy = torch.empty(tensor.shape, dtype=dtype, device=self._device)
        stream.wait_stream(torch.cuda.current_stream())  # which may still use this memory
        with torch.cuda.stream(stream):
            for piece, target in zip(tensor.view(-1).split(len(buffer)), copy.view(-1).split(len(buffer)), strict=True):
                staging = buffer[: len(piece)]
                staging.copy_(piece)
                target.copy_(staging, non_blocking=True)
                stream.synchronize()
        return copy

    def _buffer_and_stream(self) -> tuple[Tensor, torch.cuda.Stream]:
        if not hasattr(self._thread_local, "both"):
            self._thread_local.both = torch.empty(PIECE, dtype=torch.uint8, pin_memory=True), torch.cuda.Stream()
        pair: tuple[Tensor, torch.cuda.Stream] = self._thread_local.both
        return pair


def keep_stream(device: torch.device) -> None:
    """Give the calling thread one CUDA stream of its own: freed memory returns to the stream that used it."""
    if device.type == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream(device))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device without waiting for the device's pending work."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def take_rows(table: Tensor, indices: Tensor) -> Tensor:
    """Rows of a table in the host's memory: torch's own lookup wakes all its threads, which takes two milliseconds."""
    rows = table.detach().view(torch.uint8).numpy().take(indices.numpy(), 0)
    return torch.from_numpy(rows).view(table.dtype)


def reserve(largest: int) -> None:
    """Make torch cache pieces of every size up to `largest` bytes; it rounds each up to a power of two."""
    sizes = [2**power for power in range(3, max(largest - 1, 1).bit_length() + 1)]
    pieces = [[_piece(size) for _ in range(AT_ONCE if size <= LARGE else LARGE_AT_ONCE)] for size in sizes]
    del pieces  # only now, so that torch allocates each piece separately


def fetch(tensor: Tensor) -> np.ndarray:
    """A copy in the host's memory, after the current stream's pending work."""
    if tensor.device.type != "cuda":
        return tensor.numpy().copy()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    event.synchronize()
    return host.numpy().copy()


def _piece(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)

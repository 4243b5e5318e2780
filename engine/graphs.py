"""A whole frame for all rows as one CUDA graph, captured once a batch size; a replay only names the slots."""

from __future__ import annotations

import bisect
from collections.abc import Callable

import torch
from torch import Tensor

BATCH_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Dense where a padded row costs most; between these a batch is filled up with the spare slot."""

Step = Callable[[Tensor], tuple[Tensor, Tensor]]
"""slots (rows,) int64 → codes (rows, codebooks), ended (rows,); every other state lives in slot tensors."""


class FrameGraphs:
    """Capture, aim, replay. The spare slot is one that no row is ever given."""

    def __init__(self, step: Step, max_rows: int, spare_slot: int, device: torch.device) -> None:
        self._step, self._spare, self._device = step, spare_slot, device
        self._sizes = [size for size in BATCH_SIZES if size < max_rows] + [max_rows]
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Tensor, Tensor, Tensor]] = {}

    def capture(self, progress: Callable[[float], None]) -> None:
        """Capture every size, the largest first so that the others fit into its memory pool."""
        with torch.cuda.device(self._device):
            self._capture(progress)

    def _capture(self, progress: Callable[[float], None]) -> None:
        pool = None
        for done, size in enumerate(reversed(self._sizes), 1):
            slots = torch.full((size,), self._spare, dtype=torch.int64, device=self._device)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(2):  # kernels compile and libraries make their workspaces before the capture
                    self._step(slots)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                codes, ended = self._step(slots)
            pool = pool or graph.pool()
            self._graphs[size] = graph, slots, codes, ended
            progress(done / len(self._sizes))

    def replay(self, slots: list[int]) -> tuple[Tensor, Tensor]:
        """One frame for these slots: codes (rows, codebooks) and ended (rows,), valid until the next replay."""
        if len(slots) > self._sizes[-1]:
            raise ValueError(f"{len(slots)} rows do not fit the largest graph, made for {self._sizes[-1]}")
        size = self._sizes[bisect.bisect_left(self._sizes, len(slots))]
        graph, aim, codes, ended = self._graphs[size]
        padded = slots + [self._spare] * (size - len(slots))
        aim.copy_(torch.tensor(padded).pin_memory(), non_blocking=True)
        graph.replay()
        return codes[: len(slots)], ended[: len(slots)]

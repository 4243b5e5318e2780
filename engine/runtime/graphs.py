"""Fixed work as CUDA graphs: captured once a size at the start, replayed with new inputs in the same tensors."""

from __future__ import annotations

import bisect
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from engine.model.prompt import PrefillChunk

BATCH_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Rows of a frame: dense where a padded row costs most; between these a batch is filled up with the spare slot."""
PREFILL_SIZES = (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024)
"""Positions of a prefill. On an H200 the first three take 2.8 to 3.1 ms, then arithmetic counts: 4.1 to 15.8."""

HIGH_PRIORITY = -1
"""Of the CUDA streams of frames and of sound: before clips that are encoded meanwhile, whose priority is 0. A graph's
kernels have that of the stream on which they were captured."""

Size = TypeVar("Size", int, tuple[int, int])
"""Names a graph; a larger one has more to do."""
Step = Callable[[Tensor], Tensor]
"""slots (rows,) int64 → a frame as `sampling.host_frame` lays it out; every other state lives in slot tensors."""
Read = Callable[[Tensor, Tensor, Tensor, Tensor], object]
"""tokens (positions,), codes (codebooks, positions), slots, positions (positions,), all int64: into the cache."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector off: freeing another engine's graph during a capture would break it.

    It looks once before, which takes 0.15 s: so this is around many captures, not around each.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, eq=False, slots=True)
class Captured:
    """A graph, the tensors that it reads and those that it leaves its results in."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    outputs: Any

    @classmethod
    def of(cls, work: Callable[..., Any], inputs: tuple[Tensor, ...], pool: Any, side: torch.cuda.Stream) -> Captured:
        """Capture work(*inputs), without garbage collection, on a stream aside, where it has run once before.

        Then kernels are on the device, and libraries have their workspaces. Graphs of one pool must be captured on the
        same stream: memory is only reused where it was freed.
        """
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            work(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Without a stream given it would take one of its own, which may be another GPU's.
        with torch.cuda.graph(graph, pool=pool, stream=side):
            outputs = work(*inputs)
        return cls(graph, inputs, outputs)

    def replay(self, *values: Tensor) -> Any:
        """Run on these values (shaped as the inputs, in the host's memory); the outputs stand until the next replay."""
        for each, value in zip(self.inputs, values, strict=True):
            each.copy_(value.pin_memory(), non_blocking=True)
        return self.again()

    def again(self) -> Any:
        """Run on the values of the last time."""
        self.graph.replay()
        return self.outputs


def capture_sizes(
    work: Callable[..., Any],
    inputs: Mapping[Size, tuple[Tensor, ...]],
    progress: Callable[[float], None],
    priority: int = HIGH_PRIORITY,
) -> dict[Size, Captured]:
    """Capture every size, the largest first so that the others fit into its memory pool."""
    from engine.kernels.launch import compiling  # needs Triton, which CPU-only machines may lack

    with compiling():
        for each in inputs.values():
            work(*each)
    graphs: dict[Size, Captured] = {}
    pool, side = None, torch.cuda.Stream(priority=priority)
    with no_garbage_collection():
        for done, size in enumerate(sorted(inputs, reverse=True), 1):
            graphs[size] = Captured.of(work, inputs[size], pool, side)
            pool = pool or graphs[size].graph.pool()
            progress(done / len(inputs))
    return graphs


class FrameGraphs:
    """One frame for the rows in some slots. The spare slot is one that no row is ever given."""

    def __init__(self, step: Step, max_rows: int, spare_slot: int, device: torch.device) -> None:
        self._step, self._spare, self._device = step, spare_slot, device
        self._sizes = [size for size in BATCH_SIZES if size < max_rows] + [max_rows]
        self._graphs: dict[int, Captured] = {}
        self._given: dict[int, list[int]] = {}

    def capture(self, progress: Callable[[float], None]) -> None:
        spare = torch.full((self._sizes[-1],), self._spare, dtype=torch.int64, device=self._device)
        with torch.cuda.device(self._device):
            self._graphs = capture_sizes(self._step, {size: (spare[:size].clone(),) for size in self._sizes}, progress)

    def replay(self, slots: list[int]) -> Tensor:
        """One frame for these slots, (rows, codebooks + 1) int16, valid until the next replay."""
        if len(slots) > self._sizes[-1]:
            raise ValueError(f"{len(slots)} rows do not fit the largest graph, made for {self._sizes[-1]}")
        size = self._sizes[bisect.bisect_left(self._sizes, len(slots))]
        if self._given.get(size) == slots:  # as in most frames: nothing needs to be sent there
            return self._graphs[size].again()[: len(slots)]
        self._given[size] = slots
        return self._graphs[size].replay(torch.tensor(slots + [self._spare] * (size - len(slots))))[: len(slots)]


class PrefillGraphs:
    """Pieces of several prompts read at once; a batch is filled up with the one position of the spare slot."""

    def __init__(self, read: Read, codebooks: int, spare_slot: int, device: torch.device) -> None:
        self._read, self._spare, self._device, self._lines = read, spare_slot, device, codebooks + 3
        self._graphs: dict[int, Captured] = {}

    def capture(self, progress: Callable[[float], None]) -> None:
        def work(lines: Tensor) -> object:
            return self._read(lines[0], lines[3:], lines[1], lines[2])

        with torch.cuda.device(self._device):
            blank = {size: (self._blank(size).to(self._device),) for size in PREFILL_SIZES}
            self._graphs = capture_sizes(work, blank, progress)

    def replay(self, pieces: Sequence[PrefillChunk]) -> None:
        """Put keys and values of these pieces into the cache; together at most the largest size."""
        count = sum(len(piece.ids) for piece in pieces)
        size = PREFILL_SIZES[bisect.bisect_left(PREFILL_SIZES, count)]
        lines, at = self._blank(size), 0
        for piece in pieces:
            part = slice(at, at := at + len(piece.ids))
            lines[0, part] = torch.from_numpy(piece.ids)
            lines[1, part] = piece.slot
            lines[2, part] = torch.arange(piece.start, piece.start + len(piece.ids))
            lines[3:, part] = torch.from_numpy(piece.codes)
        self._graphs[size].replay(lines)

    def _blank(self, size: int) -> Tensor:
        """Tokens, slots, positions and codes of nothing, at position 0 of the spare slot."""
        lines = torch.zeros(self._lines, size, dtype=torch.int64)
        lines[1] = self._spare
        return lines


CLIP_FRAMES = (64, 128, 192, 256, 324)
"""Of clips whose second part is a graph: up to 15 s."""


class ClipEncoding(Protocol):
    """What `FusedEncoder` does, in its two parts."""

    def convolve(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) → (rows, steps, channels)."""

    def codes(self, x: Tensor) -> Tensor:
        """(rows, steps, channels) → codes (rows, codebooks, frames)."""


class ClipGraphs:
    """Clips to codes: of one that is alone and no longer than usual, all after the convolutions is a graph.

    That part is some hundreds of small launches for a clip of any length, which take a host 11 to 17 ms.
    """

    def __init__(self, encoder: ClipEncoding, frame_samples: int, device: torch.device) -> None:
        self._encoder, self._frame_samples, self._device = encoder, frame_samples, device
        self._graphs: dict[int, Captured] = {}
        self._steps = 1  # of the convolutions' result, a frame

    @torch.inference_mode()
    def capture(self) -> None:
        with torch.cuda.device(self._device):
            frame = self._encoder.convolve(torch.zeros(1, 1, self._frame_samples, device=self._device))
            self._steps = frame.shape[1]
            inputs = {frames: (frame.repeat(1, frames, 1),) for frames in CLIP_FRAMES}
            self._graphs = capture_sizes(self._encoder.codes, inputs, lambda done: None, priority=0)

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) float32 → codes (rows, codebooks, frames), valid until the next call."""
        x = self._encoder.convolve(audio)
        frames = x.shape[1] // self._steps
        size = next((size for size in CLIP_FRAMES if size >= frames), None)
        if len(x) > 1 or size is None:
            return self._encoder.codes(x)
        graph = self._graphs[size]
        graph.inputs[0][:, : x.shape[1]] = x  # what a longer clip has left behind it changes nothing
        return graph.again()[:, :, :frames]

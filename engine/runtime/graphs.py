"""CUDA graphs of fixed work: captured once per size, replayed with new inputs in the same tensors.

The sizes without which nothing can be generated are captured before the engine is ready, the others while it runs.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from engine.model.dual_ar import DualAR
from engine.model.prompt import PrefillChunk
from engine.transfer import send

if TYPE_CHECKING:
    from engine.fused.codec_encoder import FusedEncoder
    from engine.kernels.compilation import CachedKernels

log = logging.getLogger(__name__)

BATCH_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Rows per frame: dense where a padded row costs most; other batches are padded with the spare slot."""
FIRST_FRAMES = 2
"""Maximum number of new rows whose first frames are generated separately from the frame of all others."""
PREFILL_SIZES = (16, 32, 64, 128, 192, 256, 384, 512, 768, 1024)
"""Positions per prefill. On an H200 the first three take 2.8 to 3.1 ms; arithmetic limits the others: 4.1 to 15.8."""
FIRST_PREFILL_SIZES = (64, 256, 1024)
"""Sizes captured first: a short text in a cached voice, one in a new voice, and any other."""
COMPACT_PREFILL_SIZES = (64, 256)
"""The only sizes if memory is short."""

HIGH_PRIORITY, MIDDLE_PRIORITY = -2, -1
"""CUDA stream priorities: frames, and audio that a listener waits for, go before audio for listeners with some
buffered, and that before encoding clips, whose priority is 0. A graph's kernels have the priority of the stream on
which they were captured."""

Size = TypeVar("Size", int, tuple[int, int])
"""Identifies a graph; a larger size means more work."""
Step = Callable[[Tensor], Tensor]
"""slots (rows,) int64 → a frame in the layout of `sampling.host_frame`; all other state is in slot tensors."""
Draw = Callable[[Tensor, Tensor], Tensor]
"""hidden states (rows, dim), slots (rows,) int64 → a frame, as by `Step`."""
Read = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""embeddings (positions, dim) of tokens (positions,), codes (codebooks, positions), slots, positions (positions,), all
but the first int64: written to the cache; returns hidden states (positions, dim)."""


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: freeing another engine's graph during a capture would break it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, eq=False, slots=True)
class CapturedGraph:
    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    outputs: Any

    @classmethod
    def of(
        cls,
        work: Callable[..., Any],
        inputs: tuple[Tensor, ...],
        pool: Any,
        side: torch.cuda.Stream,
        make_room: bool = True,
    ) -> CapturedGraph:
        """Capture work(*inputs), without garbage collection, on a side stream, after running it there once.

        That run loads kernels, gives libraries their workspaces, and initialises anything created once and kept, such
        as semaphores: created during a capture, it would be initialised only by the first replay. Graphs of one pool
        must be captured on the same stream: memory is reused only on the stream that freed it. Other threads may use
        the device meanwhile, but wait while the memory of the trial run is freed for the pool.
        """
        from engine.kernels.compilation import rehearsing  # needs Triton, which CPU-only machines may lack

        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), rehearsing():
            work(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        if make_room:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(side):  # not `torch.cuda.graph`, which would empty the cache each time
            graph.capture_begin(pool, capture_error_mode="thread_local")
            try:
                outputs = work(*inputs)
            finally:
                graph.capture_end()
        return cls(graph, inputs, outputs)

    def replay(self, *values: Tensor) -> Any:
        """Run on these values (shaped like the inputs, in host memory); the outputs are valid until the next replay."""
        for buffer, value in zip(self.inputs, values, strict=True):
            buffer.copy_(value.pin_memory() if value.device.type == "cpu" else value, non_blocking=True)
        return self.again()

    def again(self) -> Any:
        """Run on the previous values."""
        self.graph.replay()
        return self.outputs


class GraphSet(Generic[Size]):
    """The same work at several sizes, one graph each."""

    def __init__(
        self,
        work: Callable[..., Any],
        inputs: Mapping[Size, tuple[Tensor, ...]],
        device: torch.device,
        priority: int = HIGH_PRIORITY,
        first: Collection[Size] | None = None,
    ) -> None:
        """inputs: for each size, on the device. first: sizes without which nothing can be generated; None: all."""
        self._work, self._device, self._priority = work, device, priority
        self._inputs: Mapping[Size, tuple[Tensor, ...]] = inputs
        self._first: Collection[Size] = inputs.keys() if first is None else set(first)
        self._graphs: dict[Size, CapturedGraph] = {}
        self._pool: Any = None
        self._side: torch.cuda.Stream | None = None
        self.in_use = threading.Lock()
        """Held by one of several threads until it has read the outputs of its replay, since graphs share memory."""

    def __getitem__(self, size: Size) -> CapturedGraph:
        return self._graphs[size]

    def __len__(self) -> int:
        return len(self._inputs)

    def captured(self, sizes: Iterable[Size]) -> Size:
        """The first of these sizes whose graph has been captured."""
        return next(size for size in sizes if size in self._graphs)

    def missing(self, only_first: bool = False) -> list[Size]:
        """Sizes that are not captured yet, smallest first."""
        return sorted(size for size in (self._first if only_first else self._inputs) if size not in self._graphs)

    def compile(self) -> None:
        """Request all kernels; to be called inside `compiling`."""
        with torch.cuda.device(self._device):
            for inputs in self._inputs.values():
                self._work(*inputs)

    def capture(self, size: Size, make_room: bool = True) -> None:
        """Capture this size's graph. The largest must be first: the others fit into its memory pool."""
        with torch.cuda.device(self._device):
            self._side = self._side or torch.cuda.Stream(self._device, priority=self._priority)
            self._graphs[size] = CapturedGraph.of(self._work, self._inputs[size], self._pool, self._side, make_room)
        self._pool = self._pool or self._graphs[size].graph.pool()


def capture(
    *sets: GraphSet[Any],
    progress: Callable[[float], None] = lambda fraction: None,
    kernels: CachedKernels | None = None,
    only_first: bool = False,
) -> None:
    """Capture all sizes of these sets, or only those without which nothing can be generated.

    First compiles all of their kernels that are not cached, which takes seconds.
    """
    from engine.kernels.compilation import compiling  # needs Triton, which CPU-only machines may lack

    with torch.inference_mode():
        if not (kernels and kernels.are_complete):
            with compiling(kernels.processes if kernels else None):
                for graphs in sets:
                    graphs.compile()
        steps = [(graphs, size) for graphs in sets for size in reversed(graphs.missing(only_first))]
        gc.collect()  # frees stopped engines and their memory
        with no_garbage_collection():
            for fraction, (graphs, size) in enumerate(steps, 1):
                graphs.capture(size)
                progress(fraction / len(steps))


def capture_missing(*sets: GraphSet[Any]) -> Iterator[int]:
    """Capture the sizes that ``only_first`` left out, one per step; yields the number left before each.

    Other threads may replay these graphs meanwhile, as long as they hold the lock of the set. The sets take turns, so
    that all kinds of work become faster.
    """
    turns = zip_longest(*([(graphs, size) for size in graphs.missing()] for graphs in sets))
    steps = [step for turn in turns for step in turn if step]
    for remaining, (graphs, size) in zip(range(len(steps), 0, -1), steps, strict=True):
        yield remaining
        try:
            with torch.inference_mode(), no_garbage_collection(), graphs.in_use:
                graphs.capture(size, make_room=False)
        except torch.OutOfMemoryError as error:
            log.warning("no memory for %d of the CUDA graphs; larger ones are used instead: %s", remaining, error)
            return


class FrameGraphs(GraphSet[int]):
    """One frame for the rows in some slots. The spare slot, number ``max_rows``, is never given to a row."""

    def __init__(self, step: Step, max_rows: int, device: torch.device) -> None:
        self._spare = max_rows
        self._sizes = [size for size in BATCH_SIZES if size < max_rows] + [max_rows]
        spare = torch.full((max_rows,), max_rows, dtype=torch.int64, device=device)
        inputs = {size: (spare[:size].clone(),) for size in self._sizes}
        super().__init__(step, inputs, device, first={self._sizes[0], max_rows})
        self._last_slots: dict[int, list[int]] = {}

    def replay(self, slots: list[int]) -> Tensor:
        """One frame for these slots, (rows, codebooks + 1) int16, valid until the next replay."""
        if len(slots) > self._sizes[-1]:
            raise ValueError(f"{len(slots)} rows do not fit the largest graph, made for {self._sizes[-1]}")
        size = self.captured(size for size in self._sizes if size >= len(slots))
        if self._last_slots.get(size) == slots:  # as in most frames: no upload needed
            return self[size].again()[: len(slots)]
        self._last_slots[size] = slots
        return self[size].replay(torch.tensor(slots + [self._spare] * (size - len(slots))))[: len(slots)]


class FirstFrameGraphs(GraphSet[int]):
    """First frames of a few rows, from the slow AR's hidden states at their prompts' last positions.

    This saves one pass over the slow AR's weights before the first audio: 2 ms on an H200.
    """

    def __init__(self, draw: Draw, template: Tensor, max_rows: int) -> None:
        """template: a tensor of hidden states (…, dim) on the device."""

        def inputs(rows: int) -> tuple[Tensor, Tensor]:
            slots = torch.full((rows,), max_rows, dtype=torch.int64, device=template.device)
            return template.new_zeros(rows, template.shape[-1]), slots

        sizes = range(1, min(FIRST_FRAMES, max_rows) + 1)
        super().__init__(draw, {rows: inputs(rows) for rows in sizes}, template.device)

    def replay(self, hidden: Sequence[Tensor], slots: Sequence[int]) -> Tensor:
        """A frame (rows, codebooks + 1) int16 for these slots from their hidden states (dim,), valid until the next."""
        graph = self[len(slots)]
        for line, state in zip(graph.inputs[0], hidden, strict=True):
            line.copy_(state)
        for line, slot in zip(graph.inputs[1], slots, strict=True):
            line.fill_(slot)
        return graph.again()


class PrefillGraphs(GraphSet[int]):
    """Reads pieces of several prompts at once; batches are padded with the one position of the spare slot.

    A model whose steps are sums has two more lines: the tokens beside the others, and where a voice's vector is added.
    """

    def __init__(self, read: Read, model: DualAR, template: Tensor, spare_slot: int, sizes: Sequence[int]) -> None:
        """template: a tensor of embeddings (…, dim) on the device.

        Tokens are looked up in the graph, unless the model's table of text is on the host.
        """

        def work(lines: Tensor, embeddings: Tensor | None = None) -> Tensor:
            embeddings = self._embedded(lines) if embeddings is None else embeddings
            return read(embeddings, lines[0], lines[self._codes], lines[1], lines[2])

        self._model, self._spare, self._sizes = model, spare_slot, sizes
        self._has_sums, self._codes = model.config.talker is not None, slice(3, 3 + model.config.num_codebooks)
        self._vectors = torch.zeros(spare_slot + 1, template.shape[-1], device=model.text_device)
        """Each slot's vector, float32 (slots, dim)."""
        inputs: dict[int, tuple[Tensor, ...]] = {size: (self._padding(size).to(template.device),) for size in sizes}
        if model.text_on_host:
            inputs = {size: (*lines, template.new_zeros(size, template.shape[-1])) for size, lines in inputs.items()}
        super().__init__(work, inputs, template.device, first=set(FIRST_PREFILL_SIZES).intersection(sizes))

    def replay(self, pieces: Sequence[PrefillChunk]) -> Tensor:
        """Put keys and values of these pieces into the cache; in total at most the largest size.

        Returns their hidden states (positions, dim), one piece after the other, valid until the next replay.
        """
        count = sum(len(piece.steps) for piece in pieces)
        size = self.captured(size for size in self._sizes if size >= count)
        lines, offset = self._padding(size), 0
        array = lines.numpy()  # torch would give up the interpreter's lock at each of a hundred short pieces
        for piece in pieces:
            part = slice(offset, offset := offset + len(piece.steps))
            array[0, part] = piece.steps.ids
            array[1, part] = piece.slot
            array[2, part] = np.arange(piece.start, piece.start + len(piece.steps))
            array[self._codes, part] = piece.steps.codes
            if piece.steps.beside is not None:
                array[-2, part] = piece.steps.beside
            if piece.steps.vector is not None:
                array[-1, part.start + piece.steps.vector_step] = 1
                self._vectors[piece.slot] = send(torch.from_numpy(piece.steps.vector), self._vectors.device)
        embeddings = (self._embedded(lines),) if self._model.text_on_host else ()
        return self[size].replay(lines, *embeddings)[:count]

    def _embedded(self, lines: Tensor) -> Tensor:
        """The text of these lines, on the table's device; nothing is added to a step with codes."""
        text = self._model.text(lines[0])
        if not self._has_sums:
            return text
        text = text + self._model.beside(lines[-2])
        return (text + self._vectors[lines[1]].masked_fill(lines[-1][:, None] == 0, 0)).to(text.dtype)

    def _padding(self, size: int) -> Tensor:
        """Tokens, slots, positions and codes of padding, at position 0 of the spare slot."""
        lines = torch.zeros(self._codes.stop + 2 * self._has_sums, size, dtype=torch.int64)
        lines[1] = self._spare
        return lines


CLIP_FRAMES = (64, 128, 192, 256, 324)
"""Lengths of clips whose second part is a graph: up to 15 s."""


class ClipGraphs(GraphSet[int]):
    """Encodes clips; for a single clip of usual length, everything after the convolutions is a graph.

    That part is hundreds of small launches for a clip of any length, which take the host 11 to 17 ms.
    """

    def __init__(self, encoder: FusedEncoder, frame_samples: int, device: torch.device) -> None:
        self._encoder, self._audio = encoder, torch.zeros(1, 1, frame_samples, device=device)
        inputs = {
            frames: (torch.zeros(1, frames * encoder.steps, encoder.channels, device=device),) for frames in CLIP_FRAMES
        }
        super().__init__(encoder.codes, inputs, device, priority=0)

    def compile(self) -> None:
        with torch.cuda.device(self._device):
            self._encoder.convolve(self._audio)
        super().compile()

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) float32 → codes (rows, codebooks, frames), valid until the next call."""
        x = self._encoder.convolve(audio)
        frames = x.shape[1] // self._encoder.steps
        size = next((size for size in CLIP_FRAMES if size >= frames), None)
        if len(x) > 1 or size is None:
            return self._encoder.codes(x)
        graph = self[size]
        graph.inputs[0][:, : x.shape[1]] = x  # the encoder is causal, so leftovers of a longer clip do not matter
        return graph.again()[:, :, :frames]

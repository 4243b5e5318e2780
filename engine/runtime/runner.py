"""Runs the model for the rows in their slots: prefill, and one frame for all rows.

`PlainFrame` is readable torch, runs anywhere and is the reference. On CUDA the frame is a graph over fused kernels, on
a CPU in float32 it is `CpuFrame`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig, TwelveBits
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.prompt import PrefillChunk, Prompt, last_steps
from engine.model.slots import Slots
from engine.runtime.cpu_frame import CpuFrame
from engine.runtime.graphs import FIRST_FRAMES, PREFILL_SIZES, FirstFrameGraphs, FrameGraphs, GraphSet, PrefillGraphs
from engine.runtime.plain_frame import PlainFrame
from engine.runtime.prefix_cache import PrefixCache
from engine.runtime.row import Row

PREFILL_POSITIONS = 512
"""Prompt positions read per turn, so that active rows continue between turns. The largest graph has this size: on an
H200 it takes 16 ms, and with a frame of 64 rows half of the duration of a frame."""
FRAME_POSITIONS = 32
"""Positions for which a frame counts if it is read separately."""


class Runner:
    """The model's state for `rows` rows. For one thread only."""

    def __init__(self, model: DualAR, rows: int, context: int, prefix_bytes: int = 0, repeats: bool = False) -> None:
        """repeats: a take has the same frames in any batch, and frames delivered before are generated again, not read.

        On a CPU each row is then computed separately, since torch rounds differently in a batch. On CUDA the graphs
        must be batch-invariant.
        """
        self.config: ModelConfig = model.config
        self._model = model
        weight = model.slow.norm.weight
        self.device = weight.device
        self.kernel_attention = False
        self.ahead = False
        """Whether to launch a frame before the previous one is read (launch-ahead): only where launching does not
        wait."""
        # Graphs are padded with the spare slot.
        self._cache = KVCache(model.config.slow, rows, context, weight.device, weight.dtype, spare=True)
        self.prefixes = PrefixCache(self._cache, prefix_bytes)
        self._slots = Slots(model.config, rows, context, weight.device, weight.dtype)
        self._frame: Callable[[tuple[Row, ...]], Tensor]
        self._read_frame: Callable[[int, int, Tensor], object]
        if weight.device.type == "cpu" and weight.dtype == torch.float32:
            frame: CpuFrame | PlainFrame = CpuFrame(model, self._cache, self._slots, rows, context)
        else:
            frame = PlainFrame(model, self._cache, self._slots)
        is_cpu = weight.device.type == "cpu"
        self._frame, self._read_frame = frame, frame.read
        self.is_native = frame.is_native
        self._read_steps = frame.read if self.is_native else None
        self._repeats, self._reads_frames_one_by_one = repeats, is_cpu and not self._read_steps
        self._is_alone = repeats and is_cpu and not self._read_steps
        """Whether each row is computed separately."""
        if self._is_alone:
            self._frame = lambda rows: torch.cat([frame((row,)) for row in rows])
        self._read: Callable[[Sequence[PrefillChunk]], Any] = self._read_one_by_one
        self._draw_first: Callable[[Sequence[Tensor], Sequence[int]], Tensor] | None = None
        self._read_rows: dict[Row, Tensor] = {}
        """Rows whose prompts have just been read to the last position, and their hidden states there (dim,)."""
        self._rows, self._positions = rows, PREFILL_POSITIONS

    @torch.inference_mode()
    def use_graphs(
        self,
        kernel_attention: bool,
        batch_invariant: bool = False,
        twelve_bits: TwelveBits = "none",
        prefills: Sequence[int] = PREFILL_SIZES,
    ) -> list[GraphSet[int]]:
        """Generate frames by CUDA graphs over fused kernels from now on, once these are captured.

        batch_invariant: a row's codes do not depend on the rest of the batch, not even by rounding; needs the attention
        kernel. twelve_bits: see `FusedFrame`. prefills: sizes of the graphs that read prompts.
        """
        from engine.fused.frame import FusedFrame, FusedPrefill  # need Triton, which CPU-only machines may lack

        step = FusedFrame(self._model, self._cache, self._slots, kernel_attention, batch_invariant, twelve_bits)
        frames = FrameGraphs(step, self._rows, self.device)
        self.kernel_attention, self.ahead = kernel_attention, True
        self._frame = lambda rows: frames.replay([row.slot for row in rows])
        if not kernel_attention:  # else every position of a slot would copy the whole slot
            return [frames]
        read = FusedPrefill(self._model, step.slow, self._cache)
        embeddings = self._slots.input
        prefill = PrefillGraphs(read, self._model, embeddings, self._rows, prefills)
        self._read, self._positions = prefill.replay, max(prefills)
        if batch_invariant:  # a prompt's last position is always read as in a frame
            return [frames, prefill]
        first = FirstFrameGraphs(step.draw, embeddings, self._rows)
        self._draw_first = first.replay
        return [frames, prefill, first]

    @torch.inference_mode()
    def prefill(self, rows: Sequence[Row]) -> list[Row]:
        """Continue reading these rows' prompts, first come first served; returns the rows whose prompts are now read.

        The first frame reads a prompt's last token, unless there are few rows: see `launch_first`.
        """
        room, pieces, ends = self._positions, [], []
        for row in rows[:1] if self._is_alone else rows:
            if room == 0:  # the others wait, and are not looked up in the cache before their turn
                break
            if row.position == 0:
                row.position = self.prefixes.restore(row.prompt, row.slot)
            one_by_one = row.position >= self._read_together(row.prompt)
            cost = FRAME_POSITIONS if one_by_one else 1
            end = self._piece_end(row, room // cost)
            ends.append(end)
            if row.position < end:
                pieces.append(PrefillChunk.of(row.prompt, row.slot, row.position, end, one_by_one))
                room -= (end - row.position) * cost
        if pieces and self._can_begin(rows, ends, room):
            pieces = [
                PrefillChunk.of(row.prompt, row.slot, row.position, end + 1)
                for row, end in zip(rows, ends, strict=True)
            ]
            hidden = self._read(pieces)
            ends_read = np.cumsum([len(piece.steps) for piece in pieces]).tolist()
            self._read_rows = {row: hidden[end - 1] for row, end in zip(rows, ends_read, strict=True)}
        elif pieces:
            self._read(pieces)
        finished = [row for row, end in zip(rows, ends, strict=False) if self._read_to(row, end)]
        if finished:
            self._join(finished)
        return finished

    def _can_begin(self, rows: Sequence[Row], ends: Sequence[int], room: int) -> bool:
        """Whether pieces up to `ends`, which leave this much room, can include the prompts' last positions."""
        if self._draw_first is None or len(rows) > min(FIRST_FRAMES, room) or len(ends) < len(rows):
            return False
        return all(end == len(row.prompt) - 1 and not row.prompt.delivered for row, end in zip(rows, ends, strict=True))

    def _piece_end(self, row: Row, room: int) -> int:
        """Where the next piece of a prompt ends: at the prefix's end, so that it can be cached, and before frames."""
        end = min(row.position + room, self._last(row.prompt))
        for boundary in (row.prompt.prefix, self._read_together(row.prompt)):
            if row.position < boundary < end:
                return boundary
        return end

    def _last(self, prompt: Prompt) -> int:
        """The position that the first frame reads."""
        return (prompt.delivered_from if self._repeats else len(prompt)) - 1

    def _read_together(self, prompt: Prompt) -> int:
        """Leading positions that are read in pieces. Frames are read separately if only that gives the same bits."""
        return prompt.delivered_from - 1 if self._reads_frames_one_by_one else len(prompt)

    def _read_to(self, row: Row, end: int) -> bool:
        """Record that the row's prompt has been read up to `end`; returns whether that is all of it."""
        prompt, last = row.prompt, self._last(row.prompt)
        if row.position < end == prompt.prefix:
            self.prefixes.keep(prompt, row.slot)
        row.position = end
        return end == last

    def _join(self, rows: Sequence[Row]) -> None:
        """Let rows whose prompts have been read take part from the next frame on."""
        prompts = [row.prompt for row in rows]
        last_positions = [self._last(prompt) for prompt in prompts]
        delivered = [p.codes[0, p.delivered_from : end + 1] for p, end in zip(prompts, last_positions, strict=True)]
        for row, tokens in zip(rows, delivered, strict=True):
            row.to_repeat = row.prompt.delivered - len(tokens)
        embedded = self._model.embed_prompt(last_steps(prompts, last_positions))[0]
        self._slots.join([r.slot for r in rows], [r.sampling for r in rows], embedded, last_positions, delivered)

    @torch.inference_mode()
    def launch_first(self) -> Frames | None:
        """Launch the first frames of a few newcomers, from the slow AR's hidden states at their prompts' last
        positions.

        They then need not wait for the common frame. Returns None if their first frames are part of it.
        """
        newcomers, self._read_rows = self._read_rows, {}
        if not newcomers or self._draw_first is None:
            return None
        rows = tuple(newcomers)
        return self._start_copy(rows, self._draw_first(list(newcomers.values()), [row.slot for row in rows]))

    @torch.inference_mode()
    def launch(self, rows: tuple[Row, ...]) -> Frames:
        frame = self._frame(rows)
        if lines := [line for line, row in enumerate(rows) if row.position + 1 < len(row.prompt)]:
            self._repeat(rows, lines, frame)
        return self._start_copy(rows, frame)

    def _start_copy(self, rows: tuple[Row, ...], frame: Tensor) -> Frames:
        for row in rows:
            row.position += 1
        if self.device.type != "cuda":
            return Frames(rows, frame.cpu(), None)
        host = torch.empty(frame.shape, dtype=frame.dtype, pin_memory=True)
        host.copy_(frame, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return Frames(rows, host, event)

    def _repeat(self, rows: Sequence[Row], lines: list[int], frame: Tensor) -> None:
        """Replace the frames of these lines by the delivered ones, in case they differ.

        Another GPU, or another version, may round differently from the one that began the take.
        """
        delivered = np.stack([rows[line].prompt.codes[:, rows[line].position + 1] for line in lines])
        slots = torch.tensor([rows[line].slot for line in lines], device=self.device)
        codes = torch.from_numpy(delivered).to(self.device)
        self._slots.correct(slots, frame[torch.tensor(lines, device=self.device)], codes, self._model)

    def _read_one_by_one(self, pieces: Sequence[PrefillChunk]) -> None:
        """Put keys and values of these pieces into the cache."""
        for piece in pieces:
            x = self._model.embed_prompt(piece.steps)
            if self._read_steps:
                self._read_steps(piece.slot, piece.start, x[0])
            elif piece.one_by_one:  # as generating frames does
                for step in range(x.shape[1]):
                    self._read_frame(piece.slot, piece.start + step, x[0, step : step + 1])
            else:
                positions = torch.arange(piece.start, piece.start + x.shape[1], device=self.device)[None]
                span = self._cache.span(slice(piece.slot, piece.slot + 1), piece.start)
                self._model.slow(x, positions, span)


@dataclass(frozen=True, eq=False, slots=True)
class Frames:
    """One frame for each of these rows, being copied from the device."""

    rows: tuple[Row, ...]
    _codes: Tensor
    """int16 (rows, codebooks + 1); the last column says whether the take has ended."""
    _event: torch.cuda.Event | None

    def are_done(self) -> bool:
        """Whether reading them would not block."""
        return self._event is None or self._event.query()

    def read(self) -> Iterator[tuple[Row, np.ndarray, bool]]:
        """Wait for the frames: each row, its codes int16 (codebooks,), and whether it ended instead of having codes."""
        if self._event is not None:
            self._event.synchronize()
        for row, frame in zip(self.rows, self._codes.numpy(), strict=True):
            yield row, frame[:-1], bool(frame[-1])

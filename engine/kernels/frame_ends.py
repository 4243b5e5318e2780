"""The two ends of a frame, one kernel each: loads its rows' inputs from their slots, and stores the results.

At the beginning x[r] = inputs[slots[r]] and position[r] = positions[slots[r]]. At the end the codes become the next
input, input[slot] = (text[code₀] + Σ_b audio[b · size + code_b]) / divisor, rounded where the plain model rounds: an
embedding bag; and every slot's counters advance by one. A program handles 1,024 channels of a row; the row's first
program also updates the slot's counters and writes the frame in `host_frame`'s layout. Our own.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, is_hopper, launch, launch_dependents
from engine.model.draw_rules import Penalised
from engine.model.slots import Slots


@triton.jit
def _begin_frame(slots, inputs, positions, x, at_position, width, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Grid (rows, width / BLOCK): see `begin_frame` for shapes."""
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    if PDL:  # waits for the previous kernel of the graph, if any
        launch_dependents()
    slot = tl.load(slots + row)
    tl.store(x + row * width + at, tl.load(inputs + slot * width + at, mask=inside), mask=inside)
    if block == 0:
        tl.store(at_position + row, tl.load(positions + slot))


def begin_frame(slots: Tensor, state: Slots) -> tuple[Tensor, Tensor]:
    """The next input (rows, width) and its position (rows,) of these slots (rows,)."""
    rows, width = len(slots), state.input.shape[1]
    x, at = state.input.new_empty(rows, width), state.position.new_empty(rows)
    launch(
        _begin_frame, (rows, triton.cdiv(width, 1024)),
        slots, state.input, state.position, x, at, width,
        BLOCK=1024, PDL=is_hopper(x.device), num_warps=4,
    )  # fmt: skip
    return x, at


@triton.jit
def _end_frame(
    slots, codes, drawn, text, audio, inputs, positions, frames, memory, last_position, host,
    stop, books, size, width, divisor,
    REMEMBERED: tl.constexpr, COUNTS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows, width / BLOCK): see `end_frame` for shapes. COUNTS: the memory counts main tokens."""
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    if PDL:
        launch_dependents()
        grid_wait()
    slot = tl.load(slots + row)
    main = tl.load(codes + row * books)
    total = tl.zeros((BLOCK,), tl.float32)
    for book in range(books):
        code = tl.load(codes + row * books + book)
        total += tl.load(audio + (book * size + code) * width + at, mask=inside, other=0.0).to(tl.float32)
        if block == 0:
            tl.store(host + row * (books + 1) + book, code.to(tl.int16))
    kind = inputs.dtype.element_ty
    word = tl.load(text + main * width + at, mask=inside, other=0.0).to(tl.float32)
    total = (total.to(kind).to(tl.float32) + word).to(kind).to(tl.float32) / divisor
    tl.store(inputs + slot * width + at, total.to(kind), mask=inside)
    if block == 0:
        tl.store(host + row * (books + 1) + books, (tl.load(drawn + row) == stop).to(tl.int16))
        remembered = memory + slot * REMEMBERED
        if COUNTS:
            count = tl.load(remembered + main)
        else:
            window = tl.arange(0, 16)
            past = tl.load(remembered + window + 1, mask=window < REMEMBERED - 1, other=0)
        position, frame = tl.load(positions + slot), tl.load(frames + slot)
        last = tl.load(last_position + slot)
        tl.debug_barrier()  # read everything before writing any of it
        if COUNTS:
            tl.store(remembered + main, count + 1)
        else:
            recent = tl.where(window == REMEMBERED - 1, main, past)
            tl.store(remembered + window, recent, mask=window < REMEMBERED)
        tl.store(positions + slot, tl.minimum(position + 1, last))
        tl.store(frames + slot, frame + 1)


def end_frame(
    slots: Tensor, codes: Tensor, drawn: Tensor, stop: int, text: Tensor, audio: Tensor, divisor: float, state: Slots
) -> Tensor:
    """Store a frame's codes (rows, codebooks) int64 for these slots (rows,); only the spare slot may occur twice.

    Returns the frame in `host_frame`'s layout, (rows, codebooks + 1) int16; a row has ended if its drawn (rows,) is
    stop. text (semantic tokens, width): their embeddings; audio (codebooks · size, width). In the state, input,
    position, frame and memory are overwritten.
    """
    rows, books = codes.shape
    width = text.shape[1]
    if state.input.shape[1] != width or audio.shape[1] != width or audio.shape[0] % books or not codes.is_contiguous():
        raise ValueError(f"tables {tuple(text.shape)}, {tuple(audio.shape)} do not fit {tuple(state.input.shape)}")
    host = torch.empty(rows, books + 1, dtype=torch.int16, device=codes.device)
    launch(
        _end_frame, (rows, triton.cdiv(width, 1024)),
        slots, codes, drawn, text, audio,
        state.input, state.position, state.frame, state.memory, state.last_position, host,
        stop, books, audio.shape[0] // books, width, divisor,
        REMEMBERED=state.rule.remembered, COUNTS=isinstance(state.rule, Penalised), BLOCK=1024, num_warps=4,
        **early_start(codes.device),
    )  # fmt: skip
    return host

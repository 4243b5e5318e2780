"""One kernel from logits to a drawn token: top-p, top-k, temperature, counter-based noise, repetition-aware retry.

Entries are taken best first until top-p or top-k ends the list, usually after a handful, so nothing is sorted.
The rule and the random numbers are those of `engine.sampling`, which is the twin.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.sampling import REPEAT_WINDOW, draw, draw_semantic, exponential_noise


@triton.jit
def _noise(seed, frame, index, rank):
    """Exp(1) variate number `rank` of draw `index`: one word of Philox 4x32-10 (see exponential_noise)."""
    c0, c1 = (rank // 4).to(tl.uint32), index.to(tl.uint32)
    c2, c3 = (frame & 0xFFFFFFFF).to(tl.uint32), (rank * 0).to(tl.uint32)
    k0, k1 = (seed & 0xFFFFFFFF).to(tl.uint32), ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    for _ in tl.static_range(10):
        p0, p1 = c0.to(tl.uint64) * 0xD2511F53, c2.to(tl.uint64) * 0xCD9E8D57
        n0 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0
        n2 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c1, c3 = (p1 & 0xFFFFFFFF).to(tl.uint32), (p0 & 0xFFFFFFFF).to(tl.uint32)
        c0, c2 = n0, n2
        k0, k1 = k0 + 0x9E3779B9, k1 + 0xBB67AE85
    word = rank % 4
    bits = tl.where(word == 0, c0, tl.where(word == 1, c1, tl.where(word == 2, c2, c3)))
    return -tl.log(((bits >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07)


@triton.jit
def _draw(logits, column, temperature, top_p, top_k, seed, frame, index):
    """The drawn column of one row's logits (float32, −inf past the end)."""
    best = tl.max(logits, 0)
    log_total = best + tl.log(tl.sum(tl.exp(logits - best), 0))
    heat = tl.maximum(temperature, 1e-5)
    limit = tl.where(temperature == 0, 1, top_k).to(tl.int32)
    left = logits
    cumulative = 0.0
    winner = 0
    winning = -1.0
    rank = 0
    while rank < limit:
        value = tl.max(left, 0)
        place = tl.min(tl.where(left == value, column, 0x7FFFFFFF), 0)
        left = tl.where(column == place, float("-inf"), left)
        cumulative += tl.exp(value - log_total)
        if (rank == 0) | (cumulative <= top_p):
            score = tl.exp((value - best) / heat) / _noise(seed, frame, index, rank)
            if score > winning:
                winning = score
                winner = place
            rank += 1
        else:
            rank = limit
    return winner


@triton.jit
def _sample(
    logits, temperatures, top_ps, top_ks, seeds, frames, recent, out, columns, first_draw, stop,
    SEMANTIC: tl.constexpr, WINDOW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(logits + row * columns + column, mask=column < columns, other=float("-inf")).to(tl.float32)
    temperature, top_p = tl.load(temperatures + row), tl.load(top_ps + row)
    top_k, seed, frame = tl.load(top_ks + row), tl.load(seeds + row), tl.load(frames + row)
    top_k = tl.minimum(top_k, columns).to(tl.int32)
    token = _draw(values, column, temperature, top_p, top_k, seed, frame, first_draw)
    if SEMANTIC:
        window = tl.arange(0, 16)
        past = tl.load(recent + row * WINDOW + window, mask=window < WINDOW, other=-1)
        repeated = tl.max((past == token).to(tl.int32), 0)
        if (repeated == 1) & (token != stop) & (temperature != 0):
            token = _draw(values, column, 1.0, 0.9, top_k, seed, frame, first_draw + 1)
    tl.store(out + row, token.to(tl.int64))


def sample(
    logits: Tensor,
    temperature: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    seed: Tensor,
    frame: Tensor,
    first_draw: int,
    recent: Tensor | None = None,
) -> Tensor:
    """Draw a token a row from logits (rows, columns); every parameter is (rows,) on the device. Returns (rows,) int64.

    With recent (rows, REPEAT_WINDOW) it is the main token, drawn repetition-aware with draws first_draw and the
    next; the last column is the stop token.
    """
    rows, columns = logits.shape
    if not logits.is_contiguous() or any(p.shape != (rows,) for p in (temperature, top_p, top_k, seed, frame)):
        raise ValueError(f"logits {tuple(logits.shape)} must be contiguous and every parameter {(rows,)}")
    if recent is not None and (recent.shape != (rows, REPEAT_WINDOW) or not recent.is_contiguous()):
        raise ValueError(f"recent {tuple(recent.shape)} must be contiguous {(rows, REPEAT_WINDOW)}")
    out = torch.empty(rows, dtype=torch.int64, device=logits.device)
    _sample[(rows,)](
        logits, temperature, top_p, top_k, seed, frame, logits if recent is None else recent, out, columns,
        first_draw, columns - 1,
        SEMANTIC=recent is not None, WINDOW=REPEAT_WINDOW, BLOCK=triton.next_power_of_2(columns), num_warps=8,
    )  # fmt: skip
    return out


def sample_twin(
    logits: Tensor,
    temperature: Tensor,
    top_p: Tensor,
    top_k: Tensor,
    seed: Tensor,
    frame: Tensor,
    first_draw: int,
    recent: Tensor | None = None,
) -> Tensor:
    """The same in plain torch."""
    ranks = min(int(top_k.max()), logits.shape[1])
    noise = exponential_noise(seed, frame, first_draw + 2, ranks)[:, first_draw:]
    if recent is None:
        return draw(logits, temperature, top_p, top_k, noise[:, 0])
    return draw_semantic(logits, temperature, top_p, top_k, noise, recent, logits.shape[1] - 1)

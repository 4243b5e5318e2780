"""Samples a token from logits in one kernel: top-p, top-k, temperature, counter-based noise, and a family's rule.

token = argmaxᵢ softmax(logits / temperature)[i] / Eᵢ over the entries left by top-p and top-k, with Eᵢ ~ Exp(1): the
exponential race, which is the Gumbel-max trick without its logarithm. Eᵢ = −log u is a pure function of (seed, frame,
draw, rank) by Philox 4×32-10 (Salmon et al. 2011). Triton's `tl.randint4x` is the same generator with a counter of one
word; here all four words are needed, so the rounds are written out. Sorting a row in registers by groups is our own.
A program handles a row. Its best 32 entries are found at once, 64 by a rule whose usual top-k is 50; only for a larger
top-k are the rest followed one by one. The rules are those of `engine.model.draw_rules`, which are the twins, and the
random numbers those of `engine.model.sampling`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from engine.kernels.launch import early_start, grid_wait, launch, launch_dependents
from engine.model.draw_rules import LEAST_FRAMES, PENALTY, Penalised
from engine.model.slots import Slots

LEAST: tl.constexpr = tl.constexpr(-0x7FFFFFFFFFFFFFFF)
_PENALTY: tl.constexpr = tl.constexpr(PENALTY)
_LEAST_FRAMES: tl.constexpr = tl.constexpr(LEAST_FRAMES)
_TOP_RANKS, _TOP_RANKS_PENALISED = (32, 32), (64, 8)
"""Ranks that are found at once, while later ones are followed one by one; and columns of a group."""


@dataclass(frozen=True, eq=False, slots=True)
class EmbedOut:
    """Outputs for sampled codes and their embeddings: codes (rows,) int64 of any stride, x (rows, width) from
    embeddings."""

    codes: Tensor
    embeddings: Tensor
    x: Tensor

    def fits(self, rows: int) -> bool:
        """Whether this many rows fit."""
        shapes = self.codes.shape == (rows,) and self.x.shape == (rows, self.embeddings.shape[1])
        return shapes and self.x.is_contiguous() and self.embeddings.is_contiguous()


@triton.jit
def _exponential_noise(seed, frame, index, rank):
    """Exp(1) variate number `rank` of draw `index`: −log of one word of Philox 4×32-10 (`exponential_noise`)."""
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
def _tempered(logits, memory, column, columns, heat, SEMANTIC: tl.constexpr):
    """By the rule `Penalised`, the scores of these columns' logits; memory (columns,) counts main tokens."""
    if SEMANTIC:
        is_said = tl.load(memory + column, mask=column < columns, other=0) > 0
        penalised = tl.where(
            logits < 0, logits * _PENALTY, tl.div_rn(logits, tl.full(logits.shape, _PENALTY, tl.float32))
        )
        logits = tl.where(is_said, penalised, logits)
    return tl.div_rn(logits, tl.zeros_like(logits) + heat)


@triton.jit
def _ranked(
    line, logits, column, columns, last, memory, heat, TOP: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    HAS_LAST: tl.constexpr, PENALISED: tl.constexpr,
):  # fmt: skip
    """For a row's logits (float32, −inf past the end): the best, the logarithm of the sum of all weights, the keys, and
    the TOP largest keys in order.

    HAS_LAST: column number `columns` has the logit `last`, kept separately so that the others are a power of two.
    """
    # Value and column in one integer, so that a comparison finds the best and, among equals, the first.
    key = _key(logits, column)
    best = tl.maximum(tl.max(logits, 0), last)
    log_total = best + tl.log(tl.sum(tl.exp(logits - best), 0) + tl.exp(last - best))
    # The best entries are in the groups with the best maxima.
    best_groups = tl.topk(tl.max(tl.reshape(key, (BLOCK // GROUP, GROUP)), 1), TOP)
    group = _column(best_groups) // GROUP
    candidates = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    candidate_logits = tl.load(line + candidates, mask=candidates < columns, other=float("-inf")).to(tl.float32)
    if PENALISED:
        candidate_logits = _tempered(candidate_logits, memory, candidates, columns, heat, HAS_LAST)
    tops = tl.topk(tl.reshape(_key(candidate_logits, candidates), (TOP * GROUP,)), TOP)
    if HAS_LAST:
        last_keys = tl.where(tl.arange(0, TOP) == 0, _key(last, columns), LEAST)
        tops = tl.topk(tl.reshape(tl.join(tops, last_keys), (2 * TOP,)), TOP)
    return best, log_total, key, tops


@triton.jit
def _rest(key, last_key, tops):
    """The keys after those of TOP, of which the others are LEAST."""
    least = tl.min(tops, 0)
    return tl.where(key < least, key, LEAST), tl.where(last_key < least, last_key, LEAST)


@triton.jit
def _log_total_of(best, key, last_key, tops, limit, top_p):
    """The logarithm of the sum of the weights of the first `limit` ranks; of those found at once where top_p is 1."""
    rank = tl.arange(0, tops.shape[0])
    total = tl.sum(tl.where(rank < limit, tl.exp(_value(tops) - best), 0.0), 0)
    remaining, remaining_last = _rest(key, last_key, tops)
    position, end = rank.shape[0] + 0 * limit, tl.where(top_p < 1, limit, 0)
    while position < end:
        top = tl.maximum(tl.max(remaining, 0), remaining_last)
        remaining = tl.where(remaining == top, LEAST, remaining)
        remaining_last = tl.where(remaining_last == top, LEAST, remaining_last)
        total += tl.exp(_value(top) - best)
        position += 1
    return best + tl.log(total)


@triton.jit
def _draw(
    best, log_total, key, last_key, tops, temperature, top_p, top_k, seed, frame, index, PENALISED: tl.constexpr
):  # fmt: skip
    """The sampled column of a row after `_ranked`.

    PENALISED: its logits are tempered, top-p is of the ranks within top-k, and the rank that crosses it stays.
    """
    heat = tl.maximum(temperature, 1e-5)
    limit = tl.where(temperature == 0, 1, top_k).to(tl.int32)
    if PENALISED:
        heat = 1.0
        log_total = _log_total_of(best, key, last_key, tops, limit, top_p)
        top_p = tl.where(top_p < 1, top_p, 2.0)
    # All ranks that most callers need, at once;
    rank = tl.arange(0, tops.shape[0])
    value = _value(tops)
    share = tl.exp(value - log_total)
    if PENALISED:
        is_within = tl.cumsum(share, 0) - share < top_p
    else:
        is_within = tl.cumsum(share, 0) <= top_p
    is_allowed = (rank == 0) | (is_within & (rank < limit))
    score = tl.where(is_allowed, tl.exp((value - best) / heat) / _exponential_noise(seed, frame, index, rank), -1.0)
    winning = tl.max(score, 0)
    first = tl.min(tl.where(score == winning, rank, rank.shape[0]), 0)
    winner = tl.sum(tl.where(rank == first, _column(tops), 0), 0)
    # the others one by one, to the end of the list.
    cumulative = tl.sum(share, 0)
    remaining, remaining_last = _rest(key, last_key, tops)
    end = tl.where(cumulative <= top_p, limit, 0)
    position = rank.shape[0] + 0 * limit
    while position < end:
        top = tl.maximum(tl.max(remaining, 0), remaining_last)
        remaining = tl.where(remaining == top, LEAST, remaining)
        remaining_last = tl.where(remaining_last == top, LEAST, remaining_last)
        before = cumulative
        cumulative += tl.exp(_value(top) - log_total)
        if (before < top_p) if PENALISED else (cumulative <= top_p):
            score_here = tl.exp((_value(top) - best) / heat) / _exponential_noise(seed, frame, index, position)
            if score_here > winning:
                winning = score_here
                winner = _column(top)
            position += 1
        else:
            position = end
    return winner


@triton.jit
def _key(logit, column):
    bits = (logit + 0.0).to(tl.int32, bitcast=True)
    return (tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF).to(tl.int64) << 16) | (0xFFFF - column).to(tl.int64)


@triton.jit
def _value(key):
    ordered = (key >> 16).to(tl.int32)
    return tl.where(ordered >= 0, ordered, ordered ^ 0x7FFFFFFF).to(tl.float32, bitcast=True)


@triton.jit
def _column(key):
    return 0xFFFF - (key & 0xFFFF).to(tl.int32)


@triton.jit(do_not_specialize=["first_draw"], do_not_specialize_on_alignment=["codes"])  # each codebook's column
def _sample(
    logits, slots, temperatures, top_ps, top_ks, seeds, frames, memory, out, codes, embeddings, x,
    columns, width, first_draw, stop, code_stride,
    SEMANTIC: tl.constexpr, REMEMBERED: tl.constexpr, BLOCK: tl.constexpr, TOP: tl.constexpr, GROUP: tl.constexpr,
    EMBED: tl.constexpr, STEP: tl.constexpr, PENALISED: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Grid (rows,): samples a token of logits (rows, columns), and where EMBED writes its embeddings (tokens, width) to
    x.

    Parameters are (slots in all,), memory (slots in all, REMEMBERED). SEMANTIC: the main token, with the stop token as
    the last column, and unless PENALISED with a second sample where the first repeats a recent one.
    """
    row = tl.program_id(0)
    if PDL:
        launch_dependents()
        grid_wait()
    slot = tl.load(slots + row)
    column = tl.arange(0, BLOCK)
    line = logits + row * columns
    last = tl.full((), float("-inf"), tl.float32)
    if SEMANTIC:
        last = tl.load(line + stop).to(tl.float32)
    others = stop if SEMANTIC else columns
    values = tl.load(line + column, mask=column < others, other=float("-inf")).to(tl.float32)
    temperature, top_p = tl.load(temperatures + slot), tl.load(top_ps + slot)
    top_k, seed, frame = tl.load(top_ks + slot), tl.load(seeds + slot), tl.load(frames + slot)
    top_k = tl.minimum(top_k, columns).to(tl.int32)
    remembered, heat = memory + slot * REMEMBERED, tl.where(temperature == 0, 1.0, temperature)
    if PENALISED:
        values = _tempered(values, remembered, column, others, heat, SEMANTIC)
        last = tl.where(frame < _LEAST_FRAMES, float("-inf"), tl.div_rn(last, heat))
    best, log_total, key, tops = _ranked(
        line, values, column, others, last, remembered, heat, TOP, GROUP, BLOCK, SEMANTIC, PENALISED
    )
    last_key = _key(last, others)
    token = _draw(best, log_total, key, last_key, tops, temperature, top_p, top_k, seed, frame, first_draw, PENALISED)
    if SEMANTIC and not PENALISED:
        window = tl.arange(0, 16)
        past = tl.load(remembered + window, mask=window < REMEMBERED, other=-1)
        repeated = tl.max((past == token).to(tl.int32), 0)
        if (repeated == 1) & (token != stop) & (temperature != 0):
            token = _draw(best, log_total, key, last_key, tops, 1.0, 0.9, top_k, seed, frame, first_draw + 1, False)
    tl.store(out + row, token.to(tl.int64))
    if EMBED:
        code = tl.where(token == stop, 0, token) if SEMANTIC else token
        tl.store(codes + row * code_stride, code.to(tl.int64))
        for start in range(0, width, STEP):
            at = start + tl.arange(0, STEP)
            inside = at < width
            piece = tl.load(embeddings + code.to(tl.int64) * width + at, mask=inside)
            tl.store(x + row * width + at, piece, mask=inside)


def sample(
    logits: Tensor, slots: Tensor, state: Slots, first_draw: int, semantic: bool = False, into: EmbedOut | None = None
) -> Tensor:
    """Sample a token per row from logits (rows, columns), with the state of these slots (rows,). Returns (rows,) int64.

    semantic: the main token, sampled by the state's rule with draws first_draw and the next; the last column is the
    stop token. `into` receives the sampled codes, with 0 at a stop.
    """
    rows, columns = logits.shape
    if not logits.is_contiguous() or slots.shape != (rows,) or columns > 65536:
        raise ValueError(f"logits {tuple(logits.shape)} must be contiguous, at most 65,536 wide, and slots {(rows,)}")
    if into is not None and not into.fits(rows):
        raise ValueError(f"the tokens of {rows} rows do not fit codes and x of {len(into.codes)}")
    out = torch.empty(rows, dtype=torch.int64, device=logits.device)
    is_penalised = isinstance(state.rule, Penalised)
    top, group = _TOP_RANKS_PENALISED if is_penalised else _TOP_RANKS
    block = max(triton.next_power_of_2(columns - semantic), 2 * top)
    launch(
        _sample, (rows,),
        logits, slots, state.temperature, state.top_p, state.top_k, state.seed, state.frame,
        state.memory if semantic else logits, out,
        into.codes if into else out, into.embeddings if into else logits, into.x if into else logits,
        columns, into.x.shape[1] if into else 0, first_draw, columns - 1, into.codes.stride(0) if into else 0,
        SEMANTIC=semantic, REMEMBERED=state.rule.remembered, BLOCK=block, TOP=top, GROUP=min(group, block // top),
        EMBED=into is not None, STEP=1024, PENALISED=is_penalised, num_warps=16 if semantic else 8,
        **early_start(logits.device),
    )  # fmt: skip
    return out

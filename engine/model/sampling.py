"""Samples tokens from logits: upstream's order of top-p, top-k and temperature, in float32, counter-based randomness.

Upstream (fish-speech main): sort the raw logits; drop every entry at which the cumulative softmax of the
un-tempered logits has passed top_p (also the one that crosses it) and every entry of rank ≥ top_k, except that the
best always stays; only then divide by the temperature, softmax, and sample by argmax(p / Exp(1)).

Peers sample in bfloat16, where equally likely tokens come out up to 12 % apart; here it is float32. Randomness is a
pure function of (seed, frame, draw, rank), so a seeded take depends neither on its batch nor on earlier work.
"""

from __future__ import annotations

import torch
from torch import Tensor

REPEAT_WINDOW = 10
"""Repetition-aware sampling looks back at this many main tokens (upstream's RAS_WIN_SIZE)."""
REPEAT_TEMPERATURE, REPEAT_TOP_P = 1.0, 0.9
_MASK32 = 0xFFFFFFFF


def draw(logits: Tensor, temperature: Tensor, top_p: Tensor, top_k: Tensor, noise: Tensor) -> Tensor:
    """Sample one index per row.

    logits (rows, n); temperature, top_p (rows,) float32; top_k (rows,) int64; noise (rows, ranks) from
    `exponential_noise`, ranks ≥ every top_k or n. Temperature 0 takes the best. Returns (rows,) int64.
    """
    logits = logits.float()
    ranks = min(noise.shape[1], logits.shape[1])
    # Equal logits, common in bfloat16, rank by index: topk's order among them would depend on `ranks`, and so on the
    # row's neighbours.
    best, index = (part[:, :ranks] for part in logits.sort(dim=-1, descending=True, stable=True))
    cumulative = (best - logits.logsumexp(-1, keepdim=True)).exp().cumsum(-1)
    rank = torch.arange(ranks, device=logits.device)
    is_dropped = (cumulative > top_p[:, None]) | (rank >= top_k[:, None])
    is_dropped = (is_dropped | (temperature == 0)[:, None]) & (rank > 0)
    tempered = (best / temperature.clamp(min=1e-5)[:, None]).masked_fill(is_dropped, float("-inf"))
    choice = (tempered.softmax(-1) / noise[:, :ranks]).argmax(-1, keepdim=True)
    return index.gather(1, choice).squeeze(1)


def exponential_noise(seed: Tensor, frame: Tensor, draws: int, ranks: int) -> Tensor:
    """Exp(1) variates (rows, draws, ranks) float32, a pure function of seed (rows,) and frame (rows,), both int64.

    Philox 4×32-10 (Salmon et al. 2011; the generator behind torch.cuda's, numpy's and Triton's) with key = seed and
    counter = (rank / 4, draw, frame, 0), one of its four words per rank.
    """
    blocks = -(-ranks // 4)
    shape = (len(seed), draws, blocks)
    device = seed.device
    counter = [
        torch.arange(blocks, device=device).expand(shape),
        torch.arange(draws, device=device)[:, None].expand(shape),
        frame[:, None, None].expand(shape),
        torch.zeros((), dtype=torch.int64, device=device).expand(shape),
    ]
    words = _philox(counter, seed[:, None, None] & _MASK32, (seed[:, None, None] >> 32) & _MASK32)
    bits = torch.stack(words, -1).flatten(2)[:, :, :ranks]
    # 23 bits and a half stay exact in float32; with one bit more, some would round to 1, and 1 means noise 0.
    uniform = ((bits >> 9).float() + 0.5) * 2.0**-23
    return -uniform.log()


def _philox(counter: list[Tensor], key0: Tensor, key1: Tensor) -> list[Tensor]:
    """Ten rounds on unsigned 32-bit words held in int64; products wrap, which leaves both halves correct."""
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c2 = ((p1 >> 32) & _MASK32) ^ c1 ^ key0, ((p0 >> 32) & _MASK32) ^ c3 ^ key1
        c1, c3 = p1 & _MASK32, p0 & _MASK32
        key0, key1 = (key0 + 0x9E3779B9) & _MASK32, (key1 + 0xBB67AE85) & _MASK32
    return [c0, c1, c2, c3]


def host_frame(codes: Tensor, ended: Tensor) -> Tensor:
    """A frame in the layout sent to the host: codes (rows, codebooks), then whether the row has ended; int16."""
    return torch.cat([codes, ended[:, None]], 1).to(torch.int16)

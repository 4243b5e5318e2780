"""Samples on the CPU, one row at a time: `sampling`'s rule in numpy, at a tenth of the cost of torch's many calls."""

from __future__ import annotations

import numpy as np
import torch

from engine.model.sampling import REPEAT_TEMPERATURE, REPEAT_TOP_P, exponential_noise
from engine.model.slots import Slots

NOISE_FRAMES = 16
"""Frames whose noise is computed together, which takes about two hundred operators for any number."""

_LEAST_TEMPERATURE = np.float32(1e-5)


class TopLogits:
    """One row's best logits in order, equal ones by index; a main token is sampled from them twice."""

    def __init__(self, logits: np.ndarray, ranks: int) -> None:
        """logits (n,) float32; ranks: maximum number of candidates."""
        ranks = min(ranks, len(logits))
        threshold = np.partition(logits, len(logits) - ranks)[len(logits) - ranks]
        candidates = np.flatnonzero(~(logits < threshold))  # so that NaN also leaves candidates
        self._index = candidates[np.argsort(-logits[candidates], kind="stable")[:ranks]]
        self._best = logits[self._index]
        differences = self._best - self._best[0]
        self._cumulative = (np.exp(differences) / np.exp(logits - self._best[0]).sum()).cumsum()

    def draw(self, temperature: np.float32, top_p: np.float32, noise: np.ndarray) -> int:
        """An index into the logits; noise (at least ranks,) from `exponential_noise`. Temperature 0 takes the best."""
        if temperature == 0:
            return int(self._index[0])
        count = max(1, int(self._cumulative.searchsorted(top_p, side="right")))
        tempered = (self._best[:count] - self._best[0]) / max(temperature, _LEAST_TEMPERATURE)
        return int(self._index[np.argmax(np.exp(tempered) / noise[:count])])


def draw(logits: np.ndarray, temperature: np.float32, top_p: np.float32, top_k: int, noise: np.ndarray) -> int:
    """`sampling.draw` for one row: logits (n,) float32, noise (at least top_k,)."""
    return TopLogits(logits, top_k).draw(temperature, top_p, noise)


def draw_semantic(
    logits: np.ndarray,
    temperature: np.float32,
    top_p: np.float32,
    top_k: int,
    noise: np.ndarray,
    recent: np.ndarray,
    stop: int,
) -> int:
    """`sampling.draw_semantic` for one row: noise (2, at least top_k), recent (REPEAT_WINDOW,)."""
    top = TopLogits(logits, top_k)
    token = top.draw(temperature, top_p, noise[0])
    if temperature == 0 or token == stop or token not in recent:
        return token
    return top.draw(np.float32(REPEAT_TEMPERATURE), np.float32(REPEAT_TOP_P), noise[1])


class SlotDraws:
    """Samples for the rows in these slots, through numpy views of the slots' tensors."""

    def __init__(self, slots: Slots, draws: int) -> None:
        """draws: samples per frame, two of them for the main token."""
        self._temperature, self._top_p, self._top_k = (
            part.numpy() for part in (slots.temperature, slots.top_p, slots.top_k)
        )
        self._seed, self._frame, self._recent = (part.numpy() for part in (slots.seed, slots.frame, slots.recent))
        self._draws = draws
        self._noise: dict[int, tuple[tuple[int, int, int], np.ndarray]] = {}
        """By slot: the seed, top_k and block number of NOISE_FRAMES it was computed for, and (NOISE_FRAMES, draws,
        top_k)."""

    def semantic(self, slot: int, logits: np.ndarray, stop: int) -> int:
        """The frame's main token, which is sampled first."""
        key = int(self._seed[slot]), int(self._top_k[slot]), int(self._frame[slot]) // NOISE_FRAMES
        if slot not in self._noise or self._noise[slot][0] != key:
            self._noise[slot] = key, self._make_noise(*key)
        return draw_semantic(logits, *self._parameters(slot), self._frame_noise(slot)[:2], self._recent[slot], stop)

    def residual(self, slot: int, book: int, logits: np.ndarray) -> int:
        """The code of a codebook, counted from 1."""
        return draw(logits, *self._parameters(slot), self._frame_noise(slot)[book + 1])

    def advance(self, slots: list[int], first: np.ndarray) -> None:
        """The frame of these slots is complete; first: its codes 0."""
        self._recent[slots, :-1], self._recent[slots, -1] = self._recent[slots, 1:], first
        self._frame[slots] += 1

    def _parameters(self, slot: int) -> tuple[np.float32, np.float32, int]:
        return self._temperature[slot], self._top_p[slot], int(self._top_k[slot])

    def _frame_noise(self, slot: int) -> np.ndarray:
        return self._noise[slot][1][self._frame[slot] % NOISE_FRAMES]

    def _make_noise(self, seed: int, top_k: int, part: int) -> np.ndarray:
        frames = torch.arange(NOISE_FRAMES) + part * NOISE_FRAMES
        return exponential_noise(torch.full((NOISE_FRAMES,), seed), frames, self._draws, top_k).numpy()

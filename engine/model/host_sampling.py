"""Drawing on the host, a row at a time: `sampling`'s rule in numpy, which costs a CPU a tenth of torch's many calls."""

from __future__ import annotations

import numpy as np
import torch

from engine.model.sampling import REPEAT_TEMPERATURE, REPEAT_TOP_P, exponential_noise
from engine.model.slots import Slots

NOISE_FRAMES = 16
"""Frames whose noise is made at once: some two hundred operators, whatever their number."""

_LEAST_TEMPERATURE = np.float32(1e-5)


class Ranked:
    """One row's best logits in order, equal ones by index; a main token is drawn from them twice."""

    def __init__(self, logits: np.ndarray, ranks: int) -> None:
        """logits (n,) float32; ranks: how many may be drawn at most."""
        ranks = min(ranks, len(logits))
        least = np.partition(logits, len(logits) - ranks)[len(logits) - ranks]
        among = np.flatnonzero(~(logits < least))  # so that something is drawn even of what is not a number
        self._index = among[np.argsort(-logits[among], kind="stable")[:ranks]]
        self._best = logits[self._index]
        above = self._best - self._best[0]
        self._cumulative = (np.exp(above) / np.exp(logits - self._best[0]).sum()).cumsum()

    def draw(self, temperature: np.float32, top_p: np.float32, noise: np.ndarray) -> int:
        """An index into the logits; noise (at least ranks,) from `exponential_noise`. Temperature 0 takes the best."""
        if temperature == 0:
            return int(self._index[0])
        kept = max(1, int(self._cumulative.searchsorted(top_p, side="right")))
        tempered = (self._best[:kept] - self._best[0]) / max(temperature, _LEAST_TEMPERATURE)
        return int(self._index[np.argmax(np.exp(tempered) / noise[:kept])])


def draw(logits: np.ndarray, temperature: np.float32, top_p: np.float32, top_k: int, noise: np.ndarray) -> int:
    """`sampling.draw` of one row: logits (n,) float32, noise (at least top_k,)."""
    return Ranked(logits, top_k).draw(temperature, top_p, noise)


def draw_semantic(
    logits: np.ndarray,
    temperature: np.float32,
    top_p: np.float32,
    top_k: int,
    noise: np.ndarray,
    recent: np.ndarray,
    stop: int,
) -> int:
    """`sampling.draw_semantic` of one row: noise (2, at least top_k), recent (REPEAT_WINDOW,)."""
    ranked = Ranked(logits, top_k)
    usual = ranked.draw(temperature, top_p, noise[0])
    if temperature == 0 or usual == stop or usual not in recent:
        return usual
    return ranked.draw(np.float32(REPEAT_TEMPERATURE), np.float32(REPEAT_TOP_P), noise[1])


class SlotDraws:
    """Draws for the rows in these slots, by the slots' own tensors as numpy sees them."""

    def __init__(self, slots: Slots, draws: int) -> None:
        """draws: how many a frame has, two of them of the main token."""
        self._temperature, self._top_p, self._top_k = (
            part.numpy() for part in (slots.temperature, slots.top_p, slots.top_k)
        )
        self._seed, self._frame, self._recent = (part.numpy() for part in (slots.seed, slots.frame, slots.recent))
        self._draws = draws
        self._noise: dict[int, tuple[tuple[int, int, int], np.ndarray]] = {}
        """By slot: seed, top_k and NOISE_FRAMES' number that it was made for, and (NOISE_FRAMES, draws, top_k)."""

    def semantic(self, slot: int, logits: np.ndarray, stop: int) -> int:
        """The frame's main token, the first thing that is drawn of it."""
        wanted = int(self._seed[slot]), int(self._top_k[slot]), int(self._frame[slot]) // NOISE_FRAMES
        if slot not in self._noise or self._noise[slot][0] != wanted:
            self._noise[slot] = wanted, self._make(*wanted)
        return draw_semantic(logits, *self._how(slot), self._of_frame(slot)[:2], self._recent[slot], stop)

    def residual(self, slot: int, book: int, logits: np.ndarray) -> int:
        """The code of a codebook from 1 on."""
        return draw(logits, *self._how(slot), self._of_frame(slot)[book + 1])

    def advance(self, slots: list[int], first: np.ndarray) -> None:
        """The frame of these slots is over; first: its codes 0."""
        self._recent[slots, :-1], self._recent[slots, -1] = self._recent[slots, 1:], first
        self._frame[slots] += 1

    def _how(self, slot: int) -> tuple[np.float32, np.float32, int]:
        return self._temperature[slot], self._top_p[slot], int(self._top_k[slot])

    def _of_frame(self, slot: int) -> np.ndarray:
        return self._noise[slot][1][self._frame[slot] % NOISE_FRAMES]

    def _make(self, seed: int, top_k: int, part: int) -> np.ndarray:
        frames = torch.arange(NOISE_FRAMES) + part * NOISE_FRAMES
        return exponential_noise(torch.full((NOISE_FRAMES,), seed), frames, self._draws, top_k).numpy()

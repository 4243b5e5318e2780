"""Samples on the CPU, one row at a time: `sampling`'s rule in numpy, at a tenth of the cost of torch's many calls."""

from __future__ import annotations

import numpy as np
import torch

from engine.model.draw_rules import HostDraw, HostParameters
from engine.model.sampling import exponential_noise
from engine.model.slots import Slots

NOISE_FRAMES = 16
"""Frames whose noise is computed together, which takes about two hundred operators for any number."""

_LEAST_TEMPERATURE = np.float32(1e-5)


def draw(logits: np.ndarray, temperature: np.float32, top_p: np.float32, top_k: int, noise: np.ndarray) -> int:
    """`sampling.draw` for one row: logits (n,) float32, noise (at least top_k,) from `exponential_noise`."""
    ranks = min(top_k, len(logits))
    threshold = np.partition(logits, len(logits) - ranks)[len(logits) - ranks]
    candidates = np.flatnonzero(~(logits < threshold))  # so that NaN also leaves candidates
    index = candidates[np.argsort(-logits[candidates], kind="stable")[:ranks]]  # in order, equal ones by index
    if temperature == 0:
        return int(index[0])
    differences = logits[index] - logits[index[0]]
    cumulative = (np.exp(differences) / np.exp(logits - logits[index[0]]).sum()).cumsum()
    count = max(1, int(cumulative.searchsorted(top_p, side="right")))
    tempered = differences[:count] / max(temperature, _LEAST_TEMPERATURE)
    return int(index[np.argmax(np.exp(tempered) / noise[:count])])


class SlotDraws:
    """Samples for the rows in these slots, through numpy views of the slots' tensors."""

    def __init__(self, slots: Slots, draws: int, draw: HostDraw = draw) -> None:
        """draws: samples per frame, two of them for the main token."""
        self._draw, self._rule = draw, slots.rule
        self._temperature, self._top_p, self._top_k = (
            part.numpy() for part in (slots.temperature, slots.top_p, slots.top_k)
        )
        self._seed, self._frame, self._memory = (part.numpy() for part in (slots.seed, slots.frame, slots.memory))
        self._draws = draws
        self._noise: dict[int, tuple[tuple[int, int, int], np.ndarray]] = {}
        """By slot: the seed, top_k and block number of NOISE_FRAMES it was computed for, and (NOISE_FRAMES, draws,
        top_k)."""

    def semantic(self, slot: int, logits: np.ndarray) -> int:
        """The frame's main token, which is sampled first."""
        key = int(self._seed[slot]), int(self._top_k[slot]), int(self._frame[slot]) // NOISE_FRAMES
        if slot not in self._noise or self._noise[slot][0] != key:
            self._noise[slot] = key, self._make_noise(*key)
        how, memory, frame = self.parameters(slot), self._memory[slot], int(self._frame[slot])
        return self._rule.main_on_host(self._draw, logits, how, self.noise(slot)[:2], memory, frame)

    def residual(self, slot: int, book: int, logits: np.ndarray) -> int:
        """The code of a codebook, counted from 1."""
        return self._rule.residual_on_host(self._draw, logits, self.parameters(slot), self.noise(slot)[book + 1])

    def advance(self, slots: list[int], first: np.ndarray) -> None:
        """The frame of these slots is complete; first: its codes 0."""
        self._rule.remember(self._memory, slots, first)
        self._frame[slots] += 1

    def parameters(self, slot: int) -> HostParameters:
        """Temperature, top-p and top-k."""
        return self._temperature[slot], self._top_p[slot], int(self._top_k[slot])

    def noise(self, slot: int) -> np.ndarray:
        """(draws, top_k) of the frame that `semantic` has begun."""
        return self._noise[slot][1][self._frame[slot] % NOISE_FRAMES]

    def _make_noise(self, seed: int, top_k: int, part: int) -> np.ndarray:
        frames = torch.arange(NOISE_FRAMES) + part * NOISE_FRAMES
        return exponential_noise(torch.full((NOISE_FRAMES,), seed), frames, self._draws, top_k).numpy()

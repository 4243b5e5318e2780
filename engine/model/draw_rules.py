"""How each family samples a frame: what is barred, what counts as repetition, and what a row remembers for that.

The graphs over fused kernels have `RepetitionAware` built in; every other frame asks its model's rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.model.sampling import REPEAT_TEMPERATURE, REPEAT_TOP_P, REPEAT_WINDOW, draw

Parameters = tuple[Tensor, Tensor, Tensor]
"""Temperature, top-p and top-k, each (rows,)."""
HostParameters = tuple[np.float32, np.float32, int]
HostDraw = Callable[[np.ndarray, np.float32, np.float32, int, np.ndarray], int]
"""`host_sampling.draw`, or the same in native code."""


class DrawRule(Protocol):
    """Logits of the main token have a column for each semantic code and a last one for the stop token."""

    remembered: int
    """Numbers remembered about each row, int64."""

    def main(self, logits: Tensor, how: Parameters, noise: Tensor, memory: Tensor, frame: Tensor) -> Tensor:
        """The frame's main tokens (rows,); noise (rows, 2, ranks), memory (rows, remembered), frame (rows,)."""

    def residual(self, logits: Tensor, how: Parameters, noise: Tensor) -> Tensor:
        """The codes of another codebook (rows,); noise (rows, ranks)."""

    def main_on_host(
        self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray, memory: np.ndarray, frame: int
    ) -> int:
        """`main` for one row, in numpy."""

    def residual_on_host(self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray) -> int:
        """`residual` for one row, in numpy."""

    def recall(self, tokens: np.ndarray) -> np.ndarray:
        """The memory of a row whose take has had these main tokens, int64 (frames,)."""

    def remember(self, memory: Any, slots: Any, tokens: Any) -> None:
        """Add a frame's main tokens (slots,) to the memory of these slots, in torch or numpy."""

    def correct(self, memory: Tensor, slots: Tensor, wrong: Tensor, tokens: Tensor) -> None:
        """Replace the main tokens remembered last."""


class RepetitionAware:
    """Fish Audio's rule (RAS).

    One sample with the request's parameters and one at temperature 1, top-p 0.9; if the first repeats one of the
    last ten main tokens, the second is used. The stop token never counts as a repetition.
    """

    remembered = REPEAT_WINDOW

    def __init__(self, stop: int) -> None:
        self._stop = stop

    def main(self, logits: Tensor, how: Parameters, noise: Tensor, memory: Tensor, frame: Tensor) -> Tensor:
        temperature, top_p, top_k = how
        token = draw(logits, temperature, top_p, top_k, noise[:, 0])
        is_greedy = temperature == 0
        other_token = draw(
            logits,
            torch.where(is_greedy, temperature, torch.full_like(temperature, REPEAT_TEMPERATURE)),
            torch.full_like(top_p, REPEAT_TOP_P),
            top_k,
            noise[:, 1],
        )
        is_repeated = (memory == token[:, None]).any(-1) & (token != self._stop)
        return torch.where(is_repeated, other_token, token)

    def residual(self, logits: Tensor, how: Parameters, noise: Tensor) -> Tensor:
        return draw(logits, *how, noise)

    def main_on_host(
        self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray, memory: np.ndarray, frame: int
    ) -> int:
        temperature, _, top_k = how
        token = draw(logits, *how, noise[0])
        if temperature == 0 or token == self._stop or token not in memory:
            return token
        return draw(logits, np.float32(REPEAT_TEMPERATURE), np.float32(REPEAT_TOP_P), top_k, noise[1])

    def residual_on_host(self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray) -> int:
        return draw(logits, *how, noise)

    def recall(self, tokens: np.ndarray) -> np.ndarray:
        recent = np.full(REPEAT_WINDOW, -1, np.int64)  # the last main tokens, newest last, −1 where empty
        recent[REPEAT_WINDOW - min(len(tokens), REPEAT_WINDOW) :] = tokens[-REPEAT_WINDOW:]
        return recent

    def remember(self, memory: Any, slots: Any, tokens: Any) -> None:
        memory[slots, :-1], memory[slots, -1] = memory[slots, 1:], tokens

    def correct(self, memory: Tensor, slots: Tensor, wrong: Tensor, tokens: Tensor) -> None:
        memory[slots, -1] = tokens


def rule_of(config: ModelConfig) -> DrawRule:
    """The rule by which a model of this family samples."""
    return RepetitionAware(config.semantic_size)

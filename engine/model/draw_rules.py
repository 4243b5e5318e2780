"""How each family samples a frame: which tokens it excludes, what it counts as repetition, and what it remembers.

The kernel `sample` has each of them built in; every other frame asks its model's rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.model.sampling import REPEAT_TEMPERATURE, REPEAT_TOP_P, REPEAT_WINDOW, draw

PENALTY, LEAST_FRAMES = 1.05, 2
"""Of Qwen3-TTS: what the logit of a main token that was said before is divided by, and frames before a take may end."""
KEEP_ALL = 2.0
"""A top-p that drops nothing, not even by rounding."""

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


class Penalised:
    """Qwen3-TTS's rule, in the order of Hugging Face's: penalty, bars, temperature, top-k, then top-p of the rest.

    A main token that the take has had already becomes less likely, and its first frames cannot be its end. Each token
    is remembered by the number of its frames, so that the last one can be taken back.
    """

    def __init__(self, stop: int) -> None:
        self._stop, self.remembered = stop, stop + 1

    def main(self, logits: Tensor, how: Parameters, noise: Tensor, memory: Tensor, frame: Tensor) -> Tensor:
        logits = logits.float()
        penalised = torch.where(logits < 0, logits * PENALTY, logits / PENALTY)
        logits = torch.where(memory > 0, penalised, logits)
        logits[:, self._stop] = logits[:, self._stop].masked_fill(frame < LEAST_FRAMES, -torch.inf)
        return self.residual(logits, how, noise[:, 0])

    def residual(self, logits: Tensor, how: Parameters, noise: Tensor) -> Tensor:
        temperature, top_p, top_k = how
        is_greedy = temperature == 0
        scores = logits.float() / temperature.masked_fill(is_greedy, 1.0)[:, None]
        best, index = scores.sort(dim=-1, descending=True, stable=True)
        ranks = torch.arange(best.shape[1], device=best.device)
        best = best.masked_fill(ranks >= top_k[:, None], -torch.inf)
        shares = best.softmax(-1)
        before = shares.cumsum(-1) - shares  # the one that crosses top-p stays
        best = best.masked_fill((before >= top_p[:, None]) & (ranks > 0) & (top_p < 1)[:, None], -torch.inf)
        kept = torch.full_like(scores, -torch.inf).scatter(1, index, best)
        return draw(kept, (~is_greedy).float(), torch.full_like(top_p, KEEP_ALL), top_k, noise)

    def main_on_host(
        self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray, memory: np.ndarray, frame: int
    ) -> int:
        penalised = np.where(logits < 0, logits * np.float32(PENALTY), logits / np.float32(PENALTY))
        logits = np.where(memory > 0, penalised, logits)
        if frame < LEAST_FRAMES:
            logits[self._stop] = -np.inf
        return self.residual_on_host(draw, logits, how, noise[0])

    def residual_on_host(self, draw: HostDraw, logits: np.ndarray, how: HostParameters, noise: np.ndarray) -> int:
        temperature, top_p, top_k = how
        if temperature == 0:
            return draw(np.ascontiguousarray(logits), *how, noise)
        scores = logits / temperature
        if top_p < 1:
            index = np.argsort(-scores, kind="stable")[:top_k]
            shares = np.exp(scores[index] - scores[index[0]])
            shares /= shares.sum()
            kept = index[: max(1, int((shares.cumsum() - shares < top_p).sum()))]
            best, scores = scores[kept], np.full_like(scores, -np.inf)
            scores[kept] = best
        return draw(scores, np.float32(1), np.float32(KEEP_ALL), top_k, noise)

    def recall(self, tokens: np.ndarray) -> np.ndarray:
        return np.bincount(tokens, minlength=self.remembered)

    def remember(self, memory: Any, slots: Any, tokens: Any) -> None:
        memory[slots, tokens] += 1

    def correct(self, memory: Tensor, slots: Tensor, wrong: Tensor, tokens: Tensor) -> None:
        memory[slots, wrong] -= 1
        memory[slots, tokens] += 1


def rule_of(config: ModelConfig) -> DrawRule:
    """The rule by which a model of this family samples."""
    return (RepetitionAware if config.talker is None else Penalised)(config.semantic_size)

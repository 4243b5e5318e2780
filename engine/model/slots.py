"""What the model knows of each row between frames, in tensors on the device: one line a slot.

Only joins write them from the host; a frame reads and advances them where they are, so that it can be a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.model.dual_ar import DualAR
from engine.model.sampling import REPEAT_WINDOW
from engine.types import Sampling


class Slots:
    """State of a slot for each of `rows` rows and of the spare one, number `rows`, which no row is ever given."""

    def __init__(self, config: ModelConfig, rows: int, context: int, device: torch.device, dtype: torch.dtype) -> None:
        count = rows + 1

        def integers(*shape: int) -> Tensor:
            return torch.zeros(count, *shape, dtype=torch.int64, device=device)

        self._semantic_start = config.semantic_start
        self.input = torch.zeros(count, config.slow.dim, device=device, dtype=dtype)
        """Embedding of the token that the next frame starts from."""
        self.position = integers()
        """Where in the KV cache that token goes."""
        self.last_position = integers()
        """Where a slot that goes on after its take has ended stays; the spare one is there from the beginning."""
        self.last_position[:rows] = context - 1
        self.temperature = torch.zeros(count, device=device)
        self.top_p = torch.zeros(count, device=device)
        self.top_k = integers()
        self.seed = integers()
        self.frame = integers()
        self.recent = integers(REPEAT_WINDOW)
        """The last main tokens, newest last, −1 where there are none yet."""

    def join(
        self, slot: int, sampling: Sampling, last: Tensor, position: int, heard: Sequence[int] | np.ndarray = ()
    ) -> None:
        """Set a slot up: `last` (dim,) is the embedding of the prompt's last token, at `position`.

        heard: the main tokens of the frames that the take has already.
        """
        self.input[slot] = last
        self.position[slot] = position
        self.temperature[slot] = sampling.temperature
        self.top_p[slot] = sampling.top_p
        self.top_k[slot] = sampling.top_k
        self.seed[slot] = sampling.seed
        self.frame[slot] = len(heard)
        self.recent[slot] = -1
        for back, token in enumerate(heard[: -REPEAT_WINDOW - 1 : -1], 1):
            self.recent[slot, -back] = int(token)

    def how(self, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """temperature, top_p and top_k of these slots, each (rows,)."""
        return self.temperature[slots], self.top_p[slots], self.top_k[slots]

    def advance(self, slots: Tensor, codes: Tensor, model: DualAR) -> None:
        """Take in a frame's codes (rows, codebooks): they are the next input.

        A slot that goes on after its take has ended (the spare one, a frame drawn ahead) stays within the cache.
        """
        tokens = codes[:, :1] + self._semantic_start
        self.input[slots] = model.embed(tokens, codes[:, :, None])[:, 0]
        self.recent[slots] = torch.cat([self.recent[slots][:, 1:], codes[:, :1]], 1)
        self.frame[slots] += 1
        self.position[slots] = (self.position[slots] + 1).minimum(self.last_position[slots])

    def put_right(self, slots: Tensor, drawn: Tensor, codes: Tensor, model: DualAR) -> None:
        """Where the frames just drawn, as `host_frame` lays them out, are not these codes: make the codes the input."""
        same = (drawn[:, :-1] == codes).all(1) & (drawn[:, -1] == 0)
        tokens = codes[:, :1] + self._semantic_start
        wanted = model.embed(tokens, codes[:, :, None])[:, 0]
        self.input[slots] = torch.where(same[:, None], self.input[slots], wanted)
        self.recent[slots, -1] = codes[:, 0]

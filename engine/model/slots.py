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
from engine.transfer import sent
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
        self,
        slots: Sequence[int],
        samplings: Sequence[Sampling],
        last: Tensor,
        positions: Sequence[int],
        heard: Sequence[np.ndarray],
    ) -> None:
        """Set slots up: `last` (slots, dim) are the embeddings of their prompts' last tokens, at `positions`.

        heard: of each the main tokens of the frames that the take has already, int64 (frames,).
        """
        recent = np.full((len(slots), REPEAT_WINDOW), -1, np.int64)
        for line, tokens in zip(recent, heard, strict=True):
            line[REPEAT_WINDOW - min(len(tokens), REPEAT_WINDOW) :] = tokens[-REPEAT_WINDOW:]
        whole = [(at, sampling.top_k, sampling.seed) for at, sampling in zip(positions, samplings, strict=True)]
        counts = np.column_stack([slots, whole, [len(tokens) for tokens in heard], recent])
        shares = np.array([(sampling.temperature, sampling.top_p) for sampling in samplings], np.float32)
        numbers = sent(torch.from_numpy(counts), self.input.device)  # at once, however many there are
        which = numbers[:, 0]
        self.input[which] = last
        self.position[which], self.top_k[which], self.seed[which], self.frame[which] = numbers[:, 1:5].unbind(1)
        self.recent[which] = numbers[:, 5:]
        self.temperature[which], self.top_p[which] = sent(torch.from_numpy(shares), self.input.device).unbind(1)

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

"""The model's state of each row between frames, in tensors on the device: one line per slot.

Only `join` writes them from the host; a frame reads and updates them in place, so that it can be a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.config import ModelConfig
from engine.model.draw_rules import rule_of
from engine.model.dual_ar import DualAR
from engine.transfer import send
from engine.types import Sampling


class Slots:
    """State of a slot for each of `rows` rows and of the spare one, number `rows`, which is never given to a row."""

    def __init__(self, config: ModelConfig, rows: int, context: int, device: torch.device, dtype: torch.dtype) -> None:
        count = rows + 1

        def integers(*shape: int) -> Tensor:
            return torch.zeros(count, *shape, dtype=torch.int64, device=device)

        self.rule = rule_of(config)
        self._semantic_start = config.semantic_start
        self.input = torch.zeros(count, config.slow.dim, device=device, dtype=dtype)
        """Embedding of the token from which the next frame starts."""
        self.position = integers()
        """That token's position in the KV cache."""
        self.last_position = integers()
        """Where a slot stays if it continues after its take has ended; the spare slot is there from the start."""
        self.last_position[:rows] = context - 1
        self.temperature = torch.zeros(count, device=device)
        self.top_p = torch.zeros(count, device=device)
        self.top_k = integers()
        self.seed = integers()
        self.frame = integers()
        self.memory = integers(self.rule.remembered)
        """What the rule remembers about each row: of S2 the last main tokens, newest last, −1 where empty."""

    def join(
        self,
        slots: Sequence[int],
        samplings: Sequence[Sampling],
        embeddings: Tensor,
        positions: Sequence[int],
        delivered: Sequence[np.ndarray],
    ) -> None:
        """Initialise slots: `embeddings` (slots, dim) are the embeddings of their prompts' last tokens, at `positions`.

        delivered: for each slot the main tokens of the take's earlier frames, int64 (frames,).
        """
        memory = [self.rule.recall(tokens) for tokens in delivered]
        integers = [
            (position, sampling.top_k, sampling.seed) for position, sampling in zip(positions, samplings, strict=True)
        ]
        counts = np.column_stack([slots, integers, [len(tokens) for tokens in delivered], memory])
        shares = np.array([(sampling.temperature, sampling.top_p) for sampling in samplings], np.float32)
        numbers = send(torch.from_numpy(counts), self.input.device)  # in one copy for all slots
        indices = numbers[:, 0]
        self.input[indices] = embeddings
        self.position[indices], self.top_k[indices], self.seed[indices], self.frame[indices] = numbers[:, 1:5].unbind(1)
        self.memory[indices] = numbers[:, 5:]
        self.temperature[indices], self.top_p[indices] = send(torch.from_numpy(shares), self.input.device).unbind(1)

    def parameters(self, slots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """temperature, top_p and top_k of these slots, each (rows,)."""
        return self.temperature[slots], self.top_p[slots], self.top_k[slots]

    def advance(self, slots: Tensor, codes: Tensor, model: DualAR) -> None:
        """Store a frame's codes (rows, codebooks) as the next input.

        A slot that continues after its take has ended (the spare one, a frame launched ahead) stays within the cache.
        """
        tokens = codes[:, :1] + self._semantic_start
        self.store(slots, codes[:, 0], model.embed(tokens, codes[:, :, None])[:, 0])

    def store(self, slots: Tensor, first: Tensor, embeddings: Tensor) -> None:
        """`advance`, given a frame's codes 0 (rows,) and the embeddings (rows, dim) of its codes."""
        self.input[slots] = embeddings
        self.rule.remember(self.memory, slots, first)
        self.frame[slots] += 1
        self.position[slots] = (self.position[slots] + 1).minimum(self.last_position[slots])

    def correct(self, slots: Tensor, sampled: Tensor, codes: Tensor, model: DualAR) -> None:
        """Replace the input by these codes where the frames just sampled, in `host_frame`'s layout, differ from
        them."""
        is_same = (sampled[:, :-1] == codes).all(1) & (sampled[:, -1] == 0)
        tokens = codes[:, :1] + self._semantic_start
        corrected = model.embed(tokens, codes[:, :, None])[:, 0]
        self.input[slots] = torch.where(is_same[:, None], self.input[slots], corrected)
        self.rule.correct(self.memory, slots, sampled[:, 0].long(), codes[:, 0])

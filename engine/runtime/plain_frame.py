"""One frame in readable torch, on any device: the reference for the CPU's frame and the fused one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.model.draw_rules import Parameters
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.sampling import exponential_noise, host_frame
from engine.model.slots import Slots
from engine.runtime.row import Row


class PlainFrame:
    """One frame for the given rows, in `host_frame`'s layout."""

    is_native = False

    def __init__(self, model: DualAR, cache: KVCache, slots: Slots) -> None:
        self._model, self._cache, self._slots = model, cache, slots
        self._head = model.head()
        count, books = len(slots.position), model.config.num_codebooks
        self._fast_cache = KVCache(model.config.fast, count, books, cache.keys.device, cache.keys.dtype)
        self._positions = torch.arange(books, device=cache.keys.device)[None]

    def __call__(self, rows: tuple[Row, ...]) -> Tensor:
        state, model = self._slots, self._model
        indices, positions = [row.slot for row in rows], [row.position for row in rows]
        slots = torch.tensor(indices, device=self._positions.device)
        x, steps = state.input[slots][:, None], state.position[slots][:, None]
        hidden = model.slow.states(x, steps, self._cache.steps(indices, positions))[:, 0]
        return self.draw(hidden, slots, max(row.sampling.top_k for row in rows))

    def draw(self, hidden: Tensor, slots: Tensor, ranks: int) -> Tensor:
        """The frame after the slow AR, from its hidden states (rows, dim) before the final norm.

        ranks: the largest top_k.
        """
        state, model = self._slots, self._model
        books = model.config.num_codebooks
        noise = exponential_noise(state.seed[slots], state.frame[slots], books + 1, ranks)
        stop = model.config.semantic_size
        normed = model.slow.norm(hidden)
        logits = F.linear(normed, self._head)
        how = state.parameters(slots)
        semantic = state.rule.main(logits, how, noise[:, :2], state.memory[slots], state.frame[slots])
        ended = semantic == stop
        first = semantic.masked_fill(ended, 0)
        codes = self._residual(model.fast_input(hidden, normed), first, how, noise[:, 2:])
        state.advance(slots, codes, model)
        return host_frame(codes, ended)

    def read(self, slot: int, position: int, x: Tensor) -> None:
        """Put the keys and values of one step (1, dim) into the cache, as generating a frame does."""
        steps = torch.tensor([[position]], device=self._positions.device)
        self._model.slow(x[:, None], steps, self._cache.steps([slot], [position]))

    def _residual(self, start: Tensor, first: Tensor, how: Parameters, noise: Tensor) -> Tensor:
        """The fast AR's passes: its first input (rows, fast dim) and code 0 (rows,) → codes (rows, codebooks)."""
        model, codes = self._model, [first]
        # Positions 0 (the hidden state, whose output is unused) and 1 (code 0) go in one pass.
        x = torch.cat([start[:, None], model.fast_embed(first[:, None])], 1)
        for book in range(1, model.config.num_codebooks):
            position = 0 if book == 1 else book
            if book > 1:
                x = model.fast_embed(codes[-1][:, None], book - 1)
            span = self._fast_cache.span(slice(0, len(first)), position)
            logits = model.fast_logits(x, self._positions[:, position : book + 1], span)[:, -1]
            codes.append(self._slots.rule.residual(logits, how, noise[:, book - 1]))
        return torch.stack(codes, 1)

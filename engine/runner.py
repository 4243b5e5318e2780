"""Runs the model for the rows in their slots: prefill, and one frame for all.

Parameters, history and the next input of every row live in slot tensors on the device; only joins and leaves
write them from the host. This is the plain-torch path: readable, and the oracle of every faster one.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cache import KVCache
from engine.checkpoint import Checkpoint
from engine.prompt import Prompt
from engine.row import Row
from engine.sampling import REPEAT_WINDOW, draw, draw_semantic, exponential_noise


class Runner:
    """The model's state for `slots` rows. One thread only."""

    def __init__(self, checkpoint: Checkpoint, slots: int, context: int) -> None:
        self.model, config = checkpoint.model, checkpoint.config
        self.config = config
        embeddings = self.model.slow.embeddings.weight
        device, dtype = embeddings.device, embeddings.dtype
        self._device = device
        self._head = self.model.head()
        self._cache = KVCache(config.slow, slots, context, device, dtype)
        self._fast_cache = KVCache(config.fast, slots, config.num_codebooks, device, dtype)
        self._fast_positions = torch.arange(config.num_codebooks, device=device)[None]
        self._input = torch.zeros(slots, config.slow.dim, device=device, dtype=dtype)
        self._temperature = torch.zeros(slots, device=device)
        self._top_p = torch.zeros(slots, device=device)
        self._top_k = torch.zeros(slots, dtype=torch.int64, device=device)
        self._seed = torch.zeros(slots, dtype=torch.int64, device=device)
        self._frame = torch.zeros(slots, dtype=torch.int64, device=device)
        self._recent = torch.zeros(slots, REPEAT_WINDOW, dtype=torch.int64, device=device)

    @torch.inference_mode()
    def prefill(self, row: Row, end: int) -> None:
        """Read row.prompt from row.position up to end: at most all but the last token, which the first frame takes."""
        start, slot = row.position, row.slot
        if start == 0:
            self._join(row)
        if start < end:
            embedded = self._embed(row.prompt, start, end)
            positions = torch.arange(start, end, device=self._device)[None]
            self.model.slow(embedded, positions, self._cache.span(slice(slot, slot + 1), start))
            row.position = end

    @torch.inference_mode()
    def frame(self, rows: tuple[Row, ...]) -> tuple[np.ndarray, np.ndarray]:
        """One frame a row: codes int16 (rows, codebooks), and ended bool (rows,), where codes mean nothing."""
        slots = [row.slot for row in rows]
        positions = [row.position for row in rows]
        index = torch.tensor(slots, device=self._device)
        steps = torch.tensor(positions, device=self._device)[:, None]
        hidden = self.model.slow(self._input[index][:, None], steps, self._cache.steps(slots, positions))[:, 0]
        codes, ended = self._draw(hidden, index, max(row.sampling.top_k for row in rows))
        tokens = codes[:, :1] + self.config.semantic_start
        self._input[index] = self.model.embed(tokens, codes[:, :, None])[:, 0]
        self._recent[index] = torch.cat([self._recent[index][:, 1:], codes[:, :1]], 1)
        self._frame[index] += 1
        for row in rows:
            row.position += 1
        return codes.to(torch.int16).cpu().numpy(), ended.cpu().numpy()

    def _join(self, row: Row) -> None:
        slot, sampling = row.slot, row.sampling
        self._temperature[slot] = sampling.temperature
        self._top_p[slot] = sampling.top_p
        self._top_k[slot] = sampling.top_k
        self._seed[slot] = sampling.seed
        self._frame[slot] = 0
        self._recent[slot] = -1
        last = len(row.prompt) - 1
        self._input[slot] = self._embed(row.prompt, last, last + 1)[0, 0]

    def _embed(self, prompt: Prompt, start: int, end: int) -> Tensor:
        ids = torch.from_numpy(prompt.ids[start:end]).to(self._device)
        codes = torch.from_numpy(prompt.codes[:, start:end]).to(self._device)
        return self.model.embed(ids[None], codes[None])

    def _draw(self, hidden: Tensor, index: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
        """Hidden states (rows, dim) → codes (rows, codebooks) int64 and ended (rows,) bool."""
        stop, codebooks = self.config.semantic_size, self.config.num_codebooks
        how = self._temperature[index], self._top_p[index], self._top_k[index]
        noise = exponential_noise(self._seed[index], self._frame[index], codebooks + 1, ranks)
        semantic = draw_semantic(F.linear(hidden, self._head), *how, noise[:, :2], self._recent[index], stop)
        ended = semantic == stop
        codes = [semantic.masked_fill(ended, 0)]
        # Positions 0 (the hidden state, whose output says nothing) and 1 (code 0) go in one pass.
        x = torch.stack([self.model.fast_project_in(hidden), self.model.fast.embeddings(codes[0])], 1)
        for book in range(1, codebooks):
            at = 0 if book == 1 else book
            positions = self._fast_positions[:, at : book + 1]
            logits = self.model.fast_logits(x, positions, self._fast_cache.span(slice(0, len(hidden)), at))[:, -1]
            codes.append(draw(logits, *how, noise[:, book + 1]))
            x = self.model.fast.embeddings(codes[-1])[:, None]
        return torch.stack(codes, 1), ended

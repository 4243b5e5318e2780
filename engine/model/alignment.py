"""Times the characters of a text in frames, by the slow AR's attention to the text while it samples them.

As in Whisper's word timestamps: attention from frames to text, and the best monotonic path through it. The head that
follows the text is chosen for each utterance, so that checkpoints need not name it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.model.dual_ar import attention

_LEAST = 1e-6
"""Minimum weight of a token, so that no frame excludes a path."""


class AttentionPath:
    """KeyValues of a whole sequence; keeps the attention weights to the text of the head that follows it best."""

    def __init__(self, frames: slice, tokens: slice) -> None:
        """``frames``: the steps that sample a frame; ``tokens``: those of the text."""
        self._frames, self._tokens = frames, tokens
        self._gain = -math.inf
        self.head = (-1, -1)
        """Layer and number of that head."""
        self.path = np.zeros(0, np.int64)
        """The token of each frame, never decreasing."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = self._attention_weights(q, k)
        paths = steady_path(weights)
        excess = weights - weights.mean(1, keepdims=True)  # equal weight in all frames carries no position
        gains = np.take_along_axis(excess, paths[:, :, None], 2).mean((1, 2))
        best = int(gains.argmax())
        if gains[best] > self._gain:
            self._gain, self.head, self.path = float(gains[best]), (layer, best), paths[best]
        return attention(q, k, v, causal=True)

    def _attention_weights(self, q: Tensor, k: Tensor) -> np.ndarray:
        """Weights (heads, frames, tokens) of q (1, steps, heads, head_dim) on k (1, steps, kv_heads, head_dim).

        Computed by groups of heads: the weights between all steps are large.
        """
        end, weights = self._frames.stop, list[Tensor]()
        steps = torch.arange(end, device=q.device)
        is_future = steps > steps[self._frames][:, None]
        queries, keys = q[0, self._frames].transpose(0, 1), k[0, :end].transpose(0, 1)
        for group, key in zip(queries.chunk(len(keys)), keys, strict=True):
            scores = group.float() @ key.float().mT / math.sqrt(q.shape[-1])
            weights.append(scores.masked_fill_(is_future, -math.inf).softmax(-1)[:, :, self._tokens].cpu())
        return torch.cat(weights).numpy()


def steady_path(weights: np.ndarray) -> np.ndarray:
    """The token (heads, frames) of each frame, never decreasing, that maximises the product of the weights.

    weights: (heads, frames, tokens).
    """
    heads, frames, tokens = weights.shape
    gains = np.log(weights + _LEAST)
    origins = np.zeros((frames, heads, tokens), np.int32)
    best, index = gains[:, 0], np.arange(tokens, dtype=np.int32)
    for frame in range(1, frames):
        highest = np.maximum.accumulate(best, 1)
        origins[frame] = np.maximum.accumulate(np.where(best >= highest, index, 0), 1)
        best = highest + gains[:, frame]
    path = np.zeros((heads, frames), np.int64)
    path[:, -1] = best.argmax(1)
    for frame in range(frames - 1, 0, -1):
        path[:, frame - 1] = origins[frame, np.arange(heads), path[:, frame]]
    return path


def token_starts(path: np.ndarray, tokens: int) -> np.ndarray:
    """The start of each token, and the end of the last, in frames (tokens + 1,), from a path (frames,).

    A frame counts at its middle; the start of a token that the path skips is interpolated.
    """
    frames, numbers = len(path), np.arange(tokens + 1)
    first_frames = np.searchsorted(path, numbers)
    is_inside = (first_frames > 0) & (first_frames < frames)
    starts = np.where(first_frames == 0, 0.0, float(frames))
    left, right = path[first_frames[is_inside] - 1], path[first_frames[is_inside]]
    starts[is_inside] = (
        first_frames[is_inside] - 0.5 + np.clip((numbers[is_inside] - 0.5 - left) / (right - left), 0.0, 1.0)
    )
    return starts


def character_times(text: str, spans: Sequence[tuple[int, int]], starts: np.ndarray) -> np.ndarray:
    """The start of each character, and the end of the last (characters + 1,), ascending.

    ``spans``: start and end character of each token. Inside a token the characters are spaced evenly, except that a
    space before a word takes no time.
    """
    positions, indices = np.unique([*(_first_letter(text, *span) for span in spans), len(text)], return_index=True)
    return np.interp(np.arange(len(text) + 1), positions, starts[indices])


def _first_letter(text: str, start: int, end: int) -> int:
    """The position of a token's first letter, or its start if it is only space."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()) if piece.strip() else start

"""Teacher-forced logits: each frame is predicted from the frames that were actually generated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.checkpoint import Checkpoint
from engine.model.dual_ar import Causal, DualAR
from engine.model.prompt import Prompt, build_prompt
from engine.types import MAX_FRAMES, Utterance

Spoken = tuple[Utterance, np.ndarray]
"""The text that was generated, and its codes, int16 (codebooks, frames)."""
Logits = tuple[Tensor, Tensor]
"""Logits of every frame's semantic token (frames, columns), and of its residual codes (frames · codes, columns)."""


@dataclass(frozen=True, eq=False, slots=True)
class ForcedTake:
    """The slow-AR input of a take's prompt and frames: ids (1, steps), codes (1, codebooks, steps), int64."""

    ids: Tensor
    codes: Tensor
    prompt: Prompt
    """Both, with the take's frames as its delivered ones."""

    @property
    def start(self) -> int:
        """Number of the steps before the take's frames."""
        return self.prompt.delivered_from

    @classmethod
    def of(cls, take: Spoken, checkpoint: Checkpoint) -> ForcedTake:
        utterance, codes = take
        spoken = replace(utterance, so_far=codes, max_frames=MAX_FRAMES)
        prompt = build_prompt(spoken, checkpoint.tokenizer, checkpoint.config)
        device = checkpoint.model.slow.norm.weight.device
        ids, all_codes = torch.from_numpy(prompt.ids)[None], torch.from_numpy(prompt.codes)[None]
        return cls(ids.to(device), all_codes.to(device), prompt)

    @property
    def frames(self) -> Tensor:
        """Codes (codebooks, frames) of the take itself."""
        return self.codes[0, :, self.start :]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How closely other logits agree with the checkpoint's own."""

    semantic_kept: float
    """Share of semantic tokens with the same most likely value."""
    semantic_kl: float
    """Mean divergence in nats."""
    residual_kept: float
    residual_kl: float


@torch.inference_mode()
def forced_logits(checkpoint: Checkpoint, takes: Sequence[Spoken], model: DualAR | None = None) -> Logits:
    """``model``: used instead of the checkpoint's own, such as the same model in fewer bits."""
    return joined_logits(_logits_of, [ForcedTake.of(take, checkpoint) for take in takes], model or checkpoint.model)


def joined_logits(
    logits_of: Callable[[ForcedTake, DualAR], Logits], takes: Sequence[ForcedTake], model: DualAR
) -> Logits:
    """The logits of all takes, concatenated."""
    semantic, residual = zip(*(logits_of(take, model) for take in takes), strict=True)
    return torch.cat(semantic), torch.cat(residual)


def agreement(oracle: Logits, other: Logits) -> Agreement:
    return Agreement(*compare(oracle[0], other[0]), *compare(oracle[1], other[1]))


def compare(oracle: Tensor, other: Tensor) -> tuple[float, float]:
    """The share of rows with the same most likely column, and their mean divergence in nats."""
    oracle, other = oracle.float(), other.float()
    same = (oracle.argmax(1) == other.argmax(1)).float().mean()
    divergence = F.kl_div(other.log_softmax(1), oracle.log_softmax(1), reduction="batchmean", log_target=True)
    return float(same), max(0.0, float(divergence))


def fast_inputs(take: ForcedTake, model: DualAR) -> tuple[Tensor, Tensor]:
    """Semantic logits (frames, columns) and the fast AR's first inputs (frames, fast dim) of a take."""
    x = model.embed_prompt(take.prompt)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    hidden = model.slow.states(x, positions, Causal())[0, take.start - 1 : -1]
    normed = model.slow.norm(hidden)
    return F.linear(normed, model.head()), model.fast_input(hidden, normed)


def _logits_of(take: ForcedTake, model: DualAR) -> Logits:
    semantic, inputs = fast_inputs(take, model)
    # The fast AR's inputs: all but a frame's last code.
    x = torch.cat([inputs[:, None], model.fast_embed(take.frames[:-1].t())], 1)
    positions = torch.arange(x.shape[1], device=x.device)[None]
    return semantic, model.fast_logits(x, positions, Causal())[:, 1:].flatten(0, 1)

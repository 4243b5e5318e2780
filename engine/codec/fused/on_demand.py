"""The codec's encoder for little memory: in host memory, and on the GPU only while it encodes a clip."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from engine.codec.fused.encoder import FusedEncoder
from engine.codec.load import ONLY_DECODES, part_on
from engine.codec.model import Codec

log = logging.getLogger(__name__)


class OnDemandEncoder:
    """Like `Codec.encode`, for audio on a GPU; if that lacks memory, on the CPU, which takes far longer."""

    def __init__(self, codec: Codec, needed: int) -> None:
        """codec: in host memory, where it stays. needed: bytes that must be free."""
        self._codec, self._needed = codec, needed

    @torch.inference_mode()
    def __call__(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) float32 → codes (rows, codebooks, frames) int64."""
        if torch.cuda.mem_get_info(audio.device)[0] >= self._needed:
            try:
                return FusedEncoder(part_on(self._codec, audio.device, without=ONLY_DECODES), len(audio))(audio)
            except torch.OutOfMemoryError:  # another program took the memory, or this process has its own limit
                log.info("encoding a clip on the CPU: the GPU has no memory left for the encoder")
            finally:
                torch.cuda.empty_cache()
        return self._codec.encode(audio.cpu()).to(audio.device)

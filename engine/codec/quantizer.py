"""Residual vector quantisation: latents to codes and back (DAC's factorised, cosine-matched codebooks)."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_config import CodecConfig
from engine.codec.codec_layers import (
    CausalConv1d,
    CausalConvTranspose1d,
    ConvNeXtBlock,
    Stack,
    Stateful,
    StreamState,
)
from engine.codec.transformer import WindowTransformer


class VectorQuantizer(nn.Module):
    """One codebook: project to a few dimensions, take the entry of the nearest direction, project back."""

    def __init__(self, dim: int, size: int, codebook_dim: int) -> None:
        super().__init__()
        self.in_proj = nn.Conv1d(dim, codebook_dim, 1)
        self.out_proj = nn.Conv1d(codebook_dim, dim, 1)
        self.codebook = nn.Embedding(size, codebook_dim)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """z (rows, dim, frames) → its quantised form and the codes (rows, frames).

        Gradients pass straight through the rounding; written this way, the values also carry the rounding error of
        upstream's, and later codebooks see the same residual to the bit.
        """
        latent = self.in_proj(z)
        codes = self.nearest(latent)
        entry = self.codebook(codes).transpose(1, 2)
        return self.out_proj(latent + (entry - latent).detach()), codes

    def nearest(self, latent: Tensor) -> Tensor:
        """Codes (rows, frames) of the entries with the nearest direction, in upstream's order of operations."""
        rows, dim, frames = latent.shape
        vectors = F.normalize(latent.transpose(1, 2).reshape(rows * frames, dim))
        entries = F.normalize(self.codebook.weight)
        distance = (
            vectors.pow(2).sum(1, keepdim=True) - 2 * vectors @ entries.t() + entries.pow(2).sum(1, keepdim=True).t()
        )
        return (-distance).max(1)[1].view(rows, frames)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes (rows, frames) → (rows, dim, frames)."""
        return self.out_proj(self.codebook(codes).transpose(1, 2))


class ResidualQuantizer(nn.Module):
    """Consecutive codebooks, each quantising the remainder of the previous ones."""

    def __init__(self, dim: int, codebooks: int, size: int, codebook_dim: int) -> None:
        super().__init__()
        self.size = size
        self.quantizers = nn.ModuleList(VectorQuantizer(dim, size, codebook_dim) for _ in range(codebooks))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """z (rows, dim, frames) → the sum of all stages and the codes (rows, codebooks, frames)."""
        total, codes = torch.zeros_like(z), []
        for quantizer in self._stages():
            quantized, code = quantizer(z)
            total, z = total + quantized, z - quantized
            codes.append(code)
        return total, torch.stack(codes, 1)

    def decode(self, codes: Tensor) -> Tensor:
        """Codes (rows, codebooks, frames) → (rows, dim, frames).

        Codes beyond the table mean its last entry, as upstream does: the fast AR's head may be wider than the residual
        codebooks.
        """
        stages = codes.clamp(max=self.size - 1).unbind(1)
        return torch.stack([q.decode(code) for q, code in zip(self._stages(), stages, strict=True)]).sum(0)

    def _stages(self) -> list[VectorQuantizer]:
        return cast("list[VectorQuantizer]", list(self.quantizers))


class Quantizer(nn.Module):
    """Down to the frame rate, codes, and back up, with a transformer on each side of the codes."""

    semantic_quantizer: Any
    """The first codebook: codes (rows, 1, frames) by `decode` to (rows, dim, frames)."""
    quantizer: Any
    """All others."""
    downsample: nn.Module
    pre_module: WindowTransformer
    pre_conv: Stateful

    def __init__(self, config: CodecConfig, dims: tuple[int, ...]) -> None:
        """``dims``: channels after each stage of the upsampling, the last first."""
        super().__init__()
        factors = list(enumerate(config.upsample_factor))
        self.upsample = Stack(
            *(
                Stack(CausalConvTranspose1d(dims[i + 1], dims[i], f, stride=f), ConvNeXtBlock(dims[i]))
                for i, f in reversed(factors)
            )
        )
        self.post_module = WindowTransformer(config.post_module)

    def encode(self, z: Tensor) -> Tensor:
        """Encoder output (rows, dim, steps) → codes (rows, codebooks, frames)."""
        raise NotImplementedError

    def codes(self, z: Tensor) -> Tensor:
        """Latents just before quantisation (rows, dim, frames) → codes (rows, codebooks, frames)."""
        raise NotImplementedError

    def decode(self, codes: Tensor, state: StreamState | None = None) -> Tensor:
        """Codes (rows, codebooks, frames) → decoder input (rows, dim, steps)."""
        z = self.semantic_quantizer.decode(codes[:, :1]) + self.quantizer.decode(codes[:, 1:])
        z = self.post_module(self.pre_conv(z, state), state)
        return self.upsample(z, state)


class DacQuantizer(Quantizer):
    """S2's."""

    def __init__(self, config: CodecConfig) -> None:
        dims = (config.pre_module.input_dim, *config.downsample_dims)
        super().__init__(config, dims)
        self.semantic_quantizer = ResidualQuantizer(dims[0], 1, config.semantic_codebook_size, config.codebook_dim)
        self.quantizer = ResidualQuantizer(
            dims[0], config.residual_codebooks, config.residual_codebook_size, config.codebook_dim
        )
        self.downsample = Stack(
            *(
                Stack(CausalConv1d(dims[i], dims[i + 1], f, stride=f), ConvNeXtBlock(dims[i + 1]))
                for i, f in enumerate(config.downsample_factor)
            )
        )
        self.pre_module = WindowTransformer(config.pre_module)
        self.pre_conv = Stack()

    def encode(self, z: Tensor) -> Tensor:
        return self.codes(self.pre_module(self.downsample(z)))

    def codes(self, z: Tensor) -> Tensor:
        """The output of pre_module, (rows, dim, frames) → codes (rows, codebooks, frames)."""
        semantic, semantic_codes = self.semantic_quantizer(z)
        _, residual_codes = self.quantizer(z - semantic)
        return torch.cat([semantic_codes, residual_codes], 1)

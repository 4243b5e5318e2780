"""Starting values for the codec: unit-variance convolutions, and codebooks from the latents they will quantise."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.codec_layers import ConvNeXtBlock
from engine.codec.model import Codec
from engine.codec.quantizer import VectorQuantizer
from engine.codec.transformer import LayerScale


@torch.no_grad()
def scale_convolutions(convolutions: list[nn.Module], run: Callable[[], object]) -> None:
    """Rescale each convolution, in order, so that its output has unit variance (LSUV, Mishkin and Matas 2016)."""
    for convolution in convolutions:
        deviation: list[Tensor] = []
        hook = convolution.register_forward_hook(lambda _m, _i, out, seen=deviation: seen.append(out.float().std()))
        run()
        hook.remove()
        convolution.weight.mul_(1 / deviation[0].clamp(min=1e-6))  # type: ignore[operator]
        if convolution.bias is not None:
            convolution.bias.zero_()  # type: ignore[operator]


@torch.no_grad()
def prepare_codec(codec: Codec, audio: Tensor) -> None:
    """Scale the encoder on real audio and open the residual branches, which start almost shut upstream."""
    convolutions = [m for m in codec.encoder.modules() if isinstance(m, nn.Conv1d)]
    scale_convolutions(list(convolutions), lambda: codec.encoder(audio))
    for module in codec.quantizer.modules():
        if isinstance(module, LayerScale):
            module.gamma.fill_(0.2)
        elif isinstance(module, ConvNeXtBlock):
            module.gamma.fill_(0.15)
        elif isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)) and module.kernel_size[0] == 2:
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear")


@torch.no_grad()
def prepare_decoder(codec: Codec, latents: Tensor) -> None:
    """Scale the decoder's convolutions on real latents; the last one starts small, inside tanh's linear part."""
    convolutions = [m for m in codec.decoder.modules() if isinstance(m, (nn.Conv1d, nn.ConvTranspose1d))]
    scale_convolutions(list(convolutions), lambda: codec.decoder(latents))
    convolutions[-1].weight.mul_(0.05)


@torch.no_grad()
def start_codebooks(codec: Codec, latents: Tensor, phones: Tensor) -> list[float]:
    """Fit every codebook to latents (n, dim): the first to the classes of phones (n,), the others to residuals.

    The semantic codebook uses the eight directions of a linear discriminant analysis of phones, so that it encodes the
    words; each other one the eight principal directions of the remainder. Returns the share of the variance left after
    each.
    """
    quantizer = codec.quantizer
    left, total, shares = latents, latents.var(dim=0).sum(), []
    stages = [*quantizer.semantic_quantizer.quantizers, *quantizer.quantizer.quantizers]
    for index, stage in enumerate(stages):
        assert isinstance(stage, VectorQuantizer)
        directions = _discriminants(left, phones, 8) if index == 0 else _principal(left, 8)
        _fit(stage, left, directions)
        left = left - stage(left.t()[None])[0][0].t()
        shares.append(float(left.var(dim=0).sum() / total))
    return shares


def _fit(stage: VectorQuantizer, z: Tensor, directions: Tensor) -> None:
    """Set projections and codebook of one stage from z (n, dim) and directions (dim, 8)."""
    mean = z.mean(0)
    projected = (z - mean) @ directions
    entries = _spherical_k_means(projected, len(stage.codebook.weight))
    chosen = entries[(F.normalize(projected) @ F.normalize(entries).t()).argmax(1)]
    with_one = torch.cat([chosen, torch.ones_like(chosen[:, :1])], 1)
    back = torch.linalg.lstsq(with_one, z).solution  # (9, dim)
    stage.in_proj.weight.copy_(directions.t()[..., None])
    stage.in_proj.bias.copy_(-(mean @ directions))  # type: ignore[union-attr]
    stage.out_proj.weight.copy_(back[:-1].t()[..., None])
    stage.out_proj.bias.copy_(back[-1])  # type: ignore[union-attr]
    stage.codebook.weight.copy_(entries)


def _spherical_k_means(points: Tensor, clusters: int, rounds: int = 15) -> Tensor:
    """Entries (clusters, dim): means of the points whose direction is nearest; empty ones are drawn again."""
    entries = points[torch.randperm(len(points), device=points.device)[:clusters]].clone()
    for _ in range(rounds):
        nearest = (F.normalize(points) @ F.normalize(entries).t()).argmax(1)
        count = torch.bincount(nearest, minlength=clusters)[:, None]
        sums = torch.zeros_like(entries).index_add_(0, nearest, points)
        fresh = points[torch.randint(0, len(points), (clusters,), device=points.device)]
        entries = torch.where(count > 0, sums / count.clamp(min=1), fresh)
    return entries


def _principal(z: Tensor, count: int) -> Tensor:
    centred = z - z.mean(0)
    _, vectors = torch.linalg.eigh(centred.t() @ centred / len(z))
    return vectors[:, -count:]


def _discriminants(z: Tensor, labels: Tensor, count: int) -> Tensor:
    """Directions (dim, count) with the highest ratio of between-class to within-class variance; negative labels are
    ignored."""
    z, labels = z[labels >= 0], labels[labels >= 0]
    classes = int(labels.max()) + 1
    size = torch.bincount(labels, minlength=classes).clamp(min=1)[:, None]
    means = torch.zeros(classes, z.shape[1], device=z.device).index_add_(0, labels, z) / size
    inner = z - means[labels]
    within = inner.t() @ inner / len(z)
    within = within + 1e-2 * within.diagonal().mean() * torch.eye(len(within), device=z.device)
    spread = (means[labels] - z.mean(0)).t() @ (means[labels] - z.mean(0)) / len(z)
    lower = torch.linalg.cholesky(within)
    inverse = torch.linalg.inv(lower)
    _, vectors = torch.linalg.eigh(inverse @ spread @ inverse.t())
    return (inverse.t() @ vectors)[:, -count:]

"""What an engine will hold in memory, worked out before anything is allocated, and the largest size that fits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from engine.codec import Codec, CodecConfig, Precision
from engine.codec.codec_config import PIECE_SAMPLES
from engine.codec.codec_layers import CausalConv1d, CausalConvTranspose1d
from engine.config import ModelConfig, TwelveBits, Weights
from engine.engine_errors import ConfigError
from engine.fused.float8 import in_float8
from engine.model.dual_ar import DualAR
from engine.model.kv_cache import KVCache
from engine.model.shapes import only_shapes

GIB = 2**30
UNPLANNED = GIB // 2
"""Left free on a GPU where rows or context are chosen: for graphs of prefills and clips, and for the allocator."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by item, in the order in which they are explained to people."""

    items: tuple[tuple[str, int], ...]
    loading: int = 0
    """Bytes held together while weights are still as they were read; float8 comes after that."""

    @property
    def total(self) -> int:
        return sum(size for _, size in self.items)

    def __str__(self) -> str:
        parts = [f"{name} {size / GIB:.2f}" for name, size in self.items]
        return f"{' + '.join(parts)} = {self.total / GIB:.2f} GiB"

    def fits(self, budget: int | None, spare: int = 0) -> bool:
        """Whether it fits the budget (bytes; None: unlimited) and leaves so much to spare."""
        return budget is None or max(self.total, self.loading) + spare <= budget

    def check(self, budget: int | None) -> None:
        """Raise ConfigError with the arithmetic when it does not fit the budget."""
        if budget is not None and not self.fits(budget):
            before = f", and {self.loading / GIB:.2f} before weights are in 8 bits" if self.loading > self.total else ""
            raise ConfigError(
                f"this needs {self}{before}, but {budget / GIB:.2f} GiB may be used; "
                "lower max_rows, max_context or the memory for known voices"
            )


class Size(NamedTuple):
    """What is chosen where it is not set."""

    rows: int
    context: int
    weights: Weights


_SIZES = (8, 4096), (6, 4096), (4, 4096), (3, 4096), (2, 4096), (3, 2048), (2, 2048), (1, 2048), (1, 1024)
"""Rows and positions of each, the best first: two rows of half the length are better than one."""


def sizes(
    rows: int | None, context: int | None, weights: Weights | None, most_rows: int, most_context: int, float8: bool
) -> list[Size]:
    """Sizes to try, the best first, keeping to what is set. float8: this GPU can have weights in eight bits."""
    kinds: tuple[Weights, ...] = (weights,) if weights else ("dtype", "fp8") if float8 else ("dtype",)
    tries = [
        Size(rows or min(some, most_rows), context or min(long, most_context), kind)
        for kind in kinds
        for some, long in _SIZES
    ]
    return list(dict.fromkeys(tries))


def largest(
    tries: Sequence[Size], plan: Callable[[Size], MemoryPlan], budget: int | None, spare: int
) -> tuple[Size, MemoryPlan]:
    """The first that fits the budget and leaves so much to spare; the last one if it fits without.

    Raises ConfigError with the last one's arithmetic where that does not fit either.
    """
    for size in tries:
        memory = plan(size)
        if memory.fits(budget, spare):
            return size, memory
    memory.check(budget)
    return size, memory


def plan_memory(
    config: ModelConfig,
    codec: CodecConfig,
    dtype: torch.dtype,
    rows: int,
    context: int,
    prefix_bytes: int,
    codec_graphs: Precision | None,
    weights: Weights = "dtype",
    twelve_bits: TwelveBits = "none",
) -> MemoryPlan:
    """The plan of an engine with these rows of this context, on one device.

    codec_graphs: the precision of the codec's fused decoder, None where plain torch decodes. weights: as
    EngineConfig says. twelve_bits: how what is not in float8 is held in twelve bits besides.
    """
    model, plain = _shapes(config, codec)
    held = sum(p.numel() for p in model.parameters()) * dtype.itemsize
    held -= sum(p.numel() for p in in_float8(model, weights)) * (dtype.itemsize - 1)
    head = (config.semantic_size + 1) * config.slow.dim * dtype.itemsize
    cache = KVCache.nbytes(config.slow, rows, context, dtype, spare=True)
    items = [("weights" if weights == "dtype" else f"weights ({weights})", held + head)]
    if twelve_bits != "none":
        items.append(("the same in twelve bits", _in_twelve_bits(model, weights, config)))
    if twelve_bits == "tiles":
        items.append(("gates and ups again, as tiles", _in_tiles(model, weights)))
    items += [
        ("codec", _codec_bytes(plain, codec_graphs)),
        (f"{rows} row{'s' * (rows > 1)} of {context} positions", cache),
        ("known voices", prefix_bytes),
        (f"{rows} codec stream{'s' * (rows > 1)}", rows * _stream_bytes(plain)),
    ]
    if codec_graphs:
        items.append(("graphs", rows * _graph_bytes(codec, codec_graphs)))
        items.append(("clips", 4 * PIECE_SAMPLES * codec.encoder_dim * 4))  # a layer's two inputs and two results
    loading = sum(p.numel() for p in model.parameters()) * dtype.itemsize + sum(p.nbytes for p in plain.parameters())
    return MemoryPlan(tuple(items), loading + cache)


@functools.lru_cache(maxsize=1)
def _shapes(config: ModelConfig, codec: CodecConfig) -> tuple[DualAR, Codec]:
    """Made once for all plans of a start."""
    with only_shapes():
        return DualAR(config), Codec(codec)


def _in_twelve_bits(model: DualAR, weights: Weights, config: ModelConfig) -> int:
    """Bytes of the products that are not held in float8."""
    heads = (config.semantic_size + 1) * config.slow.dim + model.fast_output.weight.numel()
    layers: list[nn.Module] = [*model.slow.layers, *model.fast.layers]
    products = sum(p.numel() for layer in layers for p in layer.parameters() if p.ndim == 2)
    return (products - sum(p.numel() for p in in_float8(model, weights)) + heads) * 3 // 2


def _in_tiles(model: DualAR, weights: Weights) -> int:
    """Bytes of the products with gates, in twelve bits, where they are not held in float8."""
    layers: list[Any] = [*model.slow.layers, *model.fast.layers]
    gated = {p for layer in layers for p in (layer.feed_forward.w1.weight, layer.feed_forward.w3.weight)}
    return sum(p.numel() for p in gated.difference(in_float8(model, weights))) * 3 // 2


def _codec_bytes(codec: Codec, graphs: Precision | None) -> int:
    """The fused decoder lays weights out anew and lets the old go; codebooks become tables of whole vectors."""
    whole = sum(p.nbytes for p in codec.parameters())
    if graphs is None:
        return whole
    config, quantizer = codec.config, codec.quantizer
    parts = codec.decoder, quantizer.post_module, quantizer.upsample
    laid_out = sum(p.nbytes for part in parts for p in part.parameters())
    books = config.semantic_codebook_size + config.residual_codebooks * config.residual_codebook_size
    table = books * config.post_module.dim * 4
    half = {"float32": 0, "tf32": laid_out, "bfloat16": laid_out + table}[graphs]
    return whole + table - half // 2


def _stream_bytes(codec: Codec) -> int:
    """Left context of one stream: attention windows, and twice each convolution's columns."""
    post = codec.config.post_module
    window = 2 * post.n_layer * (post.window + 7) * post.n_head * post.head_dim * 4
    layers = [m for part in (codec.decoder, codec.quantizer.upsample) for m in part.modules()]
    columns = sum(m.context * m.conv.in_channels for m in layers if isinstance(m, CausalConv1d | CausalConvTranspose1d))
    return window + 2 * columns * 4


def _graph_bytes(codec: CodecConfig, precision: Precision) -> int:
    """Of the largest codec graphs, of eight and of four frames, for one row: a layer's two inputs and two results."""
    widest = codec.decoder_dim // 2 ** len(codec.decoder_rates)
    return 5 * (8 + 4) * codec.frame_samples * widest * (4 if precision == "float32" else 2)

"""The engine's memory plan, computed before anything is allocated, and the largest size that fits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from engine.codec import ONLY_DECODES, Codec, CodecConfig, Precision, codec_of
from engine.codec.codec_config import PIECE_SAMPLES
from engine.codec.codec_layers import CausalConv1d, CausalConvTranspose1d
from engine.codec.voice_vector import VoiceEncoder, VoiceEncoderConfig
from engine.config import ModelConfig, TwelveBits, Weights
from engine.engine_errors import ConfigError
from engine.model.dual_ar import TEXT_TABLE, DualAR, only_shapes
from engine.model.kv_cache import KVCache
from engine.model.stored_weight import multiplies_eight_bits

GIB = 2**30
MARGIN = GIB // 4
"""Left free beside the clip encoder if that is on the GPU only while it works."""
UNPLANNED, UNPLANNED_COMPACT = GIB, GIB // 2
"""Left free on a GPU where rows or context are chosen: for graphs of prefills and clips, and for the allocator.

Within 11.2 GiB of an H100, 0.63 GiB were too little for eight rows of S2 Pro in 8 bits: memory ran out at the first
clip, with the cache of known voices almost empty. Graphs alone took 0.46.
"""
CACHED = GIB // 4
"""Bytes of layers in float32 up to which a CPU is fast enough with them: the bundled model has 42 MiB."""
PREFIX_CACHE_BYTES, PREFIX_CACHE_BYTES_COMPACT = 2**29, 2**27
"""Default bytes for known voices: a ten-second voice takes 38 MB with S2 Pro."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by item, in the order shown to people."""

    items: tuple[tuple[str, int], ...]
    on_demand: int = 0
    """Bytes that must be free for encoding a clip on the GPU by `OnDemandEncoder`."""

    @property
    def total(self) -> int:
        return sum(size for _, size in self.items)

    def __str__(self) -> str:
        parts = [f"{name} {size / GIB:.2f}" for name, size in self.items]
        return f"{' + '.join(parts)} = {self.total / GIB:.2f} GiB"

    def fits(self, budget: int | None, spare: int = 0) -> bool:
        """Whether it fits the budget (bytes; None: unlimited) and leaves this much to spare."""
        return budget is None or self.total + spare <= budget

    def check(self, budget: int | None) -> None:
        """Raise ConfigError with the arithmetic if it does not fit the budget."""
        if budget is not None and not self.fits(budget):
            raise ConfigError(
                f"this needs {self}, but {budget / GIB:.2f} GiB may be used; "
                "lower max_rows, max_context or the memory for known voices"
            )


class EngineSize(NamedTuple):
    """Automatic choices for what is not set."""

    rows: int
    context: int
    weights: Weights
    compact: bool = False
    """Whether memory is short: clips are encoded on the GPU only while it has room, fewer voices are cached and fewer
    prompt sizes have graphs."""

    @property
    def text_on_host(self) -> bool:
        """Whether a GPU leaves the table of text tokens in host memory: 0.7 GiB of S2 Pro's, of which a prompt needs a
        few rows."""
        return self.compact or self.weights != "bf16"


_SIZES = (8, 4096), (6, 4096), (4, 4096), (3, 4096), (2, 4096), (3, 2048), (2, 2048), (1, 2048), (1, 1024)
"""Rows and their positions, the best first: two rows of half the length are better than one."""
_ROOMY, _SMALL, _SMALLEST = (*_SIZES[:3], (4, 2048)), _SIZES[3:-2], _SIZES[-2:]
_KINDS: tuple[tuple[Weights, bool, tuple[tuple[int, int], ...]], ...] = (
    ("bf16", False, _ROOMY), ("int8", False, _ROOMY), ("int8", True, _ROOMY + _SMALL), ("int6", True, _SMALLEST),
)  # fmt: skip
"""On a GPU: weights, whether compact, and sizes to try if none of them is set."""


def sizes(
    rows: int | None,
    context: int | None,
    weights: Weights | None,
    most_rows: int,
    most_context: int,
    quantise: bool,
    compact: bool,
) -> list[EngineSize]:
    """Sizes to try, the best first, respecting the settings.

    quantise: weights may be quantised if that is not set; compact: the compact form (see `EngineSize`) is possible.
    """
    kinds = [kind for kind in _KINDS if compact or not kind[1]]
    if weights or not quantise:
        roomy = _ROOMY if compact and rows is context is None else _SIZES  # many rows in little memory beat few
        kinds = [(weights or "bf16", is_compact, _SIZES if is_compact else roomy) for is_compact in (False, True)]
        kinds = kinds[: 1 + compact]
    elif not compact:
        kinds = [("bf16", False, _ROOMY), ("int8", False, _SIZES), ("int6", False, _SMALLEST)]
    tries = [
        EngineSize(rows or min(row_count, most_rows), context or min(positions, most_context), kind, is_compact)
        for kind, is_compact, candidates in kinds
        for row_count, positions in candidates
    ]
    return list(dict.fromkeys(tries))


def largest(
    tries: Sequence[EngineSize], plan: Callable[[EngineSize], MemoryPlan], budget: int | None, is_set: bool = False
) -> tuple[EngineSize, MemoryPlan]:
    """The first size that fits the budget, leaves UNPLANNED free unless ``is_set``, and has room for the clip encoder.

    Else the first that leaves UNPLANNED free, or the last one if it fits without. Raises ConfigError with its
    arithmetic if that does not fit either.
    """
    for has_encoder in (True, False):
        for size in tries:
            memory = plan(size)
            spare = 0 if is_set else UNPLANNED_COMPACT if size.compact else UNPLANNED
            if memory.fits(budget, max(spare, memory.on_demand) if has_encoder else spare):
                return size, memory
    memory.check(budget)
    return size, memory


def weights_on_cpu(config: ModelConfig) -> Weights:
    """A CPU's weights if they are not set: float32, called bf16, or int8 where reading float32 takes too long."""
    model = _shapes(config, "bf16")
    layers = [*model.slow.layers, *model.fast.layers]
    is_large = sum(4 * p.numel() for layer in layers for p in layer.parameters()) > CACHED
    return "int8" if is_large and multiplies_eight_bits() else "bf16"


def prefix_cache_bytes(prefix_bytes: int | None, size: EngineSize) -> int:
    """Bytes for known voices: as set, else the default of an engine of this size."""
    if prefix_bytes is not None:
        return prefix_bytes
    return PREFIX_CACHE_BYTES_COMPACT if size.compact else PREFIX_CACHE_BYTES


@functools.lru_cache(maxsize=512)
def plan_memory(
    config: ModelConfig,
    codec: CodecConfig,
    dtype: torch.dtype,
    size: EngineSize,
    prefix_bytes: int | None,
    codec_graphs: Precision | None,
    twelve_bits: TwelveBits = "none",
    on_gpu: bool = True,
) -> MemoryPlan:
    """The plan of an engine of this size, on one device; kept, as the list of models needs a hundred of them each time.

    prefix_bytes: for known voices; None: the size's default. codec_graphs: the precision of the codec's fused decoder,
    None where plain torch decodes. twelve_bits: which weights have a second copy in twelve bits.
    """
    model, codec_model = _shapes(config, size.weights), _codec_shapes(codec)
    rows, context = size.rows, size.context
    tensors = model.state_dict()
    if on_gpu and size.text_on_host:
        del tensors[TEXT_TABLE]
    head = (config.semantic_size + 1) * config.slow.dim * dtype.itemsize
    weight_bytes = sum(_held_bytes(name, tensor, dtype) for name, tensor in tensors.items()) + head
    items = [("weights" if size.weights == "bf16" else f"weights ({size.weights})", weight_bytes)]
    if twelve_bits != "none":
        items.append(("the same in twelve bits", _in_twelve_bits(model, config)))
    if twelve_bits == "tiles":
        items.append(("gates and ups again, as tiles", _in_tiles(model)))
    encoder_bytes = _encoder_bytes(codec_model)
    clip_bytes = 4 * PIECE_SAMPLES * codec.encoder_dim * 4  # a layer's two inputs and two results
    items += [
        ("codec", _codec_bytes(codec_model, codec_graphs) - size.compact * encoder_bytes),
        (
            f"{rows} row{'s' * (rows > 1)} of {context} positions",
            KVCache.nbytes(config.slow, rows, context, dtype, spare=True),
        ),
        ("known voices", prefix_cache_bytes(prefix_bytes, size)),
        (f"{rows} codec stream{'s' * (rows > 1)}", rows * _stream_bytes(codec_model)),
    ]
    if codec_graphs:
        items.append(("graphs", rows * _graph_bytes(codec, codec_graphs)))
    if codec_graphs and not size.compact:
        items.append(("clips", clip_bytes))
    if not on_gpu and config.talker and config.talker.vector_size:  # it is always in the host's memory
        with only_shapes():
            voice_encoder = VoiceEncoder(VoiceEncoderConfig(config.talker.vector_size))
        items.append(("voice encoder", sum(p.nbytes for p in voice_encoder.parameters())))
    return MemoryPlan(tuple(items), (encoder_bytes + clip_bytes + MARGIN) * size.compact)


@functools.lru_cache(maxsize=12)
def _shapes(config: ModelConfig, weights: Weights) -> DualAR:
    """Made once for all plans of a start, and for a list of models."""
    with only_shapes():
        return DualAR(config, weights)


@functools.lru_cache(maxsize=4)
def _codec_shapes(codec: CodecConfig) -> Codec:
    """Made once for all models and formats with this codec."""
    with only_shapes():
        return codec_of(codec)


def _held_bytes(name: str, tensor: Tensor, dtype: torch.dtype) -> int:
    """Quantised weights and their scales keep their own types."""
    keeps_dtype = name.endswith(".scales") or not tensor.is_floating_point()
    return tensor.nbytes if keeps_dtype else tensor.numel() * dtype.itemsize


def _in_twelve_bits(model: DualAR, config: ModelConfig) -> int:
    heads = (config.semantic_size + 1) * config.slow.dim + model.fast_output.weight.numel()
    layers: list[nn.Module] = [*model.slow.layers, *model.fast.layers]
    return (sum(p.numel() for layer in layers for p in layer.parameters() if p.ndim == 2) + heads) * 3 // 2


def _in_tiles(model: DualAR) -> int:
    """Bytes of the products with gates, in twelve bits."""
    layers: list[Any] = [*model.slow.layers, *model.fast.layers]
    return sum(2 * layer.feed_forward.w1.weight.numel() for layer in layers) * 3 // 2


def _encoder_bytes(codec: Codec) -> int:
    """Bytes used only for encoding; codebooks are included once tables have been built from them."""
    return sum(value.nbytes for name, value in codec.state_dict().items() if not name.startswith(ONLY_DECODES))


def _codec_bytes(codec: Codec, graphs: Precision | None) -> int:
    """The fused decoder copies weights into its layout and frees the originals; codebooks become tables of whole
    vectors."""
    parameter_bytes = sum(p.nbytes for p in codec.parameters())
    if graphs is None:
        return parameter_bytes
    config, quantizer = codec.config, codec.quantizer
    parts = codec.decoder, quantizer.pre_conv, quantizer.post_module, quantizer.upsample
    layout_bytes = sum(p.nbytes for part in parts for p in part.parameters())
    vectors = config.semantic_codebook_size + config.residual_codebooks * config.residual_codebook_size
    table_bytes = vectors * config.post_module.dim * 4
    halved_bytes = {"float32": 0, "tf32": layout_bytes, "bfloat16": layout_bytes + table_bytes}[graphs]
    return parameter_bytes + table_bytes - halved_bytes // 2


def _stream_bytes(codec: Codec) -> int:
    """Bytes of one stream's left context: attention windows, and twice each convolution's columns."""
    post = codec.config.post_module
    window = 2 * post.n_layer * (post.window + 7) * post.n_head * post.head_dim * 4
    parts = codec.decoder, codec.quantizer.pre_conv, codec.quantizer.upsample
    layers = [m for part in parts for m in part.modules()]
    columns = sum(m.context * m.conv.in_channels for m in layers if isinstance(m, CausalConv1d | CausalConvTranspose1d))
    return window + 2 * columns * 4


def _graph_bytes(codec: CodecConfig, precision: Precision) -> int:
    """Bytes of the largest codec graphs, of eight and of four frames, for one row: a layer's two inputs and two
    results."""
    widest = codec.decoder_dim // 2 ** len(codec.decoder_rates)
    return 5 * (8 + 4) * codec.frame_samples * widest * (4 if precision == "float32" else 2)


@dataclass(frozen=True, slots=True)
class FrameCost:
    """The cost of a frame of one row, on any device."""

    passes: int
    """Layers that are gone through, those of the fast AR once for each residual code."""
    weight_bytes: int
    """Bytes of weights of both autoregressive models, as often as they are read."""
    codec_operations: int
    """Additions and multiplications of floating-point numbers."""


@functools.lru_cache(maxsize=64)
def frame_cost(config: ModelConfig, codec: CodecConfig, dtype: torch.dtype, weights: Weights) -> FrameCost:
    """The cost of a frame with weights in this format."""
    model, codec_model = _shapes(config, weights), _codec_shapes(codec)
    residual = config.num_codebooks - 1

    def weight_bytes(*parts: nn.Module) -> int:
        return sum(_held_bytes(name, value, dtype) for part in parts for name, value in part.state_dict().items())

    heads = weight_bytes(model.fast_output) * residual // config.fast_heads
    layer_bytes = weight_bytes(model.slow.layers) + residual * weight_bytes(model.fast.layers) + heads
    passes = config.slow.n_layer + residual * config.fast.n_layer
    head = (config.semantic_size + 1) * config.slow.dim * dtype.itemsize
    return FrameCost(passes, layer_bytes + head, 2 * _codec_products(codec_model))


def _codec_products(codec: Codec) -> int:
    """Multiplications with weights to decode a frame, which becomes longer with every layer of a stride."""
    quantizer, rate, products = codec.quantizer, 1, 0
    products += sum(p.numel() for p in quantizer.post_module.parameters())
    for part in (quantizer.pre_conv, quantizer.upsample, codec.decoder):
        for module in part.modules():
            if isinstance(module, CausalConvTranspose1d):
                products += module.conv.weight.numel() * rate
                rate *= module.conv.stride[0]
            elif isinstance(module, CausalConv1d):
                products += module.conv.weight.numel() * rate
            elif isinstance(module, nn.Linear):
                products += module.weight.numel() * rate
    return products

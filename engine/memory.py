"""What an engine will hold in memory, one line an item, worked out before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.cache import KVCache
from engine.codec import Codec, CodecConfig
from engine.config import ModelConfig
from engine.errors import ConfigError
from engine.model import DualAR

GIB = 2**30


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes by item, in the order in which they are explained to people."""

    items: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return sum(size for _, size in self.items)

    def __str__(self) -> str:
        parts = [f"{name} {size / GIB:.2f}" for name, size in self.items]
        return f"{' + '.join(parts)} = {self.total / GIB:.2f} GiB"

    def check(self, budget: int | None) -> None:
        """Raise ConfigError with the arithmetic when it does not fit the budget (bytes; None: unlimited)."""
        if budget is not None and self.total > budget:
            raise ConfigError(
                f"this needs {self}, but {budget / GIB:.2f} GiB may be used; "
                "lower max_rows, max_context or the memory for known voices"
            )


def plan_memory(
    config: ModelConfig,
    codec: CodecConfig,
    dtype: torch.dtype,
    rows: int,
    context: int,
    prefix_bytes: int,
    graphs: bool,
) -> MemoryPlan:
    """The plan of an engine with these rows of this context, on one device."""
    with torch.device("meta"):
        weights = sum(p.numel() for p in DualAR(config).parameters()) * dtype.itemsize
        codec_weights = sum(p.nbytes for p in Codec(codec).parameters())
    head = (config.semantic_size + 1) * config.slow.dim * dtype.itemsize
    position = KVCache.bytes_per_position(config.slow, dtype)
    items = [
        ("weights", weights + head),
        ("codec", codec_weights),
        (f"{rows + 1} rows of {context} positions", (rows + 1) * context * position),
        ("known voices", prefix_bytes),
        (f"{rows} codec streams", rows * _stream_bytes(codec)),
    ]
    if graphs:
        items.append(("graphs", rows * _graph_bytes(codec)))
    return MemoryPlan(tuple(items))


def _stream_bytes(codec: CodecConfig) -> int:
    """Left context of one stream: the attention windows are nearly all of it."""
    post = codec.post_module
    return 2 * post.n_layer * (post.window - 1) * post.n_head * post.head_dim * 4


def _graph_bytes(codec: CodecConfig) -> int:
    """What the largest codec graph holds for one row: a few activations of its widest layer, eight frames long."""
    widest = codec.decoder_dim // 2 ** len(codec.decoder_rates)
    return 8 * 8 * codec.frame_samples * widest * 4

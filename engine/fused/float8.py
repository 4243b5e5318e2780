"""Which of a model's weights are held in float8."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from engine.config import Weights
from engine.model.dual_ar import DualAR

Float8 = Literal["none", "ffn", "all"]
"""Which of a transformer's products have float8 weights: none, those of the feed-forward, or those of attention too."""

FLOAT8: dict[Weights, tuple[Float8, Float8]] = {
    "dtype": ("none", "none"),
    "fp8": ("ffn", "none"),
    "fp8-all": ("all", "all"),
}
"""Of the slow and of the fast AR."""


def in_float8(model: DualAR, weights: Weights) -> list[nn.Parameter]:
    """The weights (outputs, inputs) of every product that is held in float8."""
    held: list[nn.Parameter] = []
    for part, float8 in zip((model.slow, model.fast), FLOAT8[weights], strict=True):
        blocks: list[Any] = [*part.layers]
        for block in blocks:
            products = {"none": [], "ffn": [block.feed_forward], "all": [block.feed_forward, block.attention]}[float8]
            held += [weight for product in products for weight in product.parameters() if weight.ndim == 2]
    return held

"""Triton kernels of the fused path, each with a checked launcher and a plain-torch twin of the same signature."""

from engine.kernels.advance import advance, advance_twin
from engine.kernels.decode_attention import decode_attention, decode_attention_twin
from engine.kernels.linear import linear, linear_twin
from engine.kernels.rotate import rotate, rotate_twin
from engine.kernels.sample import Spoken, sample, sample_twin

__all__ = [
    "Spoken", "advance", "advance_twin", "decode_attention", "decode_attention_twin", "linear", "linear_twin",
    "rotate", "rotate_twin", "sample", "sample_twin",
]  # fmt: skip

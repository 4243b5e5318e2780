"""Triton kernels of the fused path, each with a checked launcher; their plain-torch twins are in the tests."""

from engine.kernels.codebooks import advance, look_up
from engine.kernels.conv import conv
from engine.kernels.decode_attention import decode_attention
from engine.kernels.depthwise_conv import depthwise_norm
from engine.kernels.frame_ends import begin_frame, end_frame
from engine.kernels.linear import linear, linear_norm
from engine.kernels.packed12 import Packed12
from engine.kernels.prefill_attention import prefill_attention
from engine.kernels.residual_unit import residual_unit
from engine.kernels.rms_norm import rms_norm
from engine.kernels.rope import HeadInputs, rope
from engine.kernels.sample import EmbedOut, sample
from engine.kernels.short_attention import SHORT, short_attention
from engine.kernels.sound_conv import sound_conv
from engine.kernels.window_attention import window_attention

__all__ = [
    "SHORT", "EmbedOut", "HeadInputs", "Packed12", "advance", "begin_frame", "conv", "decode_attention",
    "depthwise_norm", "end_frame", "linear", "linear_norm", "look_up", "prefill_attention", "residual_unit",
    "rms_norm", "rope", "sample", "short_attention", "sound_conv", "window_attention",
]  # fmt: skip

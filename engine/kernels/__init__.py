"""Triton kernels of the fused path, each with a checked launcher and a plain-torch twin of the same signature."""

from engine.kernels.attention.decode_attention import decode_attention, decode_attention_twin
from engine.kernels.attention.prefill_attention import prefill_attention
from engine.kernels.attention.rope import rope, rope_twin
from engine.kernels.attention.short_attention import SHORT, short_attention
from engine.kernels.codec.codebooks import advance, advance_twin, look_up, look_up_twin
from engine.kernels.codec.conv import conv, conv_twin
from engine.kernels.codec.depthwise_conv import depthwise_norm, depthwise_norm_twin
from engine.kernels.codec.residual_unit import residual_unit, residual_unit_twin
from engine.kernels.codec.sound_conv import sound_conv, sound_conv_twin
from engine.kernels.codec.window_attention import window_attention, window_attention_twin
from engine.kernels.frame_ends import begin_frame, begin_frame_twin, end_frame, end_frame_twin
from engine.kernels.linear import linear, linear_norm, linear_norm_twin, linear_twin
from engine.kernels.packed12 import Packed12
from engine.kernels.rms_norm import rms_norm
from engine.kernels.sample import EmbedOut, sample, sample_twin

__all__ = [
    "SHORT", "EmbedOut", "Packed12", "advance", "advance_twin", "begin_frame", "begin_frame_twin", "conv", "conv_twin",
    "decode_attention", "decode_attention_twin", "depthwise_norm", "depthwise_norm_twin", "end_frame", "end_frame_twin",
    "linear", "linear_norm", "linear_norm_twin", "linear_twin", "look_up", "look_up_twin", "prefill_attention",
    "residual_unit", "residual_unit_twin", "rms_norm", "rope", "rope_twin", "sample", "sample_twin",
    "short_attention", "sound_conv", "sound_conv_twin", "window_attention", "window_attention_twin",
]  # fmt: skip

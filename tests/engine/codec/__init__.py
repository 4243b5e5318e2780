"""Tests of the codec, plain and with fused kernels, whole and streamed."""

"""Tests of the codec, plain and over fused kernels, whole and streamed."""

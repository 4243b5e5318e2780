"""Tests of the autoregressive models over fused kernels, under Triton's interpreter."""

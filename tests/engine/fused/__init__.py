"""Tests of the autoregressive models with fused kernels, under Triton's interpreter."""

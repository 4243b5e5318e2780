"""Triton kernels of the codec: convolutions, attention over a window, codebooks."""

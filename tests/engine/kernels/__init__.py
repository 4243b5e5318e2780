"""Tests of the Triton kernels against their plain twins, under Triton's interpreter."""

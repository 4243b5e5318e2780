"""Tests of the Triton kernels against their plain equivalents, under Triton's interpreter."""

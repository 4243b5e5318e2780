"""The autoregressive models over fused kernels (Triton)."""

"""The autoregressive models and the codec over fused kernels (Triton)."""

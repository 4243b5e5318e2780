"""The autoregressive models over fused kernels (Triton), and which of their weights are held in float8."""

"""The codec over fused kernels (Triton): its decoder for many streams, its encoder for several clips."""

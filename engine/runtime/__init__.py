"""The running engine: rows and their order, threads, CUDA graphs, and the memory plan."""

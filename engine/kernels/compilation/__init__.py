"""Compiles kernels in parallel before they are launched, in separate processes if the cache has none yet."""

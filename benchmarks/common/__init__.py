"""Shared by all benchmarks: reports, texts and clips, a browser."""

"""Attention over the KV cache, for a frame's rows and for prompts, with rotation of keys and queries."""

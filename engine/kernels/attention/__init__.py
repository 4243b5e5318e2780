"""Attention of a frame's rows and of prompts over the KV cache, and what rotates keys and queries before it."""

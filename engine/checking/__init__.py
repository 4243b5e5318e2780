"""Checks a model: its needs, its takes, and its logits with quantised weights and against fish-speech's own code."""

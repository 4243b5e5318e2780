"""Checks a model: its requirements, its takes, its logits with quantised weights and beside fish-speech's."""

"""Checkpoints in every layout: reading, comparison with independent implementations, refusal of invalid ones."""

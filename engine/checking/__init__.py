"""Whether a checkpoint speaks as it should: its takes, its logits in fewer bits and beside fish-speech's own code."""

"""Stored takes for their owners: listed, played, exported, with word times, and regenerated sentence by sentence."""

"""The engine alone with full-size random weights: what must be right, and parts of what is timed."""

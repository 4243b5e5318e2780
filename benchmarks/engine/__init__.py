"""The engine alone with full-size random weights: correctness checks, and parts of the timings."""

"""Stage c: the autoregressive models, their sequences and their vocabulary."""

"""Stages a and b: encoder and codebooks, then the decoder, with their losses."""

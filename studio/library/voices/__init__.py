"""Voices in the library: their tables, names and listings, consents and encoded samples."""

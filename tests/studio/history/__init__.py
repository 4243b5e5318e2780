"""Kept takes over HTTP: lists, shares, exports, word times, regenerated sentences."""

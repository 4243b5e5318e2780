"""Exports of projects, read back: read-along books, tracks, samples, credits."""

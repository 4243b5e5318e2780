"""Exports of projects, read back: books that are read along, tracks, samples, credits."""

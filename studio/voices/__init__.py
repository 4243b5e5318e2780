"""Voices: found by name, made from clips, edited, packed, and encoded for the engine."""

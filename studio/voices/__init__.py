"""Voices: finds them by name, creates them from clips, edits, packs and encodes them for the engine."""

"""Voices as files: packs, and folders in fish-speech's layout."""

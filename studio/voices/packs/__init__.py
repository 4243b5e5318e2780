"""Voices that come and go as files: packs, and folders as fish-speech keeps them."""

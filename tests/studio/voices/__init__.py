"""Voices: uploads, ratings, packs, remote clips and speech."""

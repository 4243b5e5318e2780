"""Proof of projects: transcribes each part, and compares the transcript with the text as it was to be read."""

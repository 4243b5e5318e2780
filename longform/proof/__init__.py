"""Checks projects: transcribes each part, and compares the transcript with the text to be read."""

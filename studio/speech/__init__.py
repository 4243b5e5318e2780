"""Generates speech: the request, its plan, and the audio stream."""

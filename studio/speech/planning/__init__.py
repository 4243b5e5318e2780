"""Decisions made before the engine is called: the text, its voices and its settings."""

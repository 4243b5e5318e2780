"""Kept takes over HTTP: listed, shared, exported, their words' times, their sentences regenerated."""

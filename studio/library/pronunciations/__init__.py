"""Pronunciation dictionaries: a global one, one for each voice, one for each project."""

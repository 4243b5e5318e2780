"""Sentences spoken anew and put into the sound that they are of: which are meant, and how they are joined."""

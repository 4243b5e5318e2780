"""Kept takes as their owners use them: listed, played, exported, their words' times, their sentences regenerated."""

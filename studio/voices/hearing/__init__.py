"""Models that hear clips: what is said in them, and what of it is noise."""

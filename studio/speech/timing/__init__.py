"""When words are heard: those that were typed, found by those that were read."""

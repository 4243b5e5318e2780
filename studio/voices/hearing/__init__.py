"""Models that listen to clips: speech recognition and noise reduction."""

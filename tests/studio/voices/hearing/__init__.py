"""Speech recognition, noise reduction and voiceprints."""

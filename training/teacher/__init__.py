"""The teacher: Kokoro in plain torch, its voices, and the synthesis of corpus and clips."""

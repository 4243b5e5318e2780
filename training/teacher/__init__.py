"""The teacher: Kokoro in plain torch, its voices, and the corpus and clips that it speaks."""

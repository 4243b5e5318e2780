"""Fields whose values count in small and capital letters alike."""

from __future__ import annotations

from pydantic import BeforeValidator

LOWER_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
"""For Annotated: MP3 is mp3, as voices and models are understood in any case."""

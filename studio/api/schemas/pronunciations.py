"""Request and response bodies for pronunciation dictionaries."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from studio.api.schemas.field_types import StrictBody, VoiceName
from studio.library.pronunciations.entries import MAX_PHRASE, MAX_SAID, DictionaryScope, Pronunciation


class NewPronunciation(StrictBody):
    """A global entry, or one for a voice or a project."""

    phrase: str = Field(description=f"A word or phrase as written, at most {MAX_PHRASE} characters.")
    said: str = Field(
        description=f"The text to read instead, at most {MAX_SAID} characters: other words, or phonemes between "
        "<|phoneme_start|> and <|phoneme_end|> if the model supports them."
    )
    match_case: bool = Field(False, description="Match case.")
    voice: VoiceName | None = Field(None, description="Only for this voice.")
    project: str | None = Field(None, description="Only for this project.")


class PronunciationChanges(StrictBody):
    """Fields that are absent or null stay as they are."""

    phrase: str | None = None
    said: str | None = None
    match_case: bool | None = None


def pronunciation_json(entry: Pronunciation, dictionary: DictionaryScope) -> dict[str, Any]:
    return {
        "id": entry.id,
        "object": "pronunciation",
        "phrase": entry.phrase,
        "said": entry.said,
        "match_case": entry.match_case,
        "voice": dictionary.subject if dictionary.scope == "voice" else None,
        "project": dictionary.subject if dictionary.scope == "project" else None,
        "created_at": int(entry.created),
    }

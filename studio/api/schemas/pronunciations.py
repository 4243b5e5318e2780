"""The wire format of dictionaries: the bodies that make and change their entries, and what is told of them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from studio.api.schemas.field_types import StrictBody, VoiceName
from studio.library.pronunciations.entries import MAX_PHRASE, MAX_SAID, DictionaryScope, Pronunciation


class NewPronunciation(StrictBody):
    """An entry for everybody, or for a voice, or for a project."""

    phrase: str = Field(description=f"A word or phrase as it is written, at most {MAX_PHRASE} characters.")
    said: str = Field(
        description=f"What is read in its place, at most {MAX_SAID} characters: other words, or phonemes between "
        "<|phoneme_start|> and <|phoneme_end|> where the model knows them."
    )
    match_case: bool = Field(False, description="Match case.")
    voice: VoiceName | None = Field(None, description="Only for what this voice says.")
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

"""Voices in Fish Audio's form, and the fields of new ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from protocols.fish.fish_body import fish_id
from protocols.new_voices import NewVoices
from studio.errors import InvalidRequest
from studio.library import Library, Voice
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService


def fish_voice(voice: Voice, author: str, studio: str) -> dict[str, Any]:
    """The voice object of Fish Audio's API, with all fields that clients need. ``studio``: address of the studio."""
    return {
        "_id": fish_id(voice.id),
        "type": "tts",
        "title": voice.name,
        "description": voice.description,
        "cover_image": "",
        "train_mode": "fast",
        "state": "trained",
        "tags": list(voice.tags),
        "samples": [
            {
                "title": voice.name,
                "text": sample.text,
                "task_id": sample.id,
                "audio": f"{studio}/v1/voices/{voice.id}/samples/{sample.id}/audio",
            }
            for sample in voice.samples
        ],
        "created_at": _time(voice.created),
        "updated_at": _time(voice.changed),
        "languages": [voice.language.partition("-")[0]] if voice.language else [],
        "visibility": "public" if voice.bundled else "private",
        "lock_visibility": False,
        "like_count": 0,
        "mark_count": 0,
        "shared_count": 0,
        "task_count": 0,
        "unliked": False,
        "liked": voice.favourite,
        "marked": voice.favourite,
        "author": {"_id": author, "nickname": "Fish Voice Studio", "avatar": ""},
    }


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat()


def new_voices(library: Library, clips: ClipService, speech: SpeechService) -> NewVoices:
    """The creator of voices, with Fish Audio's names for the fields."""
    no_words = "texts is missing: this model needs the words of each recording, and no recogniser is installed"
    return NewVoices(library, clips, speech.host, speech.queues.encodings, "voices", "texts", "title", no_words)


def match_texts(texts: list[str], files: int) -> list[str]:
    """The transcript of each file: one text for each file, or one text for all, separated by commas; blank: not sent.

    A single file gets the whole text, including commas. Raises InvalidRequest.
    """
    if not texts:
        return [""] * files
    if len(texts) == files:
        return texts
    parts = [part.strip() for part in texts[0].split(",")]
    if len(texts) == 1 and len(parts) == files:
        return parts
    raise InvalidRequest(f"there are {files} recordings and {len(texts)} texts; send one text for each", "texts")


def split_tags(texts: list[str]) -> tuple[str, ...]:
    """Tags from texts that each contain one or more, separated by commas."""
    return tuple(tag.strip() for text in texts for tag in text.split(",") if tag.strip())

"""Voices in ElevenLabs' form, and the fields of new and edited ones."""

from __future__ import annotations

from typing import Any

from protocols.elevenlabs.eleven_names import PREFIX, stability_of
from protocols.new_voices import NewVoices
from studio.api.body import parse_object
from studio.api.upload import Form
from studio.errors import InvalidRequest
from studio.library import Library, Sample, Voice
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService

NO_WORDS = (
    "this model needs the words of each recording, and no recogniser is installed to transcribe files: install one, or "
    "create the voice with its transcript, by POST /v1/voices of the studio's API"
)
OWN_LABELS = ("gender", "accent", "language")
"""Labels that are fields of a voice here; others become tags."""
GENDERS = {"non-binary": "neutral", "nonbinary": "neutral"}
PLAIN = "tags"
"""The label of tags without a name."""


def new_voices(library: Library, clips: ClipService, speech: SpeechService) -> NewVoices:
    """The creator of voices, with ElevenLabs' names for the fields."""
    return NewVoices(library, clips, speech.host, speech.queues.encodings, "files", "files", "name", NO_WORDS)


def eleven_voice(voice: Voice, studio: str) -> dict[str, Any]:
    """A voice. ``studio``: address of the studio."""
    samples = f"{studio}{PREFIX}/v1/voices/{voice.id}/samples"
    return {
        "voice_id": voice.id,
        "name": voice.name,
        "category": "premade" if voice.bundled else "cloned",
        "description": voice.description,
        "labels": labels_of(voice),
        "preview_url": f"{samples}/{voice.samples[0].id}/audio" if voice.samples else None,
        "samples": [_sample(voice, sample) for sample in voice.samples],
        "settings": settings_of(voice),
        "available_for_tiers": [],
        "high_quality_base_model_ids": [],
        "verified_languages": [],
        "is_owner": voice.right == "own" and not voice.bundled,
        "is_legacy": False,
        "is_mixed": False,
        "created_at_unix": int(voice.created),
    }


def _sample(voice: Voice, sample: Sample) -> dict[str, Any]:
    return {
        "sample_id": sample.id,
        "file_name": f"{voice.slug}.{sample.media_type.rpartition('/')[2]}",
        "mime_type": sample.media_type,
        "size_bytes": sample.size,
        "hash": sample.clip,
        "text": sample.text,
    }


def settings_of(voice: Voice | None) -> dict[str, Any]:
    """The settings of a voice, or the default ones. Those that do not exist here have ElevenLabs' defaults."""
    temperature = voice.defaults.get("temperature") if voice else None
    fixed = {"similarity_boost": 0.75, "style": 0.0, "use_speaker_boost": True, "speed": 1.0}
    return {"stability": stability_of(temperature)} | fixed


def labels_of(voice: Voice) -> dict[str, str]:
    labels = {name: getattr(voice, name) for name in OWN_LABELS if getattr(voice, name)}
    plain = []
    for tag in voice.tags:
        name, colon, value = tag.partition(": ")
        if colon and name not in labels:
            labels[name] = value
        else:
            plain.append(tag)
    return labels | ({PLAIN: ", ".join(plain)} if plain else {})


def text_of(form: Form, name: str) -> str:
    """A field of a form. The SDK sends some unset ones as the word null. Raises InvalidRequest."""
    text = form.text(name)
    return "" if text.strip() == "null" else text


def fields_in(form: Form) -> dict[str, Any]:
    """The fields of a voice in a form, except its name. Raises InvalidRequest, ApiError."""
    fields: dict[str, Any] = {}
    if description := text_of(form, "description"):
        fields["description"] = description
    if labels := text_of(form, "labels"):
        fields |= fields_of_labels(parse_object(labels.encode()))
    return fields


def fields_of_labels(labels: dict[str, Any]) -> dict[str, Any]:
    """All fields that labels stand for. Raises InvalidRequest."""
    if not all(isinstance(value, str | None) for value in labels.values()):
        raise InvalidRequest("labels must be an object of texts", "labels")
    texts = {name.strip(): value.strip() for name, value in labels.items() if value and value.strip()}
    plain = [tag.strip() for tag in texts.pop(PLAIN, "").split(",")]
    fields: dict[str, Any] = {name: texts.pop(name, "") for name in OWN_LABELS}
    fields["gender"] = GENDERS.get(fields["gender"].lower(), fields["gender"])
    return fields | {"tags": (*(f"{name}: {value}" for name, value in texts.items()), *filter(None, plain))}

"""Voices and their samples as JSON, the same for API and gradio_client."""

from __future__ import annotations

from typing import Any

from studio.library import Sample, Voice
from studio.voices.advisor import cut_json


def voice_json(voice: Voice) -> dict[str, Any]:
    """A voice in full."""
    return {
        "id": voice.id,
        "object": "voice",
        "slug": voice.slug,
        "name": voice.name,
        "address": voice.address,
        "description": voice.description,
        "tags": list(voice.tags),
        "language": voice.language,
        "gender": voice.gender,
        "accent": voice.accent,
        "colour": voice.colour,
        "favourite": voice.favourite,
        "bundled": voice.bundled,
        "licence": voice.licence,
        "consent": voice.consent_id,
        "defaults": voice.defaults,
        "created_at": int(voice.created),
        "changed_at": int(voice.changed),
        "revision": voice.revision,
        "latest_revision": voice.latest,
        "seconds": round(voice.seconds, 3),
        "samples": [sample_json(sample) for sample in voice.samples],
    }


def sample_json(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "object": "voice.sample",
        "text": sample.text,
        "speaker": sample.speaker,
        "cut": cut_json(sample.cut),
        "seconds": sample.seconds,
        "clip_seconds": sample.clip_seconds,
        "media_type": sample.media_type,
        "size": sample.size,
        "sha256": sample.clip,
        "score": sample.score,
        "quality": sample.quality,
    }

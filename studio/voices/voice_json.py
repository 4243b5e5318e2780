"""Voices and their samples as JSON, the same for the API, gradio_client and the command line."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from studio.library import Sample, Voice
from studio.library.sharing import sharing_json


def voice_json(voice: Voice) -> dict[str, Any]:
    """A voice with all fields."""
    return {
        "id": voice.id,
        "object": "voice",
        "slug": voice.slug,
        "address": voice.address,
        **voice.details(),
        "favourite": voice.favourite,
        "bundled": voice.bundled,
        "consent": voice.consent,
        "created_at": int(voice.created),
        "changed_at": int(voice.changed),
        "revision": voice.revision,
        "latest_revision": voice.latest,
        "seconds": round(voice.seconds, 3),
        **sharing_json("" if voice.bundled else voice.owner, voice.sharing, voice.right),
        "samples": [sample_json(sample) for sample in voice.samples],
    }


def sample_json(sample: Sample) -> dict[str, Any]:
    fields = asdict(sample)
    return fields | {"object": "voice.sample", "sha256": fields.pop("clip")}

"""Voices and consents in other servers' forms, and the ETags of voices."""

from __future__ import annotations

import re

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from studio.errors import InvalidRequest
from studio.library import Voice
from studio.library.records import Consent
from studio.voices.resolver import voice_json


def openai_voice(voice: Voice) -> dict[str, object]:
    """OpenAI's voice object; speech requests use its id."""
    return {
        "id": voice.slug,
        "object": "audio.voice",
        "name": voice.name,
        "type": "audio_sample",
        "created_at": int(voice.created),
    }


def uploaded_voice(voice: Voice) -> dict[str, object]:
    """vLLM-Omni's description of an uploaded voice."""
    first = voice.samples[0]
    return {
        "name": voice.slug,
        "consent": voice.consent,
        "created_at": int(voice.created),
        "mime_type": first.media_type,
        "file_size": first.size,
        "ref_text": first.text,
        "speaker_description": voice.description,
    }


def consent_json(consent: Consent) -> dict[str, object]:
    return {
        "id": consent.id,
        "object": "audio.voice_consent",
        "name": consent.name,
        "language": consent.language,
        "created_at": int(consent.created),
    }


def etag(voice: Voice) -> str:
    """Differs between versions and revisions of the voice, and between callers with and without it as a favourite."""
    return f'"{voice.id}.{voice.version}.{voice.revision}{".f" if voice.favourite else ""}"'


def voice_response(request: Request, voice: Voice, status: int = 200) -> Response:
    """The voice with its ETag; 304 if the client has it."""
    headers = {"ETag": etag(voice), "Cache-Control": "no-cache"}
    if request.method in ("GET", "HEAD") and etag(voice) in _tags(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return JSONResponse(voice_json(voice), status, headers=headers)


def expected_version(request: Request, voice_id: str) -> int | None:
    """The version in If-Match; None if any is accepted. Raises InvalidRequest for another voice's ETag."""
    tags = _tags(request.headers.get("if-match", ""))
    if not tags or "*" in tags:
        return None
    for tag in tags:
        head, _, rest = tag.strip('"').partition(".")
        version = rest.partition(".")[0]
        if head == voice_id and re.fullmatch("[0-9]{1,15}", version):
            return int(version)
    raise InvalidRequest("If-Match must be an ETag from GET of this voice", "If-Match")


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]

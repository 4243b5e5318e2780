"""How voices and consents look to clients of other servers, and the strong ETags of ours."""

from __future__ import annotations

import re

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from studio.errors import InvalidRequest
from studio.library import Consent, Voice
from studio.voices.voice_json import voice_json


def openai_voice(voice: Voice) -> dict[str, object]:
    """OpenAI's voice object; its id is what a speech request names the voice by."""
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
    """Changes with every change of the voice, and differs between revisions."""
    return f'"{voice.id}.{voice.version}.{voice.revision}"'


def voice_response(request: Request, voice: Voice, status: int = 200) -> Response:
    """The voice with its ETag; 304 to a reader who has it already."""
    headers = {"ETag": etag(voice), "Cache-Control": "no-cache"}
    if request.method in ("GET", "HEAD") and etag(voice) in _tags(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return JSONResponse(voice_json(voice), status, headers=headers)


def version_wanted(request: Request, voice_id: str) -> int | None:
    """The version of If-Match, None where any will do. Raises InvalidRequest for what is no ETag of this voice."""
    tags = _tags(request.headers.get("if-match", ""))
    if not tags or "*" in tags:
        return None
    for tag in tags:
        head, _, rest = tag.strip('"').partition(".")
        version = rest.partition(".")[0]
        if head == voice_id and re.fullmatch("[0-9]{1,15}", version):
            return int(version)
    raise InvalidRequest("If-Match must be an ETag of this voice, as its GET gives it", "If-Match")


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]

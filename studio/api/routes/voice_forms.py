"""What the voice routes share: bodies in JSON, voice samples in multipart forms, answers with strong ETags."""

from __future__ import annotations

import re
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, model_validator

from audio import Cut
from audio.read import MAX_BYTES
from studio.api.field_types import Number, StrictBody, Whole
from studio.api.openapi import CUT
from studio.api.upload import Form
from studio.errors import InvalidRequest
from studio.library import NewSample, Voice, VoiceFields
from studio.library.checks import clean_language
from studio.voices.clip_service import ClipService
from studio.voices.resolver import voice_json

FORM_LIMIT = MAX_BYTES + 256 * 1024
"""Bytes of the largest clip and its fields."""
SAMPLE = ("audio_sample", "ref_text", *CUT, "denoise")
_NO_WORDS = (
    "ref_text is missing: this model needs the words spoken in the clip. Send them as ref_text (in OpenAI's Python "
    'client: extra_body={"ref_text": "…"}), or start the studio with STUDIO_TRANSCRIBER=faster-whisper:base to '
    "transcribe clips"
)


def cut_of(form: Form) -> Cut:
    """The cut of a form's clip. Raises InvalidRequest."""
    start, end, gain = (form.value(name, float) for name in ("start", "end", "gain_db"))
    return Cut(start or 0.0, end, gain or 0.0, form.value("channel", int))


async def sample_of(form: Form, clips: ClipService, caller: str) -> NewSample:
    """The sample in a form: the file audio_sample with its transcript ref_text, or else a recognised one.

    With ``denoise``, the stored clip is the cut without noise.
    Raises InvalidRequest and the errors of the clip service.
    """
    if form.text("speaker_embedding"):
        raise InvalidRequest("speaker_embedding is not supported by this model", "speaker_embedding")
    data, text = form.file("audio_sample", "file"), form.text("ref_text", "transcript")
    cut, speaker = cut_of(form), form.value("speaker", int) or 0
    if form.value("denoise", bool):
        clip = await clips.decode(caller, data, cut, "audio_sample")
        data, cut = await clips.clean(caller, clip), Cut()
    if not text:
        language = clean_language(form.text("language"))
        clip = await clips.decode(caller, data, cut, "audio_sample")
        missing = InvalidRequest(_NO_WORDS, "ref_text", "missing_required_parameter")
        text = await clips.words(caller, clip, "ref_text", missing, language)
    intake = await clips.judge(caller, data, text, cut, "audio_sample")
    return intake.sample(text, speaker)


class ConsentChanges(BaseModel):
    name: str


def _nullable(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        if "type" in field:
            field.update(type=[field["type"], "null"], default=None)


class VoiceBody(VoiceFields):
    """Absent and null fields stay unchanged; unknown ones are refused."""

    model_config = ConfigDict(json_schema_extra=_nullable)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, body: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in body.items() if value is not None or name not in cls.model_fields}


class ChosenSamples(StrictBody):
    """The samples of a voice's new revision, in the order of the prompt, from any of its revisions."""

    samples: list[str]


class NewName(StrictBody):
    name: str


class CutBody(StrictBody):
    start: Number = 0.0
    end: Number | None = None
    gain_db: Number = 0.0
    channel: Whole | None = None

    def cut(self) -> Cut:
        return Cut(**self.model_dump())


class SampleBody(StrictBody):
    """Absent and null fields stay unchanged; a cut replaces the whole cut."""

    text: str | None = None
    speaker: Whole | None = None
    cut: CutBody | None = None


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

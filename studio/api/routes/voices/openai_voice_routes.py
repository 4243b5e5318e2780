"""Voices for OpenAI's and vLLM-Omni's clients: /v1/audio/voices and /v1/audio/voice_consents."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads, reads_form
from studio.api.http.upload import Form, read_form
from studio.api.routes.voices.sample_forms import FORM_LIMIT, SAMPLE, sample_of
from studio.api.schemas.list_page import list_page
from studio.api.schemas.voice_answers import consent_json, expected_version, openai_voice, uploaded_voice
from studio.api.schemas.voice_bodies import ConsentChanges
from studio.audio.read import MEDIA_TYPES, container_of
from studio.errors import InvalidRequest
from studio.library import NewConsent, VoiceFields
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService
from studio.voices.resolver import VoiceResolver

_FIELDS = [name for name in VoiceFields.model_fields if name not in ("slug", "favourite", "defaults")]
NEW_VOICE = reads_form(*SAMPLE, "speaker", *_FIELDS, required=("name", "audio_sample"))
NEW_CONSENT = reads_form("recording", "name", "language", "statement", required=("name", "language"))


class OpenAIVoiceRoutes:
    def __init__(self, speech: SpeechService, voices: VoiceResolver, clips: ClipService) -> None:
        self._speech = speech
        self._voices = voices
        self._clips = clips

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["voices"])
        voice, consent = "/v1/audio/voices/{voice_id}", "/v1/audio/voice_consents/{consent_id}"
        routes.post("/v1/audio/voices", openapi_extra=NEW_VOICE)(self.create_voice)
        routes.get("/v1/audio/voices")(self.list_voices)
        routes.get(voice)(self.get_voice)
        routes.delete(voice)(self.delete_voice)
        routes.post("/v1/audio/voice_consents", openapi_extra=NEW_CONSENT)(self.create_consent)
        routes.get("/v1/audio/voice_consents")(self.list_consents)
        routes.get(consent)(self.get_consent)
        routes.post(consent, openapi_extra=reads(ConsentChanges))(self.rename_consent)
        routes.delete(consent)(self.delete_consent)
        return routes

    async def create_voice(self, request: Request) -> JSONResponse:
        """Create a voice: multipart with name, audio_sample (1 to 30 s) and ref_text; optionally start, end, gain_db,
        channel, denoise, speaker, language, gender, accent, description, tags (a,b), colour, licence, consent, sharing.
        Without ref_text, the clip is transcribed if a recogniser is installed."""
        if request.headers.get("content-type", "").startswith("application/json"):
            await read_json(request)
            raise InvalidRequest("voices are created from a clip: send multipart/form-data with audio_sample", "type")
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        if form.text("type") not in ("", "audio_sample"):
            raise InvalidRequest("the only supported type of voice is audio_sample", "type", "unsupported")
        if not form.text("name"):
            raise InvalidRequest("name is missing", "name", "missing_required_parameter")
        return await until_hangup(request, self._create(form, request))

    async def _create(self, form: Form, request: Request) -> JSONResponse:
        sample = await sample_of(form, self._clips, request.state.caller)
        consent = form.text("consent").strip()
        is_consent_id = consent.startswith("cons_")
        plain = ("name", "language", "gender", "accent", "colour", "licence")
        texts: dict[str, Any] = {name: form.text(name) for name in plain}
        fields = VoiceFields(
            **texts,
            description=form.text("speaker_description", "description"),
            tags=tuple(form.text("tags").split(",")),
            consent=consent if is_consent_id else None,
            sharing=form.text("sharing") or "private",
        )
        # Any other text is recorded as the statement of a new consent.
        recorded = NewConsent(form.text("name"), statement=consent) if consent and not is_consent_id else None
        create = partial(self._voices_of(request).library.voices.create, fields, [sample], consent=recorded)
        voice = await self._speech.save_voice(to_thread.run_sync(create))
        return JSONResponse(openai_voice(voice) | {"success": True, "voice": uploaded_voice(voice)})

    def list_voices(self, request: Request, legacy: bool = False) -> JSONResponse:
        """The available voices; ``legacy=true`` lists only names, as some servers do."""
        voices = self._voices_of(request)
        uploaded = [uploaded_voice(voice) for voice in voices.library.voices.page(bundled=False)]
        available = voices.listed
        if legacy:
            return JSONResponse({"voices": [voice.slug for voice in available], "uploaded_voices": uploaded})
        data = [
            {
                "id": voice.slug,
                "object": "audio.voice",
                "text": voice.text,
                "bundled": voice.bundled,
                "created_at": int(voice.created),
            }
            | voice.details()
            | {"language": voice.language or None}
            for voice in available
        ]
        return JSONResponse(
            {
                "object": "list",
                "voices": data,
                "data": data,
                "aliases": voices.aliases,
                "first_choice": voices.first_choice(available),
                "uploaded_voices": uploaded,
                "has_more": False,
            }
        )

    def get_voice(self, voice_id: str, request: Request) -> JSONResponse:
        """One voice, by its id or name."""
        return JSONResponse(openai_voice(self._voices_of(request).library.voices.get(voice_id)))

    def delete_voice(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice by its id or name, ignoring case; POST /v1/voices/{id}/restore undoes it for a while."""
        library = self._voices_of(request).library
        voice = library.voices.get(voice_id)
        library.voices.delete(voice.id, expected_version(request, voice.id))
        return JSONResponse(
            {
                "id": voice_id,
                "object": "audio.voice.deleted",
                "deleted": True,
                "success": True,
                "voice_id": voice.id,
                "undo_seconds": library.trash.seconds,
            }
        )

    async def create_consent(self, request: Request) -> JSONResponse:
        """Record a consent: multipart with name, language and optionally the recording of the statement."""
        form = await read_form(request, FORM_LIMIT, "recording")
        for name in ("name", "language"):
            if not form.text(name):
                raise InvalidRequest(f"{name} is missing", name, "missing_required_parameter")
        recording = form.files.get("recording")
        media_type = MEDIA_TYPES[container_of(recording, "recording")] if recording is not None else ""
        consent = NewConsent(form.text("name"), form.text("language"), form.text("statement"), recording, media_type)
        return JSONResponse(
            consent_json(await to_thread.run_sync(self._voices_of(request).library.consents.create, consent))
        )

    def list_consents(
        self, request: Request, after: str | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
    ) -> JSONResponse:
        """Consents, newest first. With API keys, the caller's, and those of voices shared with it."""
        consents = self._voices_of(request).library.consents.page(limit + 1, after)
        page = list_page(consents, limit, consent_json)
        return JSONResponse(page | {"first_id": page["data"][0]["id"] if page["data"] else None})

    def get_consent(self, consent_id: str, request: Request) -> JSONResponse:
        """One consent."""
        return JSONResponse(consent_json(self._voices_of(request).library.consents.get(consent_id)))

    async def rename_consent(self, consent_id: str, request: Request) -> JSONResponse:
        """Rename a consent."""
        changes = as_model(await read_json(request), ConsentChanges)
        consent = await to_thread.run_sync(self._voices_of(request).library.consents.rename, consent_id, changes.name)
        return JSONResponse(consent_json(consent))

    def delete_consent(self, consent_id: str, request: Request) -> JSONResponse:
        """Withdraw a consent."""
        self._voices_of(request).library.consents.delete(consent_id)
        return JSONResponse({"id": consent_id, "object": "audio.voice_consent", "deleted": True})

    def _voices_of(self, request: Request) -> VoiceResolver:
        return self._voices.seen_by(request.state.owner_filter)

"""Voices for OpenAI's and vLLM-Omni's clients: /v1/audio/voices and /v1/audio/voice_consents."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from audio import Cut
from audio.read import GRACE_SECONDS, MAX_SECONDS, MEDIA_TYPES, container_of
from speechtext.tags import TAG
from studio.api.body import JsonBody, read_json
from studio.api.field_types import list_page
from studio.api.foreign import NAMES
from studio.api.openapi import reads_form
from studio.api.queued import LibraryRoute, listed
from studio.api.routes.voice_forms import FORM_LIMIT, SAMPLE, ConsentChanges, expected_version, sample_of
from studio.api.sending import until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import NewConsent, NewSample, Voice, VoiceFields
from studio.library.records import RANDOM, Consent
from studio.speech.speech_service import SpeechService
from studio.takes.history import History
from studio.voices.clip_service import ClipService
from studio.voices.resolver import VoiceResolver
from studio.work import write

_FIELDS = [name for name in VoiceFields.model_fields if name not in ("slug", "favourite", "defaults")]
NEW_VOICE = reads_form(*SAMPLE, "take_id", "speaker", *_FIELDS, required=("name",))
NEW_CONSENT = reads_form("recording", "name", "language", "statement", required=("name", "language"))


class OpenAIVoiceRoutes:
    def __init__(self, speech: SpeechService, voices: VoiceResolver, clips: ClipService, history: History) -> None:
        self._speech = speech
        self._voices = voices
        self._clips = clips
        self._history = history

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["voices"], route_class=LibraryRoute)
        voice, consent = "/v1/audio/voices/{voice_id}", "/v1/audio/voice_consents/{consent_id}"
        routes.post("/v1/audio/voices", openapi_extra=NEW_VOICE)(self.create_voice)
        routes.get("/v1/audio/voices")(self.list_voices)
        routes.get(f"{NAMES}/audio/voices", include_in_schema=False)(partial(self.list_voices, legacy=True))
        routes.get(voice)(self.get_voice)
        routes.delete(voice)(self.delete_voice)
        routes.post("/v1/audio/voice_consents", openapi_extra=NEW_CONSENT)(self.create_consent)
        routes.get("/v1/audio/voice_consents")(self.list_consents)
        routes.get(consent)(self.get_consent)
        routes.post(consent)(self.rename_consent)
        routes.delete(consent)(self.delete_consent)
        return routes

    async def create_voice(self, request: Request) -> JSONResponse:
        """Create a voice: multipart with name, audio_sample (1 to 30 s) and ref_text; optionally start, end, gain_db,
        channel, denoise, speaker, language, gender, accent, description, tags (a,b), colour, licence, consent, sharing.
        Without ref_text, the clip is transcribed if a recogniser is installed. In place of audio_sample and ref_text,
        take_id names a take that was generated without a reference: its audio and text become the voice."""
        if request.headers.get("content-type", "").startswith("application/json"):
            await read_json(request, dict)
            forms = "send multipart/form-data with audio_sample, or with take_id"
            raise InvalidRequest(f"voices are created from a clip: {forms}", "type")
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        if form.text("type") not in ("", "audio_sample"):
            raise InvalidRequest("the only supported type of voice is audio_sample", "type", "unsupported")
        if not form.text("name"):
            raise InvalidRequest("name is missing", "name", "missing_required_parameter")
        return await until_hangup(request, self._create(form, request))

    async def _create(self, form: Form, request: Request) -> JSONResponse:
        if form.text("take_id"):
            if given := [name for name in (*SAMPLE, "file", "transcript") if form.text(name) or name in form.files]:
                told = f"send take_id or {given[0]}, not both: the take has its own audio and text"
                raise InvalidRequest(told, given[0])
            take_id, speaker = form.text("take_id"), form.value("speaker", int) or 0
            sample = await sample_of_take(self._history, self._clips, take_id, request, speaker)
        else:
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
        voice = await self._speech.save_voice(write(create))
        return JSONResponse(openai_voice(voice) | {"success": True, "voice": uploaded_voice(voice)})

    async def list_voices(self, request: Request, legacy: bool = False) -> JSONResponse:
        """The available voices; ``legacy=true`` lists only names, as some servers do."""
        return await listed(request, self._list, request, legacy)

    def _list(self, request: Request, legacy: bool) -> JSONResponse:
        voices = self._voices_of(request)
        uploaded = [uploaded_voice(voice) for voice in voices.library.voices.page(bundled=False)]
        available = voices.listed
        if legacy:
            return JSONResponse({"voices": [voice.slug for voice in available], "uploaded_voices": uploaded})
        data = [
            {"id": voice.slug, "object": "audio.voice", "text": voice.text, "created_at": int(voice.created)}
            | voice.details()
            | {"bundled": voice.bundled, "language": voice.language or None}
            for voice in available
        ]
        page = {"object": "list", "voices": data, "data": data, "uploaded_voices": uploaded, "has_more": False}
        return JSONResponse(page | {"aliases": voices.aliases, "first_choice": voices.first_choice(available)})

    def get_voice(self, voice_id: str, request: Request) -> JSONResponse:
        """One voice, by its id or name."""
        return JSONResponse(openai_voice(self._voices_of(request).library.voices.get(voice_id)))

    def delete_voice(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice by its id or name, ignoring case; POST /v1/voices/{id}/restore undoes it for a while."""
        library = self._voices_of(request).library
        voice = library.voices.get(voice_id)
        library.voices.delete(voice.id, expected_version(request, voice.id))
        deleted = {"id": voice_id, "object": "audio.voice.deleted", "deleted": True, "success": True}
        return JSONResponse(deleted | {"voice_id": voice.id, "undo_seconds": library.trash.seconds})

    async def create_consent(self, request: Request) -> JSONResponse:
        """Record a consent: multipart with name, language and optionally the recording of the statement."""
        form = await read_form(request, FORM_LIMIT, "recording")
        for name in ("name", "language"):
            if not form.text(name):
                raise InvalidRequest(f"{name} is missing", name, "missing_required_parameter")
        recording = form.files.get("recording")
        media_type = MEDIA_TYPES[container_of(recording, "recording")] if recording is not None else ""
        consent = NewConsent(form.text("name"), form.text("language"), form.text("statement"), recording, media_type)
        return JSONResponse(consent_json(await write(self._voices_of(request).library.consents.create, consent)))

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

    def rename_consent(self, consent_id: str, body: JsonBody[ConsentChanges], request: Request) -> JSONResponse:
        """Rename a consent."""
        return JSONResponse(consent_json(self._voices_of(request).library.consents.rename(consent_id, body.name)))

    def delete_consent(self, consent_id: str, request: Request) -> JSONResponse:
        """Withdraw a consent."""
        self._voices_of(request).library.consents.delete(consent_id)
        return JSONResponse({"id": consent_id, "object": "audio.voice_consent", "deleted": True})

    def _voices_of(self, request: Request) -> VoiceResolver:
        return self._voices.seen_by(request.state.owner_filter)


async def sample_of_take(
    history: History, clips: ClipService, take_id: str, request: Request, speaker: int = 0
) -> NewSample:
    """A whole take without a reference, with its text. Raises InvalidRequest, NotFound, the clip service's errors."""
    take, path = await history.sound(take_id, request.state.owner_filter)
    if take.voice != RANDOM or take.turns:
        how = "in several voices" if take.turns else f"in the voice {take.voice}"
        why = f"the take {take.id} was generated {how}; only takes in the voice random can be kept as a new voice"
        raise InvalidRequest(f"{why}, and POST /v1/voices/{{reference}}/duplicate copies a voice", "take_id")
    if take.finish_reason != "stop":
        raise InvalidRequest(f"the take {take.id} is incomplete, so its text is not what is heard", "take_id")
    if take.seconds > MAX_SECONDS + GRACE_SECONDS:  # told before a file of up to 100 MB is read
        raise InvalidRequest(f"the take {take.id} is longer than a clip may be: {MAX_SECONDS:g} s", "take_id")
    text = " ".join(TAG.sub(" ", take.text).split())
    data = await to_thread.run_sync(path.read_bytes)
    return (await clips.judge(request.state.caller, data, text, Cut(), "take_id")).sample(text, speaker)


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

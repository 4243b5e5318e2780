"""The library's voices for ElevenLabs' clients: list, search, get, settings, add, edit, delete."""

from __future__ import annotations

import base64
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from audio.read import MAX_BYTES, MEDIA_TYPES
from protocols.elevenlabs.eleven_names import (
    FORMATS,
    PREFIX,
    WELL_KNOWN,
    eleven_id,
    file_of,
    reference_of,
    stability_of,
    temperature_of,
    voice_of,
)
from protocols.elevenlabs.eleven_speech import VoiceSettings
from protocols.new_voices import NewVoices
from studio.api.body import JsonBody, parse_object
from studio.api.field_types import Seed
from studio.api.openapi import reads_form, sends
from studio.api.routes.models import check_design
from studio.api.routes.openai_voice_routes import sample_of_take
from studio.api.routes.voice_routes import VoiceRoutes
from studio.api.sending import until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import Library, Sample, Voice, VoiceFields
from studio.library.checks import MAX_DESCRIPTION
from studio.library.records import RANDOM
from studio.services import Studio
from studio.speech.request import MAX_PART, Origin, SpeechRequest
from studio.work import write

LIMIT = 4 * MAX_BYTES
"""Bytes of all recordings of a voice."""
MAX_FILES = 25
"""ElevenLabs' own limit; a voice may have fewer samples."""
FIELDS = ("name", "description", "labels", "remove_background_noise")
NEW = reads_form("files", *FIELDS, required=("name", "files"), several=("files",))
CHANGES = reads_form("files", *FIELDS, several=("files",))
BUNDLED = dict.fromkeys(("premade", "default"), True) | dict.fromkeys(
    ("cloned", "personal", "workspace", "non-default"), False
)
"""Whether the voices of a category or type are bundled; unknown ones have none."""
NO_WORDS = (
    "this model needs the words of each recording, and no recogniser is installed to transcribe files: install one, or "
    "create the voice with its transcript, by POST /v1/voices of the studio's API"
)
OWN_LABELS = ("gender", "accent", "language")
"""Labels that are fields of a voice here; others become tags."""
GENDERS = {"non-binary": "neutral", "nonbinary": "neutral"}
PLAIN = "tags"
"""The label of tags without a name."""
ALL = ("", "all", "saved", "non-community")
PREVIEWS = 3
"""Candidates for a described voice, as at ElevenLabs."""
PREVIEW_TEXT = (
    "Good evening, and welcome. I have been looking forward to this for a long time, and there is so much to tell: "
    "where it all began, who was there, and why nobody would believe a word of it."
)
"""What the previews say if a request has no text."""


@dataclass(frozen=True, slots=True)
class Search:
    """The query of a search."""

    search: str = ""
    page_size: Annotated[int, Query(ge=1, le=100)] = 10
    next_page_token: str | None = None
    sort: Literal["name", "created_at_unix"] = "name"
    sort_direction: Literal["asc", "desc"] = "asc"
    category: str = ""
    voice_type: str = ""

    def voices(self, library: Library) -> list[Voice]:
        """Blocking."""
        kinds = {BUNDLED.get(kind) for kind in (self.category, self.voice_type) if kind not in ALL}
        if len(kinds) > 1 or None in kinds:
            return []
        voices = library.voices.all(query=self.search, bundled=next(iter(kinds), None))
        if self.sort == "created_at_unix":
            voices.sort(key=lambda voice: voice.created)
        return voices[::-1] if self.sort_direction == "desc" else voices


class Design(BaseModel):
    """A voice in words. Unknown fields are ignored, null means absent."""

    voice_description: str = Field(max_length=MAX_DESCRIPTION)
    text: str | None = Field(None, description="Absent: a text of the studio's.")
    seed: Seed | None = Field(None, description="Of the first preview; the others count up.")


class Designed(BaseModel):
    """The preview to keep. Unknown fields are ignored."""

    voice_name: str
    voice_description: str = ""
    generated_voice_id: str
    labels: dict[str, Any] | None = None


class ElevenVoiceRoutes:
    """A voice is named by its id, slug or name; an id here is the library's without its prefix."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._new = NewVoices(studio, "files", "files", "name", NO_WORDS)
        self._own_routes = VoiceRoutes(studio.speech, studio.library, studio.clips, studio.speech.queues)

    def router(self) -> APIRouter:
        routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"])
        voice = "/v1/voices/{voice_id}"
        routes.get("/v2/voices")(self.search)
        routes.get("/v1/voices")(self.get_all)
        routes.post("/v1/voices/add", openapi_extra=NEW)(self.add)
        routes.post("/v1/text-to-voice/design")(self.design)
        routes.post("/v1/text-to-voice/create-previews", include_in_schema=False)(self.design)
        routes.post("/v1/text-to-voice")(self.keep)
        routes.get("/v1/voices/settings/default")(self.default_settings)
        routes.get(voice)(self.get)
        routes.delete(voice)(self.delete)
        routes.get(f"{voice}/settings")(self.settings)
        routes.post(f"{voice}/settings/edit")(self.edit_settings)
        routes.post(f"{voice}/edit", openapi_extra=CHANGES)(self.edit)
        routes.get(f"{voice}/samples/{{sample_id}}/audio", **sends(*MEDIA_TYPES.values()))(self.clip)
        return routes

    async def search(self, request: Request, query: Annotated[Search, Depends()]) -> JSONResponse:
        """Voices, paged; ``search`` finds words of their names, descriptions and tags."""
        voices = await to_thread.run_sync(query.voices, self._library_of(request))
        ids = [voice.id for voice in voices]
        if query.next_page_token is not None and query.next_page_token not in ids:
            raise InvalidRequest("next_page_token is not one of this search", "next_page_token")
        start = ids.index(query.next_page_token) + 1 if query.next_page_token is not None else 0
        page = voices[start : start + query.page_size]
        has_more = start + query.page_size < len(voices)
        answer: dict[str, Any] = {"has_more": has_more, "total_count": len(voices)}
        answer |= {"next_page_token": page[-1].id if has_more else None}
        return JSONResponse({"voices": [self._as_json(request, voice) for voice in page]} | answer)

    async def get_all(self, request: Request) -> JSONResponse:
        """All voices."""
        voices = await to_thread.run_sync(self._library_of(request).voices.all)
        return JSONResponse({"voices": [self._as_json(request, voice) for voice in voices]})

    async def get(self, voice_id: str, request: Request) -> JSONResponse:
        """A voice."""
        return JSONResponse(self._as_json(request, await self._find(request, voice_id)))

    async def default_settings(self) -> JSONResponse:
        """The settings of a voice without its own."""
        return JSONResponse(settings_of(None))

    async def settings(self, voice_id: str, request: Request) -> JSONResponse:
        """The settings of a voice."""
        return JSONResponse(settings_of(await self._find(request, voice_id)))

    async def edit_settings(self, voice_id: str, body: JsonBody[VoiceSettings], request: Request) -> JSONResponse:
        """Change the stability of a voice: the temperature of requests that have none."""
        if body.speed not in (None, 1.0):
            raise InvalidRequest("a voice has no speed of its own here; send the speed with each request", "speed")
        voice = await self._own(request, voice_id)
        if body.stability is not None:
            defaults = voice.defaults | {"temperature": temperature_of(body.stability)}
            await self._edit(request, voice, VoiceFields(defaults=defaults))
        return JSONResponse({"status": "ok"})

    async def add(self, request: Request) -> JSONResponse:
        """Create a voice from recordings, whose words are transcribed, which needs a recogniser."""
        form = await read_form(request, LIMIT, "files", MAX_FILES)
        voice = await until_hangup(request, self._create(form, request.state.caller))
        return JSONResponse({"voice_id": eleven_id(voice.id), "requires_verification": False})

    async def _create(self, form: Form, caller: str) -> Voice:
        fields, samples = VoiceFields(**fields_in(form)), await self._samples(form, caller)
        return await self._new.create(caller, fields, text_of(form, "name"), samples)

    async def edit(self, voice_id: str, request: Request) -> JSONResponse:
        """Change name, description or labels, and add recordings; absent fields stay."""
        form = await read_form(request, LIMIT, "files", MAX_FILES)
        await until_hangup(request, self._change(form, voice_id, request))
        return JSONResponse({"status": "ok"})

    async def _change(self, form: Form, voice_id: str, request: Request) -> None:
        voice = await self._own(request, voice_id)
        fields = fields_in(form) | ({"name": name} if (name := text_of(form, "name")) else {})
        changes = VoiceFields(**fields)
        samples = await self._samples(form, request.state.caller) if form.uploads.get("files") else []
        if fields:  # before the recordings: a refused name changes nothing
            await self._edit(request, voice, changes)
        if samples:
            revise = self._library_of(request).voices.revise
            await self._studio.speech.save_voice(write(revise, voice.id, lambda present: (*present, *samples)))

    async def _samples(self, form: Form, caller: str) -> list[Any]:
        files, is_cleaned = form.uploads.get("files", []), text_of(form, "remove_background_noise").lower() == "true"
        return await self._new.samples(files, [""] * len(files), is_cleaned, caller)

    async def design(
        self,
        body: JsonBody[Design],
        request: Request,
        output_format: Annotated[str | None, Query(description=f"{', '.join(FORMATS)}; absent: mp3_44100_128")] = None,
    ) -> JSONResponse:
        """Three previews of a described voice, each a take. The loaded model must be able to make up voices."""
        name, sample_rate, bit_rate = file_of(output_format)
        text, service, caller = body.text or PREVIEW_TEXT, self._studio.speech, request.state.caller
        description = body.voice_description.strip()
        check_design(service.host.engine().info, description, "voice_description")
        plain = SpeechRequest(
            text, RANDOM, (), name, sample_rate, bit_rate, chunk_length=MAX_PART, instructions=description
        )

        async def preview(seed: int | None) -> dict[str, Any]:
            speech = await service.speak(replace(plain, seed=seed), Origin(caller=caller))
            async with aclosing(speech):
                audio = b"".join([piece async for piece in speech.body])
            sent = {"audio_base_64": base64.b64encode(audio).decode("ascii"), "media_type": speech.media_type}
            return sent | {"generated_voice_id": speech.request_id, "duration_secs": speech.take.seconds}

        seeds = [None if body.seed is None else body.seed + number for number in range(PREVIEWS)]
        previews = [await until_hangup(request, preview(seed)) for seed in seeds]
        return JSONResponse({"previews": previews, "text": text})

    async def keep(self, body: JsonBody[Designed], request: Request) -> JSONResponse:
        """Keep a preview: a voice with its audio and text, which every model can then speak in."""
        voice = await until_hangup(request, self._keep(body, request))
        return JSONResponse(self._as_json(request, voice))

    async def _keep(self, body: Designed, request: Request) -> Voice:
        fields = VoiceFields(description=body.voice_description, **fields_of_labels(body.labels or {}))
        sample = await sample_of_take(self._studio.history, self._studio.clips, body.generated_voice_id, request)
        return await self._new.create(request.state.caller, fields, body.voice_name, [sample])

    async def delete(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice; POST /v1/voices/{reference}/restore undoes it for a while."""
        await write(self._library_of(request).voices.delete, reference_of(voice_id))
        return JSONResponse({"status": "ok"})

    def clip(self, voice_id: str, sample_id: str, request: Request) -> Response:
        """The clip of a sample as uploaded, or a range of it."""
        return self._own_routes.get_clip(reference_of(voice_id), sample_id, request)

    def _library_of(self, request: Request) -> Library:
        return self._studio.library.seen_by(request.state.owner_filter)

    async def _find(self, request: Request, voice_id: str) -> Voice:
        """A voice to read: a well-known id means the default voice. Raises NotFound."""
        if voice_id in WELL_KNOWN:
            voices = self._studio.speech.voices.seen_by(request.state.owner_filter)
            if (voice := await to_thread.run_sync(voices.find, voice_of(voice_id))) is not None:
                return voice
        return await self._own(request, voice_id)

    async def _own(self, request: Request, voice_id: str) -> Voice:
        """A voice to change. Raises NotFound."""
        return await to_thread.run_sync(self._library_of(request).voices.get, reference_of(voice_id))

    async def _edit(self, request: Request, voice: Voice, changes: VoiceFields) -> None:
        await write(self._library_of(request).voices.edit, voice.id, changes)

    def _as_json(self, request: Request, voice: Voice) -> dict[str, Any]:
        """A voice, with addresses as the caller sees them."""
        return eleven_voice(voice, str(request.base_url).rstrip("/") + self._studio.settings.root_path)


def eleven_voice(voice: Voice, studio: str) -> dict[str, Any]:
    """A voice. ``studio``: address of the studio."""
    samples = f"{studio}{PREFIX}/v1/voices/{eleven_id(voice.id)}/samples"
    return {
        "voice_id": eleven_id(voice.id),
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

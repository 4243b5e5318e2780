"""The library for ElevenLabs' clients: voices, the history of takes, transcripts, models, and an account."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from audio.read import MAX_BYTES, MEDIA_TYPES
from engine import MAX_SEED
from protocols.client_voices import ClientVoices, account_of
from protocols.elevenlabs.eleven_names import (
    CONSTANTS,
    PREFIX,
    WELL_KNOWN,
    eleven_id,
    file_of,
    reference_of,
    stability_of,
    temperature_of,
    voice_of,
)
from protocols.elevenlabs.eleven_speech import OutputFormat, VoiceSettings
from studio.api.body import JsonBody, parse_object
from studio.api.error_responses import ApiError
from studio.api.field_types import Seed
from studio.api.openapi import reads_form, sends
from studio.api.queued import LibraryRoute, listed
from studio.api.routes.models import check_design
from studio.api.routes.openai_voice_routes import sample_of_take
from studio.api.routes.take_routes import stored_audio
from studio.api.routes.voice_routes import VoiceRoutes
from studio.api.sending import until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import NewSample, TakeFilter, Voice, VoiceFields
from studio.library.checks import MAX_DESCRIPTION
from studio.library.records import RANDOM
from studio.library.take import Take
from studio.speech.request import MAX_INPUT, MAX_PART, Origin, SpeechRequest
from studio.voices.recogniser import Word
from studio.voices.recordings import FORM_LIMIT, transcribed
from studio.work import read, write

LIMIT = 4 * MAX_BYTES  # bytes of all recordings of a voice
MAX_FILES = 25  # ElevenLabs' own limit; a voice may have fewer samples
FIELDS = ("name", "description", "labels", "remove_background_noise")
NEW = reads_form("files", *FIELDS, required=("name", "files"), several=("files",))
CHANGES = reads_form("files", *FIELDS, several=("files",))
RECORDING = reads_form("file", "model_id", "language_code", "timestamps_granularity", required=("file",))
BUNDLED = dict.fromkeys(("premade", "default"), True) | dict.fromkeys(
    ("cloned", "personal", "workspace", "non-default"), False
)
"""Whether the voices of a category or type are bundled; unknown ones have none."""
ALL = ("", "all", "saved", "non-community")
OWN_LABELS = ("gender", "accent", "language")
"""Labels that are fields of a voice here; others become tags."""
GENDERS = {"non-binary": "neutral", "nonbinary": "neutral"}
PLAIN = "tags"  # the label of tags without a name
LAST = 1_000_000_000  # the highest number of a voice in a search
LATEST = 2.0**33  # seconds since 1970: the year 2242
PREVIEWS = 3  # candidates for a described voice, as at ElevenLabs


@dataclass(frozen=True, slots=True)
class Search:
    """The query of a search."""

    search: str = ""
    page_size: Annotated[int, Query(ge=1, le=100)] = 10
    next_page_token: Annotated[int, Query(ge=0, le=LAST)] = 0
    """The number of voices on the pages before."""
    sort: Literal["name", "created_at_unix"] = "name"
    sort_direction: Literal["asc", "desc"] = "asc"
    category: str = ""
    voice_type: str = ""

    def voices(self, find: Callable[..., list[Voice]]) -> list[Voice]:
        """Blocking."""
        kinds = {BUNDLED.get(kind) for kind in (self.category, self.voice_type) if kind not in ALL}
        if len(kinds) > 1 or None in kinds:
            return []
        voices = find(query=self.search, bundled=next(iter(kinds), None))
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
    voice_description: str = Field("", max_length=MAX_DESCRIPTION)
    generated_voice_id: str
    labels: dict[str, Any] | None = None


class ElevenLibraryRoutes(ClientVoices):
    """A voice is named by its id, slug or name; an id here is the library's without its prefix."""

    files = texts = "files"
    title = "name"
    no_words = (
        "this model needs the words of each recording, and no recogniser is installed to transcribe files: install "
        "one, or create the voice with its transcript, by POST /v1/voices of the studio's API"
    )

    def router(self) -> APIRouter:
        routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"], route_class=LibraryRoute)
        voice, item = "/v1/voices/{voice_id}", "/v1/history/{history_item_id}"
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
        routes.get("/v1/history")(self.history)
        routes.get(item)(self.history_item)
        routes.delete(item)(self.delete_item)
        routes.get(f"{item}/audio", **sends("audio/wav"))(self.history_audio)
        routes.post("/v1/speech-to-text", openapi_extra=RECORDING)(self.transcribe)
        routes.get("/v1/models")(self.models)
        routes.get("/v1/user")(self.user)
        routes.get("/v1/user/subscription")(self.subscription)
        return routes

    async def search(self, request: Request, query: Annotated[Search, Depends()]) -> JSONResponse:
        """Voices, paged; ``search`` finds words of their names, descriptions and tags."""
        stop = query.next_page_token + query.page_size

        def find() -> JSONResponse:
            voices = query.voices(partial(self.voices_of, request))
            has_more, page = stop < len(voices), voices[query.next_page_token : stop]
            facts = {"total_count": len(voices), "next_page_token": str(stop) if has_more else None}
            return self._listed(request, page, has_more=has_more, **facts)

        return await listed(request, find)

    async def get_all(self, request: Request) -> JSONResponse:
        """All voices."""
        return await listed(request, lambda: self._listed(request, self.voices_of(request)))

    def _listed(self, request: Request, voices: Sequence[Voice], **facts: Any) -> JSONResponse:
        return JSONResponse({"voices": [self._json(request, voice) for voice in voices]} | facts)

    async def get(self, voice_id: str, request: Request) -> JSONResponse:
        """A voice."""
        return JSONResponse(self._json(request, await self._find(request, voice_id)))

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
        voices = self.library_of(request).voices
        voice = await read(voices.get, reference_of(voice_id))
        if body.stability is not None:
            defaults = voice.defaults | {"temperature": temperature_of(body.stability)}
            await write(
                voices.edit, voice.id, VoiceFields(defaults=defaults), voice.version
            )  # not what others set meanwhile
        return JSONResponse({"status": "ok"})

    async def add(self, request: Request) -> JSONResponse:
        """Create a voice from recordings, whose words are transcribed, which needs a recogniser."""
        form = await read_form(request, LIMIT, "files", MAX_FILES)
        fields, samples = VoiceFields(**fields_in(form)), await self._samples(request, form)
        voice = await self.create(request.state.caller, fields, text_of(form, "name"), samples)
        return JSONResponse({"voice_id": eleven_id(voice.id), "requires_verification": False})

    async def edit(self, voice_id: str, request: Request) -> JSONResponse:
        """Change name, description or labels, and add recordings; absent fields stay."""
        form = await read_form(request, LIMIT, "files", MAX_FILES)
        voices = self.library_of(request).voices
        voice = await read(voices.get, reference_of(voice_id))
        fields = fields_in(form) | ({"name": name} if (name := text_of(form, "name")) else {})
        changes = VoiceFields(**fields)
        samples = await self._samples(request, form) if form.uploads.get("files") else []
        if fields:  # before the recordings: a refused name changes nothing
            await write(voices.edit, voice.id, changes)
        if samples:
            revision = write(voices.revise, voice.id, lambda present: (*present, *samples))
            await self.studio.speech.save_voice(revision)
        return JSONResponse({"status": "ok"})

    async def _samples(self, request: Request, form: Form) -> list[NewSample]:
        files, is_cleaned = form.uploads.get("files", []), text_of(form, "remove_background_noise").lower() == "true"
        return await self.samples(request, files, [""] * len(files), is_cleaned)

    async def design(
        self, body: JsonBody[Design], request: Request, output_format: OutputFormat = None
    ) -> JSONResponse:
        """Three previews of a described voice, each a take. The loaded model must be able to make up voices."""
        text, service = body.text or CONSTANTS["preview_text"], self.studio.speech
        description = body.voice_description.strip()
        check_design(service.host.engine().info, description, "voice_description")
        file = file_of(output_format)
        plain = SpeechRequest(text, RANDOM, chunk_length=MAX_PART, instructions=description, **file)

        async def preview(seed: int | None) -> dict[str, Any]:
            speech = await service.speak(replace(plain, seed=seed), Origin(caller=request.state.caller, live=True))
            async with aclosing(speech):
                audio = b"".join([piece async for piece in speech.body])
            sent = {"audio_base_64": base64.b64encode(audio).decode("ascii"), "media_type": speech.media_type}
            return sent | {"generated_voice_id": speech.request_id, "duration_secs": speech.take.seconds}

        seeds = [None if body.seed is None else (body.seed + number) % (MAX_SEED + 1) for number in range(PREVIEWS)]
        previews = [await until_hangup(request, preview(seed)) for seed in seeds]
        return JSONResponse({"previews": previews, "text": text})

    async def keep(self, body: JsonBody[Designed], request: Request) -> JSONResponse:
        """Keep a preview: a voice with its audio and text, in which every model that clones can then speak."""
        fields = VoiceFields(**fields_of(body.voice_description, body.labels))
        take_id, studio = body.generated_voice_id, self.studio
        sample = await until_hangup(request, sample_of_take(studio.history, studio.clips, take_id, request))
        voice = await self.create(request.state.caller, fields, body.voice_name, [sample], "voice_name")
        return JSONResponse(self._json(request, voice))

    async def delete(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice; POST /v1/voices/{reference}/restore undoes it for a while."""
        await write(self.library_of(request).voices.delete, reference_of(voice_id))
        return JSONResponse({"status": "ok"})

    def clip(self, voice_id: str, sample_id: str, request: Request) -> Response:
        """The clip of a sample as uploaded, or a range of it."""
        studio = self.studio
        routes = VoiceRoutes(studio.speech, studio.library, studio.clips, studio.speech.queues)
        return routes.get_clip(reference_of(voice_id), sample_id, request)

    async def _find(self, request: Request, voice_id: str) -> Voice:
        """A voice to read: a well-known id means the default voice. Raises NotFound."""
        if voice_id in WELL_KNOWN:
            voices = self.studio.speech.voices.seen_by(request.state.owner_filter)
            if (voice := await read(voices.find, voice_of(voice_id))) is not None:
                return voice
        return await read(self.voice_of, request, reference_of(voice_id))

    def _json(self, request: Request, voice: Voice) -> dict[str, Any]:
        samples = f"{self.address_of(request)}{PREFIX}/v1/voices/{eleven_id(voice.id)}/samples"
        return {
            "voice_id": eleven_id(voice.id),
            "name": voice.name,
            "category": "premade" if voice.bundled or voice.speaker else "cloned",
            "description": voice.description,
            "labels": labels_of(voice),
            "preview_url": f"{samples}/{voice.samples[0].id}/audio" if voice.samples else None,
            "samples": [
                {
                    "sample_id": sample.id,
                    "file_name": f"{voice.slug}.{sample.media_type.rpartition('/')[2]}",
                    "mime_type": sample.media_type,
                    "size_bytes": sample.size,
                    "hash": sample.clip,
                    "text": sample.text,
                }
                for sample in voice.samples
            ],
            "settings": settings_of(voice),
            "is_owner": voice.right == "own" and not (voice.bundled or voice.speaker),
            "created_at_unix": int(voice.created),
        } | CONSTANTS["voice"]

    async def history(
        self,
        request: Request,
        page_size: Annotated[int, Query(ge=1, le=1000)] = 100,
        start_after_history_item_id: str | None = None,
        voice_id: str | None = None,
        search: str = "",
        sort_direction: Literal["desc"] | None = None,
        date_after_unix: Annotated[float | None, Query(ge=0, le=LATEST)] = None,
        date_before_unix: Annotated[float | None, Query(ge=0, le=LATEST)] = None,
    ) -> JSONResponse:
        """The stored takes of the caller, newest first."""
        owner, takes = request.state.owner_filter, self.studio.library.takes
        if voice_id:
            voice_id = (await self._find(request, voice_id)).id if voice_id in WELL_KNOWN else reference_of(voice_id)
        filters = TakeFilter(search, voice_id or None, since=date_after_unix, until=date_before_unix, caller=owner)
        filters = await self.studio.history.with_voice_id(filters)
        page = await self.studio.history.page(filters, page_size, start_after_history_item_id)
        ids = tuple(str(take["id"]) for take in page.data if take["stored"])
        stored = await read(takes.page, TakeFilter(ids=ids, caller=owner), page_size) if ids else []
        items = [_item(take) for take in stored]
        return JSONResponse({"history": items, "last_history_item_id": page.last_id, "has_more": page.has_more})

    async def history_item(self, history_item_id: str, request: Request) -> JSONResponse:
        """A stored take."""
        return JSONResponse(_item(await self.studio.history.stored_take(history_item_id, request.state.owner_filter)))

    async def history_audio(self, history_item_id: str, request: Request) -> Response:
        """The audio of a take: a WAV file, or a range of it."""
        take, path = await self.studio.history.sound(history_item_id, request.state.owner_filter)
        return stored_audio(request, take, path, {})

    async def delete_item(self, history_item_id: str, request: Request) -> JSONResponse:
        """Delete a take; POST /v1/takes/{take_id}/restore undoes it for a while."""
        await self.studio.history.delete(history_item_id, request.state.owner_filter)
        return JSONResponse({"status": "ok"})

    async def transcribe(self, request: Request) -> JSONResponse:
        """Transcribe ``file`` (1 s to 5 minutes), with the times of its words. Needs a recogniser."""
        form = await read_form(request, FORM_LIMIT, "file")
        for name in ("webhook", "use_multi_channel"):
            if text_of(form, name).lower() == "true":
                raise InvalidRequest(f"{name} is not possible here; leave it out", name)
        granularity = text_of(form, "timestamps_granularity") or "word"
        if granularity not in ("none", "word"):
            raise InvalidRequest("timestamps_granularity must be none or word", "timestamps_granularity")
        data, language = form.file("file"), text_of(form, "language_code")
        work = transcribed(self.studio.clips, request.state.caller, data, language, "file")
        recording = await until_hangup(request, work)
        heard = recording.transcription
        transcript = {
            "language_code": heard.language.partition("-")[0],
            "language_probability": 1.0,
            "text": heard.text,
            "words": [] if granularity == "none" else _words(heard.words),
            "audio_duration_secs": round(recording.seconds, 3),
        }
        return JSONResponse(transcript)

    async def models(self) -> JSONResponse:
        """The loaded model, which all values of model_id mean."""
        host = self.studio.speech.host
        card = host.engine().info.card if host.status.state == "ready" else None
        model = {
            **dict.fromkeys(("model_id", "name"), host.model_id),
            **dict.fromkeys(CONSTANTS["model_limits"], MAX_INPUT),
            "languages": [{"language_id": code, "name": code} for code in (card.languages if card else ())],
        }
        return JSONResponse([model | CONSTANTS["model"]])

    async def user(self, request: Request) -> JSONResponse:
        """The account of the key: fixed values."""
        account = account_of(request)
        user = {"user_id": account, "workspace_id": account, "subscription": CONSTANTS["subscription"]}
        return JSONResponse(user | CONSTANTS["user"])

    async def subscription(self) -> JSONResponse:
        """The subscription: fixed values."""
        return JSONResponse(CONSTANTS["subscription"])


def settings_of(voice: Voice | None) -> dict[str, Any]:
    """The settings of a voice, or the default ones. Those that do not exist here have ElevenLabs' defaults."""
    temperature = voice.defaults.get("temperature") if voice else None
    return {"stability": stability_of(temperature)} | CONSTANTS["voice_settings"]


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
    """The fields of a voice in a form, except its name. Raises InvalidRequest."""
    labels = text_of(form, "labels")
    try:
        parsed = parse_object(labels.encode()) if labels else None
    except ApiError:
        raise InvalidRequest('labels must be a JSON object of texts, such as {"accent": "British"}', "labels") from None
    return fields_of(text_of(form, "description"), parsed)


def fields_of(description: str, labels: dict[str, Any] | None) -> dict[str, Any]:
    """The same fields of a voice; labels replace all earlier ones. Raises InvalidRequest."""
    fields: dict[str, Any] = {"description": description} if description else {}
    if labels is None:
        return fields
    if not all(isinstance(value, str | None) for value in labels.values()):
        raise InvalidRequest("labels must be an object of texts", "labels")
    texts = {name.strip(): value.strip() for name, value in labels.items() if value and value.strip()}
    plain = [tag.strip() for tag in texts.pop(PLAIN, "").split(",")]
    fields |= {name: texts.pop(name, "") for name in OWN_LABELS}
    fields["gender"] = GENDERS.get(fields["gender"].lower(), fields["gender"])
    return fields | {"tags": (*(f"{name}: {value}" for name, value in texts.items()), *filter(None, plain))}


def _words(words: Sequence[Word]) -> list[dict[str, Any]]:
    """The words, and the spaces between them."""

    def entry(kind: str, text: str, start: float, end: float) -> dict[str, Any]:
        times = {"start": round(start, 3), "end": round(end, 3)}
        return {"text": text, "type": kind, "speaker_id": None, "logprob": 0.0} | times

    entries = [entry("word", word.word, word.start, word.end) for word in words]
    spaces = [entry("spacing", " ", word.end, max(word.end, after.start)) for word, after in pairwise(words)]
    return [each for pair in zip(entries, spaces, strict=False) for each in pair] + entries[-1:]


def _item(take: Take) -> dict[str, Any]:
    return {
        "history_item_id": take.id,
        "request_id": take.id,
        "voice_id": eleven_id(take.voice_id or take.voice),
        "voice_name": take.voice.rpartition("@")[0] or take.voice,
        "text": take.text,
        "date_unix": int(take.created),
        "character_count_change_to": len(take.text),
        "content_type": take.media_type or "audio/wav",
    } | CONSTANTS["history_item"]

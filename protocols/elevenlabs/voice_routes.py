"""The library's voices for ElevenLabs' clients: list, search, get, settings, add, edit, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from audio.read import MAX_BYTES, MEDIA_TYPES
from protocols.elevenlabs.eleven_names import PREFIX, temperature_of, voice_of
from protocols.elevenlabs.eleven_speech import VoiceSettings
from protocols.elevenlabs.eleven_voices import eleven_voice, fields_in, new_voices, settings_of, text_of
from studio.api.body import JsonBody
from studio.api.openapi import reads_form, sends
from studio.api.routes.voice_routes import VoiceRoutes
from studio.api.sending import until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import Library, Voice, VoiceFields
from studio.services import Studio
from studio.work import write

LIMIT = 4 * MAX_BYTES
"""Bytes of all recordings of a voice."""
MAX_FILES = 25
"""ElevenLabs' own limit; a voice may have fewer samples."""
FIELDS = ("name", "description", "labels", "remove_background_noise")
NEW = reads_form("files", *FIELDS, required=("name", "files"), several=("files",))
CHANGES = reads_form("files", *FIELDS, several=("files",))
BUNDLED = {"premade": True, "default": True, "cloned": False, "personal": False, "workspace": False}
"""Whether the voices of a category or type are bundled; unknown ones have none."""
ALL = ("", "all", "saved", "non-community")


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
        chosen = [kind for kind in (self.category, self.voice_type) if kind not in ALL]
        kinds = {BUNDLED.get(kind) for kind in chosen} - ({None} if "non-default" in chosen else set())
        kinds |= {False} if "non-default" in chosen else set()
        if len(kinds) > 1 or None in kinds:
            return []
        voices = library.voices.all(query=self.search, bundled=next(iter(kinds), None))
        if self.sort == "created_at_unix":
            voices.sort(key=lambda voice: voice.created)
        return voices[::-1] if self.sort_direction == "desc" else voices


class ElevenVoiceRoutes:
    """A voice is named by its id, slug or name."""

    def __init__(self, studio: Studio) -> None:
        self._speech, self._library, self._root_path = studio.speech, studio.library, studio.settings.root_path
        self._new = new_voices(studio.library, studio.clips, studio.speech)
        own = VoiceRoutes(studio.speech, studio.library, studio.clips, studio.speech.queues)
        self._clip = own.get_clip

    def router(self) -> APIRouter:
        routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"])
        voice = "/v1/voices/{voice_id}"
        routes.get("/v2/voices")(self.search)
        routes.get("/v1/voices")(self.get_all)
        routes.post("/v1/voices/add", openapi_extra=NEW)(self.add)
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
        return JSONResponse({"voice_id": voice.id, "requires_verification": False})

    async def _create(self, form: Form, caller: str) -> Voice:
        fields, samples = VoiceFields(**fields_in(form)), await self._samples(form, caller)
        save = write(self._new.create, caller, fields, text_of(form, "name"), samples)
        return await self._speech.save_voice(save)

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
            await self._speech.save_voice(write(revise, voice.id, lambda present: (*present, *samples)))

    async def _samples(self, form: Form, caller: str) -> list[Any]:
        files, is_cleaned = form.uploads.get("files", []), text_of(form, "remove_background_noise").lower() == "true"
        return await self._new.samples(files, [""] * len(files), is_cleaned, caller)

    async def delete(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice; POST /v1/voices/{reference}/restore undoes it for a while."""
        await write(self._library_of(request).voices.delete, voice_id)
        return JSONResponse({"status": "ok"})

    def clip(self, voice_id: str, sample_id: str, request: Request) -> Response:
        """The clip of a sample as uploaded, or a range of it."""
        return self._clip(voice_id, sample_id, request)

    def _library_of(self, request: Request) -> Library:
        return self._library.seen_by(request.state.owner_filter)

    async def _find(self, request: Request, voice_id: str) -> Voice:
        """A voice to read: a well-known id means the default voice. Raises NotFound."""
        if (reference := voice_of(voice_id)) != voice_id:
            voices = self._speech.voices.seen_by(request.state.owner_filter)
            if (voice := await to_thread.run_sync(voices.find, reference)) is not None:
                return voice
        return await self._own(request, voice_id)

    async def _own(self, request: Request, voice_id: str) -> Voice:
        """A voice to change. Raises NotFound."""
        return await to_thread.run_sync(self._library_of(request).voices.get, voice_id)

    async def _edit(self, request: Request, voice: Voice, changes: VoiceFields) -> None:
        await write(self._library_of(request).voices.edit, voice.id, changes)

    def _as_json(self, request: Request, voice: Voice) -> dict[str, Any]:
        """A voice, with addresses as the caller sees them."""
        return eleven_voice(voice, str(request.base_url).rstrip("/") + self._root_path)

"""/model: the library's voices in Fish Audio's API: list, get, create, edit, delete."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from audio.read import MAX_BYTES
from protocols.fish.fish_body import ALL_TYPES, MESSAGE_PACK, is_true, read_files, voice_of
from protocols.fish.fish_voices import fish_voice, match_texts, split_tags
from protocols.new_voices import NewVoices, title_matches
from studio.api.access import account_of
from studio.api.error_responses import ApiError
from studio.api.openapi import reads_form
from studio.api.sending import until_hangup
from studio.api.upload import Form
from studio.library import Library, Voice, VoiceFields
from studio.speech.speech_service import SpeechService
from studio.work import write

LIMIT = 4 * MAX_BYTES
"""Bytes of all recordings of a new voice."""
MAX_FILES = 20
"""Fish Audio's own limit; a voice may have fewer samples."""
MAX_PAGE = 100
"""Fish Audio's own limit."""
MAX_PAGES = 1_000_000
MAX_LANGUAGES = 32
NEW_MODEL = reads_form(
    "voices",
    *("title", "texts", "tags", "description", "enhance_audio_quality"),
    required=("title", "voices"),
    several=("voices", "texts", "tags"),
    more_types=(MESSAGE_PACK,),
)
CHANGES = reads_form("cover_image", "title", "description", "tags", several=("tags",), more_types=ALL_TYPES)
SORTS = ("score", "task_count", "created_at")


class ModelRoutes:
    def __init__(self, speech: SpeechService, voices: NewVoices, root_path: str) -> None:
        self._speech, self._voices, self._library = speech, voices, voices.library
        self._root_path = root_path

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["fish audio"])
        routes.get("/model")(self.list_models)
        routes.post("/model", status_code=201, openapi_extra=NEW_MODEL)(self.create_model)
        routes.get("/model/{voice_id}")(self.get_model)
        routes.patch("/model/{voice_id}", openapi_extra=CHANGES)(self.edit_model)
        routes.delete("/model/{voice_id}")(self.delete_model)
        return routes

    async def list_models(
        self,
        request: Request,
        page_size: int = 10,
        page_number: int = 1,
        title: str | None = None,
        tag: Annotated[list[str] | None, Query()] = None,
        tag_axios: Annotated[list[str] | None, Query(alias="tag[]", include_in_schema=False)] = None,
        language: Annotated[list[str] | None, Query()] = None,
        language_axios: Annotated[list[str] | None, Query(alias="language[]", include_in_schema=False)] = None,
        self_only: Annotated[bool, Query(alias="self")] = False,
        author_id: str | None = None,
        sort_by: str = "score",
    ) -> JSONResponse:
        """Voices, paged; without bundled ones if ``self=true``. ``title``: a part of the name.

        Lists are sent as ``tag=a&tag=b``, or as axios writes them in the community's SDK.
        """
        tags, language = [*(tag or ()), *(tag_axios or ())], [*(language or ()), *(language_axios or ())]
        if not 1 <= page_size <= MAX_PAGE or not 1 <= page_number <= MAX_PAGES:
            raise ApiError(422, f"page_size must be from 1 to {MAX_PAGE}, and page_number from 1 to {MAX_PAGES}")
        if len(language) > MAX_LANGUAGES:
            raise ApiError(422, f"there are {len(language)} languages; at most {MAX_LANGUAGES} are allowed")
        if sort_by not in SORTS:
            raise ApiError(422, f"sort_by must be one of {', '.join(SORTS)}")
        author, library = account_of(request), self._library_of(request)
        filters: dict[str, Any] = {"tags": tuple(tags), "bundled": False if self_only else None}

        def find() -> JSONResponse:
            voices = [voice for voice in library.voices.all(**filters) if title_matches(voice, title or "")]
            if language:
                # A voice without a language may speak any.
                voices = [voice for voice in voices if voice.language.partition("-")[0] in ("", *language)]
            if sort_by == "created_at":
                voices.sort(key=lambda voice: -voice.created)
            if author_id not in (None, "", author):
                voices = []
            start = page_size * (page_number - 1)
            items = [self._as_json(request, voice) for voice in voices[start : start + page_size]]
            return JSONResponse({"total": len(voices), "items": items, "has_more": start + page_size < len(voices)})

        return await to_thread.run_sync(find)

    async def get_model(self, voice_id: str, request: Request) -> JSONResponse:
        """A voice by its id, slug or name."""
        voice = await to_thread.run_sync(self._library_of(request).voices.get, voice_of(voice_id))
        return JSONResponse(self._as_json(request, voice))

    async def create_model(self, request: Request) -> JSONResponse:
        """Create a voice from recordings (``voices``) and their transcripts (``texts``). Recordings longer than 30 s
        are cut; without a recogniser the model finds the words of the cut, in up to two minutes."""
        form = await read_files(request, LIMIT, "voices", MAX_FILES)
        voice = await until_hangup(request, self._create(form, request.state.caller))
        return JSONResponse(self._as_json(request, voice), 201)

    async def _create(self, form: Form, caller: str) -> Voice:
        is_cleaned = is_true(form, "enhance_audio_quality") and self._voices.clips.denoiser.is_there
        files = form.uploads.get("voices", [])
        texts = match_texts(form.texts("texts"), len(files)) if files else []
        samples = await self._voices.samples(files, texts, is_cleaned, caller)
        title, description, tags = form.text("title"), form.text("description"), split_tags(form.texts("tags"))
        fields = VoiceFields(description=description, tags=tags)
        save = write(self._voices.create, caller, fields, title, samples)
        return await self._speech.save_voice(save)

    async def edit_model(self, voice_id: str, request: Request) -> JSONResponse:
        """Edit title, description and tags; absent fields stay. Visibility and cover are ignored."""
        form = await read_files(request, LIMIT, "cover_image", 1)
        changes: dict[str, Any] = {"name": title} if (title := form.text("title")) else {}
        if "description" in form.lists:
            changes["description"] = form.text("description")
        if "tags" in form.lists:
            changes["tags"] = split_tags(form.texts("tags"))
        voice = await write(self._library_of(request).voices.edit, voice_of(voice_id), VoiceFields(**changes))
        return JSONResponse({"status": "ok"} | self._as_json(request, voice))

    async def delete_model(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice; POST /v1/voices/{reference}/restore undoes it for a while."""
        await write(self._library_of(request).voices.delete, voice_of(voice_id))
        return JSONResponse({"status": "ok"})

    def _library_of(self, request: Request) -> Library:
        return self._library.seen_by(request.state.owner_filter)

    def _as_json(self, request: Request, voice: Voice) -> dict[str, Any]:
        """A voice, with addresses as the caller sees them."""
        return fish_voice(voice, account_of(request), str(request.base_url).rstrip("/") + self._root_path)

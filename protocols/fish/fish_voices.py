"""The library's voices for Fish Audio's clients (/model), and for those of fish-speech's server (/v1/references)."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from audio.read import MAX_BYTES
from protocols.client_voices import ClientVoices, account_of
from protocols.fish.fish_body import ALL_TYPES, CONSTANTS, MESSAGE_PACK, answer, fish_id, is_true, read_files, voice_of
from studio.api.error_responses import ApiError, describe
from studio.api.openapi import reads_form
from studio.api.queued import listed
from studio.api.upload import Form
from studio.errors import REFUSALS, InvalidRequest
from studio.library import Voice, VoiceFields
from studio.library.names import fold
from studio.work import read, write

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
REFERENCE_LIMIT = MAX_BYTES + 256 * 1024
NEW_REFERENCE = reads_form("audio", "id", "text", required=("audio", "id", "text"), more_types=(MESSAGE_PACK,))
NAMED = reads_form(None, "reference_id", required=("reference_id",), more_types=ALL_TYPES)
_NAMES = ("old_reference_id", "new_reference_id")
RENAMED = reads_form(None, *_NAMES, required=_NAMES, more_types=ALL_TYPES)
_ID = re.compile(r"[a-zA-Z0-9\-_ ]{1,255}")


class FishVoices(ClientVoices):
    files, texts, title = "voices", "texts", "title"
    no_words = "texts is missing: this model needs the words of each recording, and no recogniser is installed"


class ModelRoutes(FishVoices):
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
        author = account_of(request)
        filters: dict[str, Any] = {"tags": tuple(tags), "bundled": False if self_only else None}

        def find() -> JSONResponse:
            wanted = fold(title or "")
            voices = [voice for voice in self.voices_of(request, **filters) if wanted in fold(voice.name)]
            if language:
                # A voice without a language may speak any.
                voices = [voice for voice in voices if voice.language.partition("-")[0] in ("", *language)]
            if sort_by == "created_at":
                voices.sort(key=lambda voice: -voice.created)
            if author_id not in (None, "", author):
                voices = []
            start = page_size * (page_number - 1)
            items = [self._json(request, voice) for voice in voices[start : start + page_size]]
            return JSONResponse({"total": len(voices), "items": items, "has_more": start + page_size < len(voices)})

        return await listed(request, find)

    async def get_model(self, voice_id: str, request: Request) -> JSONResponse:
        """A voice by its id, slug or name."""
        voice = await read(self.voice_of, request, voice_of(voice_id))
        return JSONResponse(self._json(request, voice))

    async def create_model(self, request: Request) -> JSONResponse:
        """Create a voice from recordings (``voices``) and their transcripts (``texts``). Recordings longer than 30 s
        are cut; without a recogniser the model finds the words of the cut, in up to two minutes."""
        form = await read_files(request, LIMIT, "voices", MAX_FILES)
        is_cleaned = is_true(form, "enhance_audio_quality") and self.studio.clips.denoiser.is_there
        files = form.uploads.get("voices", [])
        texts = match_texts(form.texts("texts"), len(files)) if files else []
        samples = await self.samples(request, files, texts, is_cleaned)
        title, description, tags = form.text("title"), form.text("description"), split_tags(form.texts("tags"))
        fields = VoiceFields(description=description, tags=tags)
        voice = await self.create(request.state.caller, fields, title, samples)
        return JSONResponse(self._json(request, voice), 201)

    async def edit_model(self, voice_id: str, request: Request) -> JSONResponse:
        """Edit title, description and tags; absent fields stay. Visibility and cover are ignored."""
        form = await read_files(request, LIMIT, "cover_image", 1)
        changes: dict[str, Any] = {"name": title} if (title := form.text("title")) else {}
        if "description" in form.lists:
            changes["description"] = form.text("description")
        if "tags" in form.lists:
            changes["tags"] = split_tags(form.texts("tags"))
        voice = await write(self.library_of(request).voices.edit, voice_of(voice_id), VoiceFields(**changes))
        return JSONResponse({"status": "ok"} | self._json(request, voice))

    async def delete_model(self, voice_id: str, request: Request) -> JSONResponse:
        """Delete a voice; POST /v1/voices/{reference}/restore undoes it for a while."""
        await write(self.library_of(request).voices.delete, voice_of(voice_id))
        return JSONResponse({"status": "ok"})

    def _json(self, request: Request, voice: Voice) -> dict[str, Any]:
        """The voice object of Fish Audio's API, with all fields that clients need."""
        samples = f"{self.address_of(request)}/v1/voices/{voice.id}/samples"
        return {
            "_id": fish_id(voice.id),
            "title": voice.name,
            "description": voice.description,
            "tags": list(voice.tags),
            "samples": [
                {
                    "title": voice.name,
                    "text": sample.text,
                    "task_id": sample.id,
                    "audio": f"{samples}/{sample.id}/audio",
                }
                for sample in voice.samples
            ],
            "created_at": _time(voice.created),
            "updated_at": _time(voice.changed),
            "languages": [voice.language.partition("-")[0]] if voice.language else [],
            "visibility": "public" if voice.bundled else "private",
            "liked": voice.favourite,
            "marked": voice.favourite,
            "author": {"_id": account_of(request), "nickname": "Fish Voice Studio", "avatar": ""},
        } | CONSTANTS["voice"]


class ReferenceRoutes(FishVoices):
    """The routes of fish-speech's server besides /v1/tts. Errors have the form of answers, with success false."""

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["fish-speech"])
        routes.post("/v1/health", include_in_schema=False)(self.health)
        routes.get("/v1/health")(self.health)
        routes.post("/v1/references/add", openapi_extra=NEW_REFERENCE)(self.add)
        routes.get("/v1/references/list")(self.list_references)
        routes.delete("/v1/references/delete", openapi_extra=NAMED)(self.delete)
        routes.post("/v1/references/update", openapi_extra=RENAMED)(self.update)
        return routes

    async def health(self, request: Request) -> Response:
        """Report that the server runs."""
        return answer(request, {"status": "ok"})

    async def list_references(self, request: Request) -> Response:
        """The names of all voices, sorted; as MessagePack unless JSON is asked for, as fish-speech's scripts expect."""
        voices = await listed(request, self.voices_of, request)
        names = sorted(voice.name for voice in voices)
        found = {"success": True, "reference_ids": names, "message": f"{len(names)} voices"}
        return answer(request, found, default="msgpack")

    async def add(self, request: Request) -> Response:
        """Create a voice: its name as ``id``, a clip of 1 to 30 s as ``audio``, its transcript as ``text``."""
        form = await read_files(request, REFERENCE_LIMIT, "audio", 1)
        name = form.text("id")
        return await _answer(request, "added", self._add(name, form, request), reference_id=name)

    async def _add(self, name: str, form: Form, request: Request) -> None:
        """Raises InvalidRequest, InvalidClip, NameTaken."""
        name, text = _check_id("id", name), form.text("text")
        if not text:
            raise InvalidRequest("text is missing or blank: send the words spoken in audio", "text")
        form.file("audio")
        samples = await self.samples(request, form.uploads["audio"], [text], False)
        create = self.library_of(request).voices.create
        await self.studio.speech.save_voice(write(create, VoiceFields(name=name), samples))

    async def delete(self, request: Request) -> Response:
        """Delete the voice ``reference_id``; POST /v1/voices/{reference}/restore undoes it for a while."""
        name = (await read_files(request, REFERENCE_LIMIT, "audio", 1)).text("reference_id")

        def delete() -> None:
            self.library_of(request).voices.delete(_check_id("reference_id", name))

        return await _answer(request, "deleted", write(delete), reference_id=name)

    async def update(self, request: Request) -> Response:
        """Rename the voice ``old_reference_id`` to ``new_reference_id``."""
        form = await read_files(request, REFERENCE_LIMIT, "audio", 1)
        old_id, new_id = form.text("old_reference_id"), form.text("new_reference_id")

        def rename() -> None:
            if old_id == new_id:
                raise InvalidRequest("the new name is the same as the old one", "new_reference_id")
            changes = VoiceFields(name=_check_id("new_reference_id", new_id))
            self.library_of(request).voices.edit(_check_id("old_reference_id", old_id), changes)

        names = {"old_reference_id": old_id, "new_reference_id": new_id}
        return await _answer(request, "renamed", write(rename), **names)


def _check_id(field: str, name: str) -> str:
    """Raises InvalidRequest."""
    if not _ID.fullmatch(name):
        raise InvalidRequest(f"{field} must be 1 to 255 letters, digits, spaces, - or _", field)
    return name


async def _answer(request: Request, message: str, work: Awaitable[None], **names: str) -> Response:
    """The answer once the work is done or has failed."""
    try:
        await work
    except (*REFUSALS, ApiError) as error:
        refusal = describe(error)
        response = answer(request, {"success": False, "message": refusal.message} | names, refusal.status)
        response.headers.update(refusal.headers)
        return response
    return answer(request, {"success": True, "message": message} | names)


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat()


def match_texts(texts: list[str], files: int) -> list[str]:
    """The transcript of each file: one text for each file, or one text for all, separated by commas; blank: not sent.

    A single file gets the whole text, including commas. Raises InvalidRequest.
    """
    if not texts:
        return [""] * files
    if len(texts) == files:
        return texts
    parts = [part.strip() for part in texts[0].split(",")]
    if len(texts) == 1 and len(parts) == files:
        return parts
    raise InvalidRequest(f"there are {files} recordings and {len(texts)} texts; send one text for each", "texts")


def split_tags(texts: list[str]) -> tuple[str, ...]:
    """Tags from texts that each contain one or more, separated by commas."""
    return tuple(tag.strip() for text in texts for tag in text.split(",") if tag.strip())

"""Pronunciation dictionaries over HTTP: /v1/pronunciations, for all callers, a voice, or a project of the caller."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from studio.api.body import JsonBody
from studio.api.field_types import BEFORE, StrictBody, VoiceName, as_read
from studio.api.openapi import reads_form, sends
from studio.api.queued import LibraryRoute
from studio.api.upload import read_form
from studio.errors import InvalidRequest
from studio.library.pronunciation_repository import MAX_DICTIONARY, Pronunciations, read_dictionary, write_dictionary
from studio.library.records import GLOBAL, MAX_PHRASE, MAX_SAID, DictionaryScope, Pronunciation
from studio.voices.resolver import VoiceResolver
from studio.work import write

FORM_LIMIT = MAX_DICTIONARY + 64 * 1024


class PronunciationRoutes:
    """All callers share the global dictionary; for the others, the rights to their voice or project apply."""

    def __init__(self, voices: VoiceResolver) -> None:
        self._voices = voices
        self._library = voices.library

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["pronunciations"], route_class=LibraryRoute)
        path = "/v1/pronunciations"
        routes.get(path)(self.list_entries)
        routes.post(path)(self.add)
        routes.get(path + "/csv", **sends("text/csv"))(self.export_entries)
        routes.put(path + "/csv", openapi_extra=reads_form("file", required=("file",)))(self.import_entries)
        routes.patch(path + "/{pronunciation_id}")(self.change)
        routes.delete(path + "/{pronunciation_id}")(self.delete)
        return routes

    def list_entries(self, request: Request, voice: str | None = None, project: str | None = None) -> JSONResponse:
        """The dictionary of a voice or project, or the global one; at most 2000 entries each, sorted by phrase."""
        dictionary = self._dictionary(request, voice, project)
        data = [pronunciation_json(entry, dictionary) for entry in self._repository(request).show(dictionary)]
        return JSONResponse({"object": "list", "data": data})

    def add(self, body: JsonBody[NewPronunciation], request: Request) -> JSONResponse:
        """Add an entry; there must be none for the same words."""
        dictionary = self._dictionary(request, body.voice, body.project)
        entry = self._repository(request).add(dictionary, Pronunciation(body.phrase, body.said, body.match_case))
        return JSONResponse(pronunciation_json(entry, dictionary), 201)

    def change(self, pronunciation_id: str, body: JsonBody[PronunciationChanges], request: Request) -> JSONResponse:
        """Edit an entry."""
        changes = body.model_dump(exclude={"before"}, exclude_none=True)
        dictionary, entry = self._repository(request).change(pronunciation_id, changes, as_read(body.before))
        return JSONResponse(pronunciation_json(entry, dictionary))

    def delete(self, pronunciation_id: str, request: Request) -> JSONResponse:
        """Delete an entry."""
        self._repository(request).delete(pronunciation_id)
        return JSONResponse({"id": pronunciation_id, "object": "pronunciation.deleted", "deleted": True})

    def export_entries(self, request: Request, voice: str | None = None, project: str | None = None) -> Response:
        """The dictionary as CSV, which can be imported again."""
        dictionary = self._dictionary(request, voice, project)
        headers = {"Content-Disposition": 'attachment; filename="pronunciations.csv"'}
        table = write_dictionary(self._repository(request).show(dictionary))
        return Response(table, media_type="text/csv; charset=utf-8", headers=headers)

    async def import_entries(
        self, request: Request, voice: str | None = None, project: str | None = None, replace: bool = False
    ) -> JSONResponse:
        """Import a CSV with the columns phrase, said and match_case: all of it, or nothing if there is an error.
        Existing entries for the same words are updated; ``replace=true`` removes all others."""
        form = await read_form(request, FORM_LIMIT, "file")

        def work() -> dict[str, Any]:
            dictionary = self._dictionary(request, voice, project)
            entries = read_dictionary(form.file("file"))
            total = self._repository(request).merge(dictionary, entries, replace)
            return {"object": "pronunciations.imported", "imported": len(entries), "total": total}

        return JSONResponse(await write(work))

    def _dictionary(self, request: Request, voice: str | None, project: str | None) -> DictionaryScope:
        """Raises InvalidRequest, UnknownVoice."""
        if voice and project:
            raise InvalidRequest("send either a voice or a project, not both", "project")
        if project:
            return DictionaryScope("project", project)
        if not voice:
            return GLOBAL
        library_voice = self._voices.seen_by(request.state.owner_filter).find(voice)
        if library_voice is None:
            raise InvalidRequest(f"{voice[:80]!r} is not a voice of the library", "voice")
        return DictionaryScope("voice", library_voice.id)

    def _repository(self, request: Request) -> Pronunciations:
        return self._library.seen_by(request.state.owner_filter).pronunciations


class NewPronunciation(StrictBody):
    """A global entry, or one for a voice or a project."""

    phrase: str = Field(description=f"A word or phrase as written, at most {MAX_PHRASE} characters.")
    said: str = Field(
        description=f"The text to read instead, at most {MAX_SAID} characters: other words, or phonemes between "
        "<|phoneme_start|> and <|phoneme_end|> if the model supports them."
    )
    match_case: bool = Field(False, description="Match case.")
    voice: VoiceName | None = Field(None, description="Only for this voice.")
    project: str | None = Field(None, description="Only for this project.")


class PronunciationFields(StrictBody):
    phrase: str | None = None
    said: str | None = None
    match_case: bool | None = None


class PronunciationChanges(PronunciationFields):
    """Fields that are absent or null stay as they are."""

    before: PronunciationFields | None = BEFORE


def pronunciation_json(entry: Pronunciation, dictionary: DictionaryScope) -> dict[str, Any]:
    return {
        "id": entry.id,
        "object": "pronunciation",
        "phrase": entry.phrase,
        "said": entry.said,
        "match_case": entry.match_case,
        "voice": dictionary.subject if dictionary.scope == "voice" else None,
        "project": dictionary.subject if dictionary.scope == "project" else None,
        "created_at": int(entry.created),
    }

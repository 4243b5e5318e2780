"""Pronunciation dictionaries over HTTP: /v1/pronunciations, for all callers, a voice, or a project of the caller."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from studio.api.http.body import as_model, read_json
from studio.api.http.openapi import reads, reads_form, sends
from studio.api.http.upload import read_form
from studio.api.schemas.pronunciations import NewPronunciation, PronunciationChanges, pronunciation_json
from studio.errors import InvalidRequest
from studio.library.pronunciations.entries import GLOBAL, DictionaryScope, Pronunciation
from studio.library.pronunciations.pronunciation_repository import Pronunciations
from studio.projects.documents.pronunciation_csv import MAX_BYTES, read_dictionary, write_dictionary
from studio.voices.resolver import VoiceResolver

FORM_LIMIT = MAX_BYTES + 64 * 1024
CSV_TYPE = "text/csv; charset=utf-8"


class PronunciationRoutes:
    """All callers share the global dictionary; for the others, the rights to their voice or project apply."""

    def __init__(self, voices: VoiceResolver) -> None:
        self._voices = voices
        self._library = voices.library

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["pronunciations"])
        path = "/v1/pronunciations"
        routes.get(path)(self.list_entries)
        routes.post(path, openapi_extra=reads(NewPronunciation))(self.add)
        routes.get(path + "/csv", **sends("text/csv"))(self.export_entries)
        routes.put(path + "/csv", openapi_extra=reads_form("file", required=("file",)))(self.import_entries)
        routes.patch(path + "/{pronunciation_id}", openapi_extra=reads(PronunciationChanges))(self.change)
        routes.delete(path + "/{pronunciation_id}")(self.delete)
        return routes

    def list_entries(self, request: Request, voice: str | None = None, project: str | None = None) -> JSONResponse:
        """The dictionary of a voice or project, or the global one; at most 2000 entries each, sorted by phrase."""
        dictionary = self._dictionary(request, voice, project)
        data = [pronunciation_json(entry, dictionary) for entry in self._repository(request).entries(dictionary)]
        return JSONResponse({"object": "list", "data": data})

    async def add(self, request: Request) -> JSONResponse:
        """Add an entry; there must be none for the same words."""
        body = as_model(await read_json(request), NewPronunciation)

        def work() -> dict[str, Any]:
            dictionary = self._dictionary(request, body.voice, body.project)
            entry = Pronunciation(body.phrase, body.said, body.match_case)
            return pronunciation_json(self._repository(request).add(dictionary, entry), dictionary)

        return JSONResponse(await to_thread.run_sync(work), 201)

    async def change(self, pronunciation_id: str, request: Request) -> JSONResponse:
        """Edit an entry."""
        body = as_model(await read_json(request), PronunciationChanges)

        def work() -> dict[str, Any]:
            dictionary = self._dictionary_of(request, pronunciation_id)
            return pronunciation_json(
                self._repository(request).change(pronunciation_id, body.phrase, body.said, body.match_case),
                dictionary,
            )

        return JSONResponse(await to_thread.run_sync(work))

    def delete(self, pronunciation_id: str, request: Request) -> JSONResponse:
        """Delete an entry."""
        self._repository(request).delete(pronunciation_id)
        return JSONResponse({"id": pronunciation_id, "object": "pronunciation.deleted", "deleted": True})

    def export_entries(self, request: Request, voice: str | None = None, project: str | None = None) -> Response:
        """The dictionary as CSV, which can be imported again."""
        dictionary = self._dictionary(request, voice, project)
        headers = {"Content-Disposition": 'attachment; filename="pronunciations.csv"'}
        return Response(
            write_dictionary(self._repository(request).entries(dictionary)), media_type=CSV_TYPE, headers=headers
        )

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

        return JSONResponse(await to_thread.run_sync(work))

    def _dictionary(self, request: Request, voice: str | None, project: str | None) -> DictionaryScope:
        """Raises InvalidRequest, UnknownVoice, NotFound."""
        if voice and project:
            raise InvalidRequest("send either a voice or a project, not both", "project")
        if project:
            return DictionaryScope("project", self._library.projects.get(project, request.state.owner_filter).id)
        if not voice:
            return GLOBAL
        library_voice = self._voices.seen_by(request.state.owner_filter).find(voice)
        if library_voice is None:
            raise InvalidRequest(f"{voice[:80]!r} is not a voice of the library", "voice")
        return DictionaryScope("voice", library_voice.id)

    def _dictionary_of(self, request: Request, entry_id: str) -> DictionaryScope:
        """Raises NotFound."""
        return self._repository(request).find(entry_id)[0]

    def _repository(self, request: Request) -> Pronunciations:
        return self._library.seen_by(request.state.owner_filter).pronunciations

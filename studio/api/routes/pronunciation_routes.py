"""Pronunciation dictionaries over HTTP: /v1/pronunciations, for all callers, a voice, or a project of the caller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from manuscript.passages import InvalidDocument
from manuscript.table import rows_of, write_rows
from studio.api.body import JsonBody
from studio.api.field_types import BEFORE, StrictBody, VoiceName, as_read
from studio.api.openapi import reads_form, sends
from studio.api.queued import LibraryRoute
from studio.api.upload import read_form
from studio.errors import InvalidRequest
from studio.library.checks import clean_entry
from studio.library.pronunciation_repository import Pronunciations
from studio.library.records import GLOBAL, MAX_ENTRIES, MAX_PHRASE, MAX_SAID, DictionaryScope, Pronunciation
from studio.voices.resolver import VoiceResolver
from studio.work import write

MAX_BYTES = 1024 * 1024
COLUMNS = ("phrase", "said", "match_case")
_YES, _NO = ("yes", "true", "1", "x"), ("no", "false", "0", "")

FORM_LIMIT = MAX_BYTES + 64 * 1024
CSV_TYPE = "text/csv; charset=utf-8"


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
        return Response(table, media_type=CSV_TYPE, headers=headers)

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


def read_dictionary(data: bytes) -> list[Pronunciation]:
    """The entries in order; the last one for the same words counts. Raises InvalidDocument with the line."""
    if len(data) > MAX_BYTES:
        raise InvalidDocument(f"the file has {len(data)} bytes; at most {MAX_BYTES} are allowed")
    entries: dict[str, Pronunciation] = {}
    for row, line in rows_of(data, COLUMNS[:2]):
        if any(field.strip() for field in row.values()):
            entry = _entry(row, line)
            entries[entry.key] = entry
    if not entries:
        raise InvalidDocument("the file has no entries")
    if len(entries) > MAX_ENTRIES:
        raise InvalidDocument(f"the file has {len(entries)} entries; at most {MAX_ENTRIES} are allowed")
    return list(entries.values())


def write_dictionary(entries: Iterable[Pronunciation]) -> str:
    """The CSV that `read_dictionary` reads."""
    rows = ((entry.phrase, entry.said, "yes" if entry.match_case else "") for entry in entries)
    return write_rows([COLUMNS, *rows])


def _entry(row: dict[str, str], line: int) -> Pronunciation:
    match_case = row.get("match_case", "").strip().lower()
    if match_case not in (*_YES, *_NO):
        raise InvalidDocument(f"line {line}: match_case must be yes, no or blank, not {match_case[:20]!r}")
    try:
        return clean_entry(Pronunciation(row.get("phrase", ""), row.get("said", ""), match_case in _YES))
    except InvalidRequest as error:
        raise InvalidDocument(f"line {line}: {error}") from None

"""The history over HTTP: /v1/takes, with audio in any format, stars, deletion, and zip export."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import Field

from audio.formats import MEDIA_TYPES, check_format
from audio.mastering import LOUDNESSES, NONE, standard_of
from studio.api.body import JsonBody
from studio.api.field_types import LOWER_CASE, MAX_IDS, StrictBody, check_deletion, ids_of
from studio.api.openapi import CUT, answers, reads_form, sends
from studio.api.queued import LibraryRoute
from studio.api.routes.models import for_loaded_model
from studio.api.routes.speech_routes import respond
from studio.api.routes.voice_forms import FORM_LIMIT, cut_of
from studio.api.sending import file_reader, range_response, streamed, until_hangup
from studio.api.speech_bodies import ContinueBody, RegenerateBody
from studio.api.upload import read_form
from studio.errors import CannotContinue, InvalidRequest, NotFound
from studio.library import TakeFilter
from studio.library.take import Take
from studio.speech.request import Origin
from studio.speech.resume import beginning_of
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import TakeWordTimes, Unit
from studio.takes.history import History, without_starred
from studio.takes.regeneration import Regeneration
from studio.takes.take_export import STORED, encoded, file_name, zipped
from studio.takes.take_json import request_again, timestamps_json
from studio.takes.take_likeness import TakeLikeness
from studio.work import read

CONTINUE_DOC = answers(*MEDIA_TYPES.values(), "text/event-stream")
CLIP = reads_form("audio_sample", *CUT, required=("audio_sample",))
MAX_PAGE = 200
MAX_ZIP = 200
_GUARDED = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}


class Star(StrictBody):
    starred: bool


class Ids(StrictBody):
    ids: list[str] = Field(min_length=1, max_length=MAX_IDS)


class TakeQuery:
    """The filter of lists, exports and deletions."""

    def __init__(
        self,
        request: Request,
        q: str = "",
        voice: str | None = None,
        starred: bool | None = None,
        since: str | None = None,
        until: str | None = None,
        ids: str | None = None,
    ) -> None:
        """``since`` and ``until``: Unix time or ISO 8601; ``ids``: separated by commas. Raises InvalidRequest."""
        moments = _moment("since", since), _moment("until", until)
        self.filter = TakeFilter(q, voice or None, starred, *moments, ids_of(ids), request.state.owner_filter)


Wanted = Annotated[TakeQuery, Depends()]


class TakeRoutes:
    """With API keys, each owner has a separate history; without keys, all callers share it."""

    def __init__(
        self,
        history: History,
        times: TakeWordTimes,
        likeness: TakeLikeness,
        regeneration: Regeneration,
        service: SpeechService,
        share_days: int,
    ) -> None:
        self._history, self._times, self._likeness, self._regeneration = history, times, likeness, regeneration
        self._service, self._share_days = service, share_days

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["takes"], route_class=LibraryRoute)
        take = "/v1/takes/{take_id}"
        routes.get("/v1/takes")(self.list_takes)
        routes.delete("/v1/takes")(self.delete_takes)
        routes.get("/v1/takes/export", **sends("application/zip"))(self.export)
        routes.post("/v1/takes/restore")(self.restore_takes)
        routes.get(take)(self.get_take)
        routes.patch(take)(self.star_take)
        routes.delete(take)(self.delete_take)
        routes.post(take + "/restore")(self.restore_take)
        routes.get(take + "/timestamps")(self.get_timestamps)
        routes.get(take + "/likeness")(self.get_likeness)
        routes.post(take + "/likeness", openapi_extra=CLIP)(self.compare_with_clip)
        routes.post(take + "/regenerate", status_code=201)(self.regenerate_sentences)
        routes.post(take + "/continue", openapi_extra=CONTINUE_DOC, response_class=Response)(self.continue_take)
        routes.get(take + "/audio", **sends(*MEDIA_TYPES.values()))(self.get_audio)
        return routes

    async def list_takes(
        self,
        request: Request,
        query: Wanted,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
        after: str | None = None,
    ) -> JSONResponse:
        """Running and stored takes, newest first; ``q`` searches their texts."""
        page = await self._history.page(await self._filter(query), limit, after)
        return JSONResponse(
            {
                "object": "list",
                "data": page.data,
                "last_id": page.last_id,
                "has_more": page.has_more,
                "retention": await self._history.retention_json(request.state.caller),
                "share_days": self._share_days,
            }
        )

    async def get_take(self, take_id: str, request: Request) -> JSONResponse:
        """A take, by the x-request-id of its response: text, parameters, timings, audio."""
        return JSONResponse(await self._history.get(take_id, request.state.owner_filter))

    async def get_timestamps(self, take_id: str, request: Request, of: Unit = "word") -> JSONResponse:
        """Times of the words or sentences, as typed, in seconds of the audio; computing them, once, takes the engine a
        few hundredths of the take's length."""
        take = await self._history.stored_take(take_id, request.state.owner_filter)
        times = await until_hangup(request, self._times.get(take, of, request.state.caller))
        return JSONResponse(timestamps_json("audio.take.timestamps", take, of, times))

    async def get_likeness(self, take_id: str, request: Request) -> JSONResponse:
        """How much a take sounds like the clip of its voice: ``percent``, from 0 (another person) to 100 (another
        recording of the same person); ``grade``: close, near or far; ``closest``: of the bundled voices the one that it
        sounds most like; ``findings``: faults of the clip that may be the reason if it is not close."""
        take, path = await self._history.sound(take_id, request.state.owner_filter)
        likeness = await until_hangup(request, self._likeness.to_voice(take, path, request.state.caller))
        return JSONResponse({"object": "audio.take.likeness", "take_id": take.id} | likeness.as_json())

    async def compare_with_clip(self, take_id: str, request: Request) -> JSONResponse:
        """How much a take sounds like an uploaded clip: multipart with audio_sample, optionally a cut."""
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        data, cut = form.file("audio_sample", "file"), cut_of(form)
        take, path = await self._history.sound(take_id, request.state.owner_filter)
        comparison = self._likeness.to_clip(take, path, request.state.caller, data, cut, "audio_sample")
        likeness = await until_hangup(request, comparison)
        return JSONResponse({"object": "audio.take.likeness", "take_id": take.id} | likeness.as_json())

    async def regenerate_sentences(
        self, take_id: str, body: JsonBody[RegenerateBody], request: Request
    ) -> JSONResponse:
        """Regenerate a sentence of a take in the same voice, with other words if wanted, joined seamlessly.

        The answer is the record of the new take, whose ``regenerated_from`` names the original take; that one is kept.
        """
        origin = Origin(request.state.request_id, request.state.caller)
        work = self._regeneration.add_take(
            take_id, body.start, body.end, request.state.owner_filter, origin, body.replacement
        )
        return JSONResponse(await until_hangup(request, work), 201)

    async def continue_take(self, take_id: str, body: JsonBody[ContinueBody], request: Request) -> Response:
        """Continue a take whose ``can_continue`` is true; the response is the whole take, as for a speech request.

        It is a new take; the original one stays as it is.
        """
        take, sound = await self._history.sound(take_id, request.state.owner_filter)
        library = self._service.voices.library.seen_by(request.state.owner_filter)
        info = self._service.host.engine().info
        beginning = await read(beginning_of, take, sound, library, info, body.max_new_tokens)
        again = await read(request_again, take, library)
        if again is None:
            raise CannotContinue(f"the uploaded clip used for the take {take_id} is not stored", "take_id")
        speech_body = await for_loaded_model(self._service, body.speech_body(again), request.state.caller)
        origin = Origin(request.state.request_id, request.state.caller)
        work = self._service.speak(speech_body.speech_request(), origin, beginning=beginning)
        return await respond(request, work, speech_body)

    async def get_audio(
        self,
        take_id: str,
        request: Request,
        format: Annotated[
            str | None, LOWER_CASE, Query(description=f"{', '.join(MEDIA_TYPES)}; absent: as stored")
        ] = None,
        sample_rate: int | None = None,
        loudness: Annotated[str, Query(description=f"The standard to meet: {', '.join(LOUDNESSES)}")] = NONE,
    ) -> Response:
        """The audio of a take. As stored, it has byte ranges; another format or the loudness of a standard is encoded
        on request."""
        standard = standard_of(loudness)
        take, sound = await self._history.playable(take_id, request.state.owner_filter)
        if standard is None and sample_rate is None and MEDIA_TYPES.get(format or STORED) == take.media_type:
            return stored_audio(request, take, sound, _GUARDED)
        check_format(name := format or STORED, sample_rate, "format")
        tag = f'"{take.audio}-{name}-{sample_rate or 0}{f"-{standard.name}" if standard else ""}"'
        headers = _GUARDED | {"ETag": tag, "Accept-Ranges": "none"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        headers["Content-Disposition"] = f'attachment; filename="{file_name(take, name)}"'
        pieces = encoded(sound, name, sample_rate, standard)
        return await streamed(request, self._service.queues.exports, pieces, MEDIA_TYPES[name], headers)

    async def star_take(self, take_id: str, body: JsonBody[Star], request: Request) -> JSONResponse:
        """Star a take, which protects it from automatic removal, or remove its star: {"starred": true}."""
        return JSONResponse(await self._history.star(take_id, body.starred, request.state.owner_filter))

    async def delete_take(self, take_id: str, request: Request) -> JSONResponse:
        """Delete a take; for ``undo_seconds`` (0 if it was not stored) POST …/restore restores it."""
        undo = await self._history.delete(take_id, request.state.owner_filter)
        return JSONResponse({"id": take_id, "object": "audio.take.deleted", "deleted": True, "undo_seconds": undo})

    async def restore_take(self, take_id: str, request: Request) -> JSONResponse:
        """Restore a deleted take."""
        if not await self._history.restore([take_id], request.state.owner_filter):
            raise NotFound("this take is not in the trash", "take_id")
        return JSONResponse(await self._history.get(take_id, request.state.owner_filter))

    async def delete_takes(self, request: Request, query: Wanted, confirm: bool = False) -> JSONResponse:
        """Delete all takes that match the filter of the list, starred ones only on request. At most 1000 at once.

        ``confirm=true`` is required; without it the error has their number.
        """
        check_deletion(request, "q", "voice", "starred", "since", "until", "ids", "confirm")
        take_filter = without_starred(await self._filter(query))
        if not confirm:
            count = await self._history.count(take_filter)
            raise InvalidRequest(f"this would delete {count} takes; to do so, send confirm=true", "confirm")
        ids, undo = await self._history.delete_all(take_filter)
        more = await self._history.count(take_filter) > 0
        return JSONResponse({"object": "list.deleted", "ids": ids, "has_more": more, "undo_seconds": undo})

    async def restore_takes(self, body: JsonBody[Ids], request: Request) -> JSONResponse:
        """Restore deleted takes: {"ids": [...]}, as returned by the deletion."""
        ids = await self._history.restore(body.ids, request.state.owner_filter)
        return JSONResponse({"object": "list", "ids": ids})

    async def export(
        self, request: Request, query: Wanted, format: Annotated[str, LOWER_CASE] = STORED
    ) -> StreamingResponse:
        """A zip with the audio of the matching takes, at most 200, and a manifest.json."""
        check_format(format, None, "format")
        take_filter = await self._filter(query)
        takes = await self._history.sounds(take_filter, MAX_ZIP + 1)
        if not takes:
            raise NotFound("none of these takes has audio", "ids")
        if len(takes) > MAX_ZIP:
            raise InvalidRequest(f"more than {MAX_ZIP} takes match; select fewer", "ids")
        records = [await self._history.get(take.id, take_filter.caller) for take, _ in takes]
        headers = _GUARDED | {"Content-Disposition": 'attachment; filename="takes.zip"'}
        pieces = zipped(takes, format, records)
        return await streamed(request, self._service.queues.exports, pieces, "application/zip", headers)

    async def _filter(self, query: TakeQuery) -> TakeFilter:
        return await self._history.with_voice_id(query.filter)


def stored_audio(request: Request, take: Take, sound: Path | bytes, headers: dict[str, str]) -> Response:
    """The take's file, or a range of it."""
    name = next((name for name, media_type in MEDIA_TYPES.items() if media_type == take.media_type), STORED)
    headers = headers | {"Content-Disposition": f'attachment; filename="{file_name(take, name)}"'}
    return range_response(request, take.size, str(take.audio), file_reader(sound), take.media_type, headers)


def _moment(name: str, text: str | None) -> float | None:
    """Unix time from a number or an ISO 8601 date and time, by default in UTC. Raises InvalidRequest."""
    if text is None or not text.strip():
        return None
    try:
        if re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,9})?", text.strip()):
            return float(text)
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{name} must be Unix time or ISO 8601, not {text[:40]!r}", name) from None

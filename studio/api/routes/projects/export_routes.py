"""A project's audio over HTTP: takes, the whole as one file, zips of chapters and parts, loudness, subtitles."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Generator
from typing import Annotated, BinaryIO
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import sends
from studio.api.http.ranges import file_reader, range_response, read_span
from studio.api.schemas.field_types import LOWER_CASE
from studio.api.schemas.projects import loudness_json, timeline_json
from studio.audio.mastering import STANDARDS, Mastering, Standard, standard_of
from studio.audio.tags import Tags
from studio.errors import InvalidRequest, NotFound
from studio.history.take_json import timestamps_json
from studio.history.take_word_times import TakeWordTimes
from studio.projects.concatenation import ConcatenatedWav, check_wav
from studio.projects.documents.subtitles import write_srt
from studio.projects.project_service import ProjectService
from studio.projects.proof.proof_report import ProofReport
from studio.projects.render import FORMATS, M4B, STREAMED, Masterings, encoded, write_m4b
from studio.projects.subtitle_cues import cues
from studio.projects.timeline import Timeline
from studio.projects.zip_export import chapters_zipped, zipped
from studio.speech.timing.timestamps import Unit
from studio.threads import in_threads
from studio.unicode_text import safe_file_name
from studio.work.work_queues import WorkQueues


class ProjectFiles:
    def __init__(self, service: ProjectService, times: TakeWordTimes, queues: WorkQueues) -> None:
        self._service = service
        self._times = times
        self._queues = queues
        self._library = service.library
        self._masterings = Masterings()

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        routes.get(project + "/takes/{take_id}/audio", **sends("audio/wav"))(self.take)
        routes.get(project + "/takes/{take_id}/timestamps")(self.timestamps)
        routes.get(project + "/timeline")(self.timeline)
        routes.get(project + "/audio", **sends(*FORMATS.values()))(self.audio)
        routes.get(project + "/loudness")(self.loudness)
        routes.get(project + "/chapters", **sends("application/zip"))(self.chapters)
        routes.get(project + "/zip", **sends("application/zip"))(self.zip)
        routes.get(project + "/subtitles", **sends("application/x-subrip"))(self.subtitles)
        return routes

    def take(self, project_id: str, take_id: str, request: Request) -> Response:
        """One take of one part: a WAV file."""
        take = self._library.projects.take(project_id, request.state.owner_filter, take_id)
        path = self._library.files.path(take.audio)
        if not path.exists():
            raise NotFound("the audio file of this take is missing from the library", "take")
        return range_response(request, path.stat().st_size, take.audio, file_reader(path), "audio/wav")

    async def timestamps(self, project_id: str, take_id: str, request: Request, of: Unit = "word") -> JSONResponse:
        """Times of the words or sentences of a part's take, in seconds of that take."""
        take = await to_thread.run_sync(self._library.projects.take, project_id, request.state.owner_filter, take_id)
        times = await until_hangup(request, self._times.get(take, of, request.state.caller))
        return JSONResponse(timestamps_json("project.take.timestamps", take, of, times))

    async def timeline(self, project_id: str, request: Request, partial: bool = False) -> JSONResponse:
        """Start and end of each part in the whole, exact to a sample."""
        return JSONResponse(timeline_json(await self._timeline(project_id, request, partial)))

    async def audio(
        self,
        project_id: str,
        request: Request,
        format: Annotated[str, LOWER_CASE] = "wav",
        partial: bool = False,
        loudness: str | None = None,
    ) -> Response:
        """The whole project as wav (with byte ranges), flac, mp3 or opus (streamed), or m4b with chapters.
        ``partial=true`` leaves out unfinished parts; ``loudness`` is none, podcast or acx, by default the project's.
        For a standard the whole is measured first, and wav has no byte ranges."""
        if format not in FORMATS:
            raise InvalidRequest(f"{format[:20]!r} is not a format; use one of {', '.join(FORMATS)}", "format")
        standard = await self._standard(project_id, request, loudness)
        timeline, tags = await self._whole(project_id, request, partial)
        mastering = await self._mastering(request, timeline, standard)
        headers = _saved_as(tags.title, format) | {"X-Missing-Parts": str(timeline.missing)}
        files = self._library.files
        if format == "wav" and mastering is None:
            wav = ConcatenatedWav(timeline, files)
            return range_response(request, wav.size, timeline.fingerprint, wav.read, FORMATS["wav"], headers)
        if format == M4B:
            book = await until_hangup(request, self._book(request.state.caller, timeline, tags, mastering))
            size = book.seek(0, 2)
            headers |= {"Content-Length": str(size)}
            return StreamingResponse(in_threads(read_span(book, 0, size)), media_type=FORMATS[M4B], headers=headers)
        if format == "wav":
            check_wav(timeline)
        pieces = await self._start_stream(request, encoded(timeline, files, format, tags, mastering))
        return StreamingResponse(pieces, media_type=FORMATS[format], headers=headers)

    async def loudness(
        self, project_id: str, request: Request, loudness: str | None = None, partial: bool = False
    ) -> JSONResponse:
        """Loudness of the whole, now and after adjustment to a standard: podcast or acx, by default the project's."""
        standard = await self._standard(project_id, request, loudness)
        timeline, _ = await self._whole(project_id, request, partial)
        # The measurement before adjustment is the same for every standard.
        mastering = await self._mastering(request, timeline, standard or STANDARDS["podcast"])
        assert mastering is not None
        return JSONResponse(loudness_json(mastering, standard is not None))

    async def chapters(
        self,
        project_id: str,
        request: Request,
        format: Annotated[str, LOWER_CASE] = "mp3",
        partial: bool = False,
        loudness: str | None = None,
    ) -> Response:
        """A zip with a tagged, numbered file for each chapter: mp3, flac, opus or wav; each file meets the standard.
        For acx, MP3 files have 192 kbit/s, and all files begin and end with silence."""
        if format not in STREAMED:
            raise InvalidRequest(
                f"{format[:20]!r} is not a format of chapters; use one of {', '.join(STREAMED)}", "format"
            )
        standard = await self._standard(project_id, request, loudness)
        timeline, tags = await self._whole(project_id, request, partial)
        zipping = chapters_zipped(timeline, self._library.files, format, tags, self._masterings, standard)
        headers = _saved_as(f"{tags.title} {format}", "zip") | {"X-Missing-Parts": str(timeline.missing)}
        return StreamingResponse(
            await self._start_stream(request, zipping), media_type="application/zip", headers=headers
        )

    async def _standard(self, project_id: str, request: Request, name: str | None) -> Standard | None:
        """The named standard, or the project's own. Raises InvalidRequest, NotFound."""
        project = await to_thread.run_sync(self._library.projects.get, project_id, request.state.owner_filter)
        return standard_of(project.settings.loudness if name is None else name)

    async def _whole(self, project_id: str, request: Request, partial: bool) -> tuple[Timeline, Tags]:
        """Raises NotFound, NotFinished."""
        timeline = await self._timeline(project_id, request, partial)
        return timeline, await to_thread.run_sync(self._service.tags, project_id, request.state.owner_filter, timeline)

    async def _timeline(self, project_id: str, request: Request, partial: bool) -> Timeline:
        """Queued as an export, because it reads the beginnings and ends of all takes."""
        lay_out = self._service.timeline
        work = self._queues.exports.run(request.state.caller, lay_out, project_id, request.state.owner_filter, partial)
        return await until_hangup(request, work)

    async def _start_stream(
        self, request: Request, pieces: Generator[bytes, None, None]
    ) -> AsyncGenerator[bytes, None]:
        return await until_hangup(request, self._queues.exports.stream(request.state.caller, pieces))

    async def _mastering(self, request: Request, timeline: Timeline, standard: Standard | None) -> Mastering | None:
        """The adjustment of the whole to a standard, found by measuring; cancelled if the client disconnects."""
        if standard is None:
            return None
        steps = self._masterings.find(timeline, self._library.files, standard)
        last = await until_hangup(request, self._queues.books.last_of(request.state.caller, steps))
        assert isinstance(last, Mastering)
        return last

    async def _book(self, caller: str, timeline: Timeline, tags: Tags, mastering: Mastering | None) -> BinaryIO:
        """The audiobook, an open file that the caller must close. Raises LibraryFull."""
        with self._library.store.explained():
            pieces = write_m4b(timeline, self._library.files, tags, self._library.home, mastering)
            return await self._queues.books.last_of(caller, pieces)

    async def zip(self, project_id: str, request: Request, partial: bool = False) -> Response:
        """A zip with a WAV file for each part, and manifest.csv, from which a project can be created again; if its
        audio was checked, also proof.csv and proof.txt."""
        timeline = await self._timeline(project_id, request, partial)
        owner_filter = request.state.owner_filter
        report = await to_thread.run_sync(ProofReport, self._library, project_id, owner_filter)
        names = await to_thread.run_sync(self._library.cast.names, project_id, owner_filter)
        pieces = await self._start_stream(request, zipped(timeline, self._library.files, names, report.files))
        return StreamingResponse(pieces, media_type="application/zip", headers=_saved_as(report.title, "zip"))

    async def subtitles(self, project_id: str, request: Request, partial: bool = False) -> Response:
        """SubRip subtitles, one cue per sentence, with times in the whole."""
        owner_filter = request.state.owner_filter

        def write() -> tuple[str, str]:
            timeline = self._service.timeline(project_id, owner_filter, partial)
            words = self._library.takes.word_times([placed.take.id for placed in timeline.placed])
            return self._library.projects.get(project_id, owner_filter).title, "".join(write_srt(cues(timeline, words)))

        work = self._queues.exports.run(request.state.caller, write)
        title, text = await until_hangup(request, work)
        return Response(text, media_type="application/x-subrip", headers=_saved_as(title, "srt"))


def _saved_as(title: str, extension: str) -> dict[str, str]:
    name = safe_file_name(title, extension, "project")
    plain = re.sub(r"[^\w .-]", "_", name, flags=re.ASCII)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}

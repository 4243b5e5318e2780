"""A project's sound over HTTP: one take, the whole as one file with byte ranges, a zip of the parts, subtitles."""

from __future__ import annotations

import hashlib
import re
from typing import BinaryIO
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import sends
from studio.api.http.ranges import of_file, of_path, ranged
from studio.api.schemas.projects import timeline_json
from studio.errors import InvalidRequest, NotFound
from studio.projects.documents.subtitles import write_srt
from studio.projects.render import FORMATS, M4B, ConcatenatedWav, encoded, write_m4b
from studio.projects.service import ProjectService
from studio.projects.timeline import Timeline
from studio.projects.zip_export import zipped
from studio.threads import in_threads

MOST_BOOKS = 2
"""Audio books that are written at once; others wait, and leave the threads to those who want speech."""


class ProjectFiles:
    """The routes, on this service."""

    def __init__(self, service: ProjectService) -> None:
        self._service = service
        self._library = service.library
        self._books = CapacityLimiter(MOST_BOOKS)

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["projects"])
        project = "/v1/projects/{project_id}"
        routes.get(project + "/takes/{take_id}/audio", **sends("audio/wav"))(self.take)
        routes.get(project + "/timeline")(self.timeline)
        routes.get(project + "/audio", **sends(*FORMATS.values()))(self.audio)
        routes.get(project + "/zip", **sends("application/zip"))(self.zip)
        routes.get(project + "/subtitles", **sends("application/x-subrip"))(self.subtitles)
        return routes

    def take(self, project_id: str, take_id: str, request: Request) -> Response:
        """One take of one part: a WAV file."""
        take = self._library.projects.take(project_id, request.state.sees, take_id)
        path = self._library.files.path(take.audio)
        if not path.exists():
            raise NotFound("the audio file of this take is missing from the library", "take")
        return ranged(request, path.stat().st_size, take.audio, of_path(path), "audio/wav")

    def timeline(self, project_id: str, request: Request, partial: bool = False) -> JSONResponse:
        """When which part is heard in the whole; exact, as it is counted in samples."""
        return JSONResponse(timeline_json(self._service.timeline(project_id, request.state.sees, partial)))

    async def audio(self, project_id: str, request: Request, format: str = "wav", partial: bool = False) -> Response:
        """The whole: wav (any byte range at once), flac, mp3 or opus (while it is encoded), or m4b with chapters.
        ``partial=true`` leaves out the parts that are not done."""
        if format not in FORMATS:
            raise InvalidRequest(f"{format[:20]!r} is not a format; use one of {', '.join(FORMATS)}", "format")
        sees = request.state.sees
        timeline = await to_thread.run_sync(self._service.timeline, project_id, sees, partial)
        title = (await to_thread.run_sync(self._library.projects.get, project_id, sees)).title
        headers = _saved_as(f"{title}.{format}") | {"X-Missing-Parts": str(timeline.missing)}
        files = self._library.files
        if format == "wav":
            wav = ConcatenatedWav(timeline, files)
            return ranged(request, wav.size, _fingerprint(timeline), wav.read, FORMATS["wav"], headers)
        if format == M4B:
            book = await until_hangup(request, self._book(timeline, title))
            size = book.seek(0, 2)
            headers |= {"Content-Length": str(size)}
            return StreamingResponse(in_threads(of_file(book, 0, size)), media_type=FORMATS[M4B], headers=headers)
        return StreamingResponse(
            in_threads(encoded(timeline, files, format)), media_type=FORMATS[format], headers=headers
        )

    async def _book(self, timeline: Timeline, title: str) -> BinaryIO:
        """The audio book, which whoever reads it closes. Raises LibraryFull."""
        async with self._books:
            with self._library.store.explained():
                pieces = write_m4b(timeline, self._library.files, title, self._library.home)
                return [book async for book in in_threads(pieces)][-1]

    async def zip(self, project_id: str, request: Request, partial: bool = False) -> Response:
        """A WAV for every part, and manifest.csv, of which a project can be made again."""
        sees = request.state.sees
        timeline = await to_thread.run_sync(self._service.timeline, project_id, sees, partial)
        title = (await to_thread.run_sync(self._library.projects.get, project_id, sees)).title
        pieces = in_threads(zipped(timeline, self._library.files))
        return StreamingResponse(pieces, media_type="application/zip", headers=_saved_as(f"{title}.zip"))

    def subtitles(self, project_id: str, request: Request, partial: bool = False) -> Response:
        """SubRip subtitles, a cue a part, with the times that the parts have in the whole."""
        timeline = self._service.timeline(project_id, request.state.sees, partial)
        seconds = timeline.seconds
        cues = ((seconds(each.start), seconds(each.end), each.part.text) for each in timeline.placed)
        title = self._library.projects.get(project_id, request.state.sees).title
        headers = _saved_as(f"{title}.srt")
        return Response("".join(write_srt(cues)), media_type="application/x-subrip", headers=headers)


def _fingerprint(timeline: Timeline) -> str:
    told = "\n".join(f"{each.take.audio} {each.start}" for each in timeline.placed)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _saved_as(name: str) -> dict[str, str]:
    plain = re.sub(r"[^\w .-]", "_", name, flags=re.ASCII)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}

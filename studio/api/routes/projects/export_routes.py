"""A project's files over HTTP: takes, the whole as one file, zips of chapters, parts and tracks, samples, subtitles."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Annotated, BinaryIO

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from studio.api.http.hangup import streamed, until_hangup
from studio.api.http.openapi import sends
from studio.api.http.ranges import file_reader, range_response, read_span
from studio.api.routes.projects.download_names import saved_as
from studio.api.schemas.field_types import LOWER_CASE
from studio.api.schemas.projects import loudness_json, timeline_json
from studio.audio.formats import check_bit_rate
from studio.audio.mastering import STANDARDS, Mastering, Standard, standard_of
from studio.audio.tags import Tags
from studio.errors import InvalidRequest, NotFound
from studio.history.take_json import timestamps_json
from studio.history.take_word_times import TakeWordTimes
from studio.library.projects.project_records import Project
from studio.projects.documents.subtitles import write_srt, write_vtt
from studio.projects.exports.concatenation import ConcatenatedWav, check_wav
from studio.projects.exports.epub_book import EPUB_TYPE, EpubMetadata, write_epub
from studio.projects.exports.render import FORMATS, M4B, STREAMED, Masterings, encoded, write_m4b
from studio.projects.exports.retail_sample import MAX_SECONDS, MIN_SECONDS, sample_of
from studio.projects.exports.subtitle_cues import cues
from studio.projects.exports.track_export import TRACK_FORMATS, speaker_in, tracks_zipped
from studio.projects.exports.zip_export import chapters_zipped, zipped
from studio.projects.project_service import ProjectService
from studio.projects.proof.proof_report import ProofReport
from studio.projects.timeline import Timeline
from studio.speech.timing.timestamps import Unit
from studio.threads import in_threads
from studio.work.work_queues import WorkQueues

SUBTITLES = {"srt": "application/x-subrip", "vtt": "text/vtt"}


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
        routes.get(project + "/tracks", **sends("application/zip"))(self.tracks)
        routes.get(project + "/sample", **sends(*STREAMED.values()))(self.sample)
        routes.get(project + "/epub", **sends(EPUB_TYPE))(self.epub)
        routes.get(project + "/subtitles", **sends(*SUBTITLES.values()))(self.subtitles)
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
        bitrate: int | None = None,
    ) -> Response:
        """The whole project as wav (with byte ranges), flac, mp3 or opus (streamed), or m4b with chapters.
        ``partial=true`` leaves out unfinished parts; ``loudness`` is none, podcast or acx, and ``bitrate`` kbit/s of an
        mp3, by default the project's. For a standard the whole is measured first, and wav has no byte ranges."""
        if format not in FORMATS:
            raise InvalidRequest(f"{format[:20]!r} is not a format; use one of {', '.join(FORMATS)}", "format")
        _, standard, bitrate = await self._finish(project_id, request, loudness, bitrate, format)
        timeline, tags = await self._timeline_and_tags(project_id, request, partial)
        mastering = await self._mastering(request, timeline, standard)
        headers = saved_as(tags.title, format) | {"X-Missing-Parts": str(timeline.missing)}
        files = self._library.files
        if format == "wav" and mastering is None:
            wav = ConcatenatedWav(timeline, files)
            return range_response(request, wav.size, timeline.fingerprint, wav.read, FORMATS["wav"], headers)
        if format == M4B:
            writing = write_m4b(timeline, files, tags, self._library.home, mastering)
            return await self._written(request, writing, FORMATS[M4B], headers)
        if format == "wav":
            check_wav(timeline)
        pieces = encoded(timeline, files, format, tags, mastering, bitrate)
        return await self._streamed(request, pieces, FORMATS[format], headers)

    async def loudness(
        self, project_id: str, request: Request, loudness: str | None = None, partial: bool = False
    ) -> JSONResponse:
        """Loudness of the whole, now and after adjustment to a standard: podcast or acx, by default the project's."""
        _, standard, _ = await self._finish(project_id, request, loudness)
        timeline, _ = await self._timeline_and_tags(project_id, request, partial)
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
        bitrate: int | None = None,
    ) -> Response:
        """A zip with a tagged, numbered file for each chapter: mp3, flac, opus or wav; each file meets the standard.
        For acx, MP3 files have 192 kbit/s unless ``bitrate`` differs, and all files begin and end with silence."""
        _check_streamed(format, "chapters")
        _, standard, bitrate = await self._finish(project_id, request, loudness, bitrate, format)
        timeline, tags = await self._timeline_and_tags(project_id, request, partial)
        chunks = chapters_zipped(timeline, self._library.files, format, tags, self._masterings, standard, bitrate)
        headers = saved_as(f"{tags.title} {format}", "zip") | {"X-Missing-Parts": str(timeline.missing)}
        return await self._streamed(request, chunks, "application/zip", headers)

    async def tracks(
        self,
        project_id: str,
        request: Request,
        format: Annotated[str, LOWER_CASE] = "flac",
        partial: bool = False,
    ) -> Response:
        """A zip for an audio editor: a flac or wav file for each character (without a cast: for each voice), all as
        long as the whole, with silence where others speak; labels.txt and chapters.txt are labels for Audacity."""
        if format not in TRACK_FORMATS:
            allowed = ", ".join(TRACK_FORMATS)
            raise InvalidRequest(f"{format[:20]!r} is not a format of tracks; use one of {allowed}", "format")
        timeline, tags = await self._timeline_and_tags(project_id, request, partial)
        cast = await to_thread.run_sync(self._library.cast.names, project_id, request.state.owner_filter)
        chunks = tracks_zipped(timeline, self._library.files, format, tags.title, speaker_in(cast))
        headers = saved_as(f"{tags.title} tracks", "zip") | {"X-Missing-Parts": str(timeline.missing)}
        return await self._streamed(request, chunks, "application/zip", headers)

    async def sample(
        self,
        project_id: str,
        request: Request,
        format: Annotated[str, LOWER_CASE] = "mp3",
        seconds: Annotated[float, Query(ge=MIN_SECONDS, le=MAX_SECONDS)] = MAX_SECONDS,
        first: str | None = None,
        last: str | None = None,
        partial: bool = False,
        loudness: str | None = None,
        bitrate: int | None = None,
    ) -> Response:
        """A sample for shops: at most ``seconds``, up to the end of a sentence. It begins with the part ``first``, by
        default after the opening credits, and ends with the part ``last`` at the latest."""
        _check_streamed(format, "samples")
        project, standard, bitrate = await self._finish(project_id, request, loudness, bitrate, format)
        book, tags = await self._timeline_and_tags(project_id, request, partial)
        left_out = (project.settings.opening_part,)
        edges = (standard.head, standard.tail) if standard else (0.0, 0.0)
        cut = (book, self._library.files, self._library.takes.word_times, seconds, first, last, left_out, *edges)
        timeline = await to_thread.run_sync(sample_of, *cut)
        mastering = await self._mastering(request, timeline, standard)
        tags = replace(tags, chapters=())
        pieces = encoded(timeline, self._library.files, format, tags, mastering, bitrate)
        return await self._streamed(request, pieces, FORMATS[format], saved_as(f"{tags.title} sample", format))

    async def epub(
        self,
        project_id: str,
        request: Request,
        partial: bool = False,
        loudness: str | None = None,
        bitrate: int | None = None,
    ) -> Response:
        """An EPUB 3 with the text and the audio (media overlays): readers highlight each sentence as it is played.
        ``bitrate`` applies to its MP3 files; 64 by default."""
        project, standard, _ = await self._finish(project_id, request, loudness, bitrate)
        timeline, tags = await self._timeline_and_tags(project_id, request, partial)
        mastering = await self._mastering(request, timeline, standard)
        book = EpubMetadata(project.id, tags, project.changed, project.settings.chapter_pause)
        library = self._library
        writing = write_epub(timeline, library.files, library.takes.word_times, book, library.home, mastering, bitrate)
        headers = saved_as(tags.title, "epub") | {"X-Missing-Parts": str(timeline.missing)}
        return await self._written(request, writing, EPUB_TYPE, headers)

    async def _finish(
        self, project_id: str, request: Request, loudness: str | None, bitrate: int | None = None, format: str = "mp3"
    ) -> tuple[Project, Standard | None, int | None]:
        """The project, and the named standard and bit rate, or its own. Raises InvalidRequest, NotFound."""
        check_bit_rate(bitrate, format)
        project = await to_thread.run_sync(self._library.projects.get, project_id, request.state.owner_filter)
        settings = project.settings
        standard = standard_of(settings.loudness if loudness is None else loudness)
        return project, standard, settings.bitrate if bitrate is None else bitrate

    async def _timeline_and_tags(self, project_id: str, request: Request, partial: bool) -> tuple[Timeline, Tags]:
        """Raises NotFound, NotFinished."""
        timeline = await self._timeline(project_id, request, partial)
        return timeline, await to_thread.run_sync(self._service.tags, project_id, request.state.owner_filter, timeline)

    async def _timeline(self, project_id: str, request: Request, partial: bool) -> Timeline:
        """Queued as an export, because it reads the beginnings and ends of all takes."""
        lay_out = self._service.timeline
        work = self._queues.exports.run(request.state.caller, lay_out, project_id, request.state.owner_filter, partial)
        return await until_hangup(request, work)

    async def _streamed(
        self, request: Request, pieces: Generator[bytes, None, None], media_type: str, headers: dict[str, str]
    ) -> Response:
        return await streamed(request, self._queues.exports, pieces, media_type, headers)

    async def _mastering(self, request: Request, timeline: Timeline, standard: Standard | None) -> Mastering | None:
        """The adjustment of the whole to a standard, found by measuring; cancelled if the client disconnects."""
        if standard is None:
            return None
        steps = self._masterings.find(timeline, self._library.files, standard)
        mastering = await until_hangup(request, self._queues.books.last_of(request.state.caller, steps))
        assert isinstance(mastering, Mastering)
        return mastering

    async def _written(
        self, request: Request, writing: Generator[BinaryIO, None, None], media_type: str, headers: dict[str, str]
    ) -> Response:
        """A file that is written before it is sent; the writing ends if the client disconnects. Raises LibraryFull."""

        async def write() -> BinaryIO:
            with self._library.store.explain_errors():
                return await self._queues.books.last_of(request.state.caller, writing)

        file = await until_hangup(request, write())
        size = file.seek(0, 2)
        headers = headers | {"Content-Length": str(size)}
        return StreamingResponse(in_threads(read_span(file, 0, size)), media_type=media_type, headers=headers)

    async def zip(self, project_id: str, request: Request, partial: bool = False) -> Response:
        """A zip with a WAV file for each part, and manifest.csv, from which a project can be created again; if its
        audio was checked, also proof.csv and proof.txt."""
        timeline = await self._timeline(project_id, request, partial)
        owner_filter = request.state.owner_filter
        report = await to_thread.run_sync(ProofReport, self._library, project_id, owner_filter)
        names = await to_thread.run_sync(self._library.cast.names, project_id, owner_filter)
        pieces = zipped(timeline, self._library.files, names, report.files)
        return await self._streamed(request, pieces, "application/zip", saved_as(report.title, "zip"))

    async def subtitles(
        self,
        project_id: str,
        request: Request,
        format: Annotated[str, LOWER_CASE] = "srt",
        partial: bool = False,
    ) -> Response:
        """Subtitles as srt (SubRip) or vtt (WebVTT, with the characters of a cast), one cue per sentence, with times in
        the whole."""
        if format not in SUBTITLES:
            raise InvalidRequest(
                f"{format[:20]!r} is not a format of subtitles; use one of {', '.join(SUBTITLES)}", "format"
            )
        owner_filter = request.state.owner_filter

        def write() -> tuple[str, str]:
            timeline = self._service.timeline(project_id, owner_filter, partial)
            names = self._library.cast.names(project_id, owner_filter)
            lines = (write_srt if format == "srt" else write_vtt)(cues(timeline, self._library.takes.word_times, names))
            return self._library.projects.get(project_id, owner_filter).title, "".join(lines)

        work = self._queues.exports.run(request.state.caller, write)
        title, text = await until_hangup(request, work)
        return Response(text, media_type=SUBTITLES[format], headers=saved_as(title, format))


def _check_streamed(name: str, files: str) -> None:
    if name not in STREAMED:
        raise InvalidRequest(f"{name[:20]!r} is not a format of {files}; use one of {', '.join(STREAMED)}", "format")

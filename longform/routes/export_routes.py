"""A project's files over HTTP: takes, the whole as one file, zips of chapters, parts and tracks, samples, subtitles."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, BinaryIO, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from audio.formats import check_bit_rate
from audio.loudness import Loudness as Measured
from audio.mastering import STANDARDS, Mastering, Standard, standard_of
from longform.epub_book import EPUB_TYPE, write_epub
from longform.file_jobs import CountedFiles, FileJob, FileJobs
from longform.library.project_records import Project
from longform.library.project_repository import ALL_PARTS
from longform.project_service import ProjectService
from longform.proof.proof_report import ProofReport
from longform.render import FORMATS, M4B, STREAMED, ConcatenatedWav, Masterings, check_wav, checks, encoded, write_m4b
from longform.retail_sample import MAX_SECONDS, MIN_SECONDS, sample_of
from longform.routes.project_bodies import timeline_json
from longform.tags import Tags
from longform.timed_text import cues
from longform.timeline import Placed, Timeline
from longform.zip_export import TRACK_FORMATS, Sheet, chapters_zipped, speaker_in, tracks_zipped, zipped
from manuscript.subtitles import write_srt, write_vtt
from studio.api.field_types import LOWER_CASE
from studio.api.openapi import sends
from studio.api.queued import change, look_up, project_router
from studio.api.sending import file_reader, range_response, read_span, streamed, until_hangup
from studio.errors import InvalidRequest, NotFound
from studio.speech.word_times import TakeWordTimes, Unit
from studio.takes.take_json import timestamps_json
from studio.unicode_text import safe_file_name
from studio.work import WorkQueue, in_threads

Result = TypeVar("Result")

ZIP = "application/zip"
MEASURED_TOO = 3
"""How often each take is read for a standard: its chapter is measured before and after the adjustment, then written."""
MAX_RECEIPTS = 32
"""Number of zips whose receipts are remembered, each with the ids of at most 20,000 takes."""
SUBTITLES = {"srt": "application/x-subrip", "vtt": "text/vtt"}


@dataclass(frozen=True, slots=True)
class Finish:
    """Query parameters of all files with finished audio; those that are None are the project's own."""

    partial: bool = False
    loudness: str | None = None
    bitrate: int | None = None


Finishing = Annotated[Finish, Depends()]
Format = Annotated[str, LOWER_CASE]


@dataclass(frozen=True, slots=True)
class Whole:
    """A project's audio, and how it is to be finished."""

    project: Project
    timeline: Timeline
    tags: Tags
    standard: Standard | None
    bitrate: int | None

    def saved_as(self, title: str, extension: str) -> dict[str, str]:
        """The headers of a file of it."""
        return saved_as(title, extension) | {"X-Missing-Parts": str(self.timeline.missing)}


class ProjectFiles:
    def __init__(
        self, service: ProjectService, times: TakeWordTimes, exports: WorkQueue, books: WorkQueue, jobs: FileJobs
    ) -> None:
        self._service = service
        self._times = times
        self._exports, self._books = exports, books
        self._library = service.library
        self._jobs = jobs
        self._masterings = Masterings()
        self._sent: dict[tuple[str, str | None, str], dict[str, str]] = {}
        """The takes of the last zips that were sent to their ends, by project, owner and receipt."""

    def router(self) -> APIRouter:
        routes = project_router()
        project = "/v1/projects/{project_id}"
        routes.get(project + "/takes/{take_id}/audio", **sends("audio/wav"))(self.take)
        routes.get(project + "/takes/{take_id}/timestamps")(self.timestamps)
        routes.get(project + "/timeline")(self.timeline)
        routes.get(project + "/audio", **sends(*FORMATS.values()))(self.audio)
        routes.get(project + "/loudness")(self.loudness)
        routes.get(project + "/chapters", **sends(ZIP))(self.chapters)
        routes.get(project + "/zip", **sends(ZIP))(self.zip)
        routes.post(project + "/zip/{receipt}")(self.received)
        routes.get(project + "/tracks", **sends(ZIP))(self.tracks)
        routes.get(project + "/sample", **sends(*STREAMED.values()))(self.sample)
        routes.get(project + "/epub", **sends(EPUB_TYPE))(self.epub)
        routes.get(project + "/subtitles", **sends(*SUBTITLES.values()))(self.subtitles)
        return routes

    def take(self, project_id: str, take_id: str, request: Request) -> Response:
        """One take of one part: a WAV file."""
        take = self._library.projects.take(project_id, request.state.owner_filter, take_id)
        path = self._library.files.checked(take.audio, take.size)
        return range_response(request, take.size, take.audio, file_reader(path), "audio/wav")

    async def timestamps(self, project_id: str, take_id: str, request: Request, of: Unit = "word") -> JSONResponse:
        """Times of the words or sentences of a part's take, in seconds of that take."""
        find = self._library.projects.take
        take = await until_hangup(request, look_up(find, project_id, request.state.owner_filter, take_id))
        times = await until_hangup(request, self._times.get(take, of, request.state.caller))
        return JSONResponse(timestamps_json("project.take.timestamps", take, of, times))

    async def timeline(self, project_id: str, request: Request, partial: bool = False) -> JSONResponse:
        """Start and end of each part in the whole, exact to a sample."""
        timeline_of, owner_filter = self._service.timeline, request.state.owner_filter
        return await self._queued(
            request, lambda: JSONResponse(timeline_json(timeline_of(project_id, owner_filter, partial)))
        )

    async def audio(self, project_id: str, request: Request, finish: Finishing, format: Format = "wav") -> Response:
        """The whole project as wav (with byte ranges), flac, mp3 or opus (streamed), or m4b with chapters.
        ``partial=true`` leaves out unfinished parts; ``loudness`` is none, podcast or acx, and ``bitrate`` kbit/s of an
        mp3, by default the project's. For a standard the whole is measured first, and wav has no byte ranges."""
        _check_format(format, FORMATS)
        whole = await self._whole(project_id, request, finish, format)
        timeline, tags = whole.timeline, whole.tags
        if format != "wav" or whole.standard or "range" not in request.headers:  # else a player asks for a little more
            await self._check(request, timeline.placed)
        mastering = await self._mastering(request, whole.project, timeline, whole.standard)
        headers = whole.saved_as(tags.title, format)
        if format == "wav" and mastering is None:
            wav = ConcatenatedWav(timeline, self._library.files)
            return range_response(request, wav.size, timeline.fingerprint, wav.read, FORMATS["wav"], headers)
        job, files = self._job(request, whole, format)
        if format == M4B:
            writing = write_m4b(timeline, files, tags, self._library.home, mastering)
            return await self._written(request, self._jobs.during(job, writing), FORMATS[M4B], headers)
        if format == "wav":
            check_wav(timeline)
        pieces = encoded(timeline, files, format, tags, mastering, whole.bitrate)
        return await self._streamed(request, self._jobs.during(job, pieces), FORMATS[format], headers)

    async def loudness(
        self, project_id: str, request: Request, loudness: str | None = None, partial: bool = False
    ) -> JSONResponse:
        """Loudness of the whole, now and after adjustment to a standard: podcast or acx, by default the project's."""
        whole = await self._whole(project_id, request, Finish(partial, loudness))
        # The measurement before adjustment is the same for every standard.
        mastering = await self._mastering(
            request, whole.project, whole.timeline, whole.standard or STANDARDS["podcast"]
        )
        assert mastering is not None
        return JSONResponse(loudness_json(mastering, whole.standard is not None))

    async def chapters(self, project_id: str, request: Request, finish: Finishing, format: Format = "mp3") -> Response:
        """A zip with a tagged, numbered file for each chapter: mp3, flac, opus or wav; each file meets the standard.
        For acx, MP3 files have 192 kbit/s unless ``bitrate`` differs, and all files begin and end with silence."""
        _check_format(format, STREAMED, " of chapters")
        whole = await self._whole(project_id, request, finish, format)
        await self._check(request, whole.timeline.placed)
        job, files = self._job(request, whole, f"{format} zip", 1 if whole.standard is None else MEASURED_TOO)
        audio = whole.timeline, files, format, whole.tags
        chunks = chapters_zipped(*audio, self._masterings, whole.standard, whole.bitrate)
        headers = whole.saved_as(f"{whole.tags.title} {format}", "zip")
        return await self._streamed(request, self._jobs.during(job, chunks), ZIP, headers)

    async def tracks(
        self, project_id: str, request: Request, format: Format = "flac", partial: bool = False
    ) -> Response:
        """A zip for an audio editor: a flac or wav file for each character (without a cast: for each voice), all as
        long as the whole, with silence where others speak; labels.txt and chapters.txt are labels for Audacity."""
        _check_format(format, TRACK_FORMATS, " of tracks")
        whole = await self._whole(project_id, request, Finish(partial))
        await self._check(request, whole.timeline.placed)
        title, names = whole.tags.title, self._library.cast.names
        cast = await self._queued(request, names, project_id, request.state.owner_filter)
        job, files = self._job(request, whole, "tracks")
        chunks = self._jobs.during(job, tracks_zipped(whole.timeline, files, format, title, speaker_in(cast)))
        return await self._streamed(request, chunks, ZIP, whole.saved_as(f"{title} tracks", "zip"))

    async def sample(
        self,
        project_id: str,
        request: Request,
        finish: Finishing,
        format: Format = "mp3",
        seconds: Annotated[float, Query(ge=MIN_SECONDS, le=MAX_SECONDS)] = MAX_SECONDS,
        first: str | None = None,
        last: str | None = None,
    ) -> Response:
        """A sample for shops: at most ``seconds``, up to the end of a sentence. It begins with the part ``first``, by
        default after the opening credits, and ends with the part ``last`` at the latest."""
        _check_format(format, STREAMED, " of samples")
        whole = await self._whole(project_id, request, finish, format)
        left_out, standard, files = (whole.project.settings.opening_part,), whole.standard, self._library.files
        edges = (standard.head, standard.tail) if standard else (0.0, 0.0)
        cut = (whole.timeline, files, self._library.takes.word_times, seconds, first, last, left_out, *edges)
        timeline = await self._queued(request, sample_of, *cut)
        await self._check(request, timeline.placed)
        mastering = await self._mastering(request, whole.project, timeline, standard)
        tags = replace(whole.tags, chapters=())
        pieces = encoded(timeline, files, format, tags, mastering, whole.bitrate)
        return await self._streamed(request, pieces, FORMATS[format], saved_as(f"{tags.title} sample", format))

    async def epub(self, project_id: str, request: Request, finish: Finishing) -> Response:
        """An EPUB 3 with the text and the audio (media overlays): readers highlight each sentence as it is played.
        ``bitrate`` applies to its MP3 files; 64 by default."""
        whole = await self._whole(project_id, request, finish)
        await self._check(request, whole.timeline.placed)
        library = self._library
        mastering = await self._mastering(request, whole.project, whole.timeline, whole.standard)
        job, files = self._job(request, whole, "epub")
        sources = whole.timeline, files, library.takes.word_times
        writing = write_epub(*sources, whole.project, whole.tags, library.home, mastering, finish.bitrate)
        return await self._written(
            request, self._jobs.during(job, writing), EPUB_TYPE, whole.saved_as(whole.tags.title, "epub")
        )

    async def _whole(self, project_id: str, request: Request, finish: Finish, format: str = "mp3") -> Whole:
        """Raises InvalidRequest, NotFound, NotFinished."""
        check_bit_rate(finish.bitrate, format)
        owner_filter = request.state.owner_filter

        def read() -> Whole:
            project = self._library.projects.get(project_id, owner_filter)
            settings = project.settings
            standard = standard_of(settings.loudness if finish.loudness is None else finish.loudness)
            timeline = self._service.timeline(project_id, owner_filter, finish.partial)
            tags = self._service.tags(project_id, owner_filter, timeline)
            bitrate = settings.bitrate if finish.bitrate is None else finish.bitrate
            return Whole(project, timeline, tags, standard, bitrate)

        return await self._queued(request, read)

    async def _check(self, request: Request, takes: Sequence[Placed]) -> None:
        """Read all takes before anything is sent: half a file might pass for a whole one. Raises DamagedAudio."""
        await until_hangup(request, self._exports.stream(request.state.caller, checks(takes, self._library.files)))

    def _job(self, request: Request, whole: Whole, kind: str, passes: int = 1) -> tuple[FileJob, CountedFiles]:
        """The job of making a file of the whole, whose takes are read ``passes`` times, and the files to read."""
        title, takes = f"{whole.tags.title} ({kind})", passes * len(whole.timeline.placed)
        job = FileJob(request.state.caller, title, whole.project.id, takes)
        return job, CountedFiles(self._library.files, job)

    async def _queued(self, request: Request, function: Callable[..., Result], *values: object) -> Result:
        """Queued as an export: a timeline reads the beginnings and ends of all takes."""
        return await until_hangup(request, self._exports.run(request.state.caller, function, *values))

    async def _streamed(
        self, request: Request, pieces: Generator[bytes, None, None], media_type: str, headers: dict[str, str]
    ) -> Response:
        return await streamed(request, self._exports, pieces, media_type, headers)

    async def _mastering(
        self, request: Request, project: Project, timeline: Timeline, standard: Standard | None
    ) -> Mastering | None:
        """The adjustment of the whole to a standard, found by measuring; cancelled if the client disconnects."""
        if standard is None:
            return None
        job = FileJob(request.state.caller, project.title, project.id, 0, "measure")
        finding = self._masterings.find(timeline, CountedFiles(self._library.files, job), standard)

        def steps() -> Generator[object, None, None]:
            yield (yield from finding)

        work = self._books.last_of(request.state.caller, self._jobs.during(job, steps()))
        mastering = await until_hangup(request, work)
        assert isinstance(mastering, Mastering)
        return mastering

    async def _written(
        self, request: Request, writing: Generator[BinaryIO, None, None], media_type: str, headers: dict[str, str]
    ) -> Response:
        """A file that is written before it is sent; the writing ends if the client disconnects. Raises LibraryFull."""
        if request.scope.get("is_head"):  # minutes of work for its size alone
            writing.close()
            return StreamingResponse(iter(()), media_type=media_type, headers=headers)

        async def write() -> BinaryIO:
            with self._library.store.explain_errors():
                file = await self._books.last_of(request.state.caller, writing)
                assert file is not None
                return file

        file = await until_hangup(request, write())
        size = file.seek(0, 2)
        headers = headers | {"Content-Length": str(size)}
        return StreamingResponse(in_threads(read_span(file, 0, size)), media_type=media_type, headers=headers)

    async def zip(
        self,
        project_id: str,
        request: Request,
        partial: bool = False,
        changed: bool = False,
        receipt: Annotated[str, Query(max_length=64)] = "",
    ) -> Response:
        """A zip with a WAV file for each part, and manifest.csv, from which a project can be created again; if its
        audio was checked, also proof.csv and proof.txt. The files of a table's lines have the names or ids that it
        gives. ``receipt``: a new word, with which the client says that the zip has arrived whole. ``changed=true``:
        only takes that no zip had of which that was said."""
        owner_filter = request.state.owner_filter

        def read() -> tuple[Timeline, dict[str, str], ProofReport, Sheet | None]:
            timeline = self._service.timeline(project_id, owner_filter, partial)
            names = self._library.cast.names(project_id, owner_filter)
            columns = self._library.projects.get(project_id, owner_filter).settings.columns
            parts = self._library.projects.parts(project_id, owner_filter, 0, -1, ALL_PARTS, True)
            table = Sheet(parts, columns, changed) if columns or changed else None
            return timeline, names, ProofReport(self._library, project_id, owner_filter), table

        timeline, names, report, table = await self._queued(request, read)
        chosen = table.chosen(timeline) if table else timeline.placed
        takes = {placed.part.id: placed.take.id for placed in chosen}
        if not takes:
            raise InvalidRequest("no line has changed since the last zip of takes", "changed")
        await self._check(request, chosen)

        job = FileJob(request.state.caller, f"{report.title} (zip)", project_id, len(takes))
        files = CountedFiles(self._library.files, job)

        def pieces() -> Generator[bytes, None, None]:
            yield from zipped(timeline, files, names, report.files, table)
            if receipt:
                self._sent[project_id, owner_filter, receipt] = takes
                while len(self._sent) > MAX_RECEIPTS:
                    self._sent.pop(next(iter(self._sent)), None)

        headers = saved_as(f"{report.title} changed" if changed else report.title, "zip")
        headers |= {"X-Missing-Parts": str(timeline.missing), "X-Parts": str(len(takes))}
        return await self._streamed(request, self._jobs.during(job, pieces()), ZIP, headers)

    async def received(self, project_id: str, receipt: str, request: Request) -> JSONResponse:
        """Say that the zip with this receipt has arrived whole; a later one of changes leaves out its takes. 404 if it
        was not sent to its end, or long ago."""
        owner_filter = request.state.owner_filter
        takes = self._sent.get((project_id, owner_filter, receipt))
        if takes is None:
            raise NotFound("no zip with this receipt was sent to its end; fetch it again", "receipt")
        await until_hangup(request, change(self._library.tables.mark_sent, project_id, owner_filter, takes))
        return JSONResponse({"object": "project.zip.received", "parts": len(takes)})

    async def subtitles(
        self, project_id: str, request: Request, format: Format = "srt", partial: bool = False
    ) -> Response:
        """Subtitles as srt (SubRip) or vtt (WebVTT, with the characters of a cast), one cue per sentence, with times in
        the whole."""
        _check_format(format, SUBTITLES, " of subtitles")
        owner_filter = request.state.owner_filter

        def write() -> tuple[str, str]:
            timeline = self._service.timeline(project_id, owner_filter, partial)
            names = self._library.cast.names(project_id, owner_filter)
            lines = (write_srt if format == "srt" else write_vtt)(cues(timeline, self._library.takes.word_times, names))
            return self._library.projects.get(project_id, owner_filter).title, "".join(lines)

        title, text = await self._queued(request, write)
        return Response(text, media_type=SUBTITLES[format], headers=saved_as(title, format))


def _check_format(name: str, allowed: Iterable[str], of_files: str = "") -> None:
    if name not in allowed:
        raise InvalidRequest(f"{name[:20]!r} is not a format{of_files}; use one of {', '.join(allowed)}", "format")


def saved_as(title: str, extension: str) -> dict[str, str]:
    """Content-Disposition of a file of a project with this title; letters of all scripts are kept."""
    name = safe_file_name(title, extension, "project")
    plain = re.sub(r"[^\w .-]", "_", name, flags=re.ASCII)
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"}


def loudness_json(mastering: Mastering, has_standard: bool) -> dict[str, Any]:
    """Without a standard, ``after`` equals ``before``."""

    def measured(loudness: Measured) -> dict[str, float | None]:
        return {
            "integrated_lufs": loudness.integrated and round(loudness.integrated, 1),
            "true_peak_db": round(loudness.true_peak, 1),
            "peak_db": round(loudness.peak, 1),
            "rms_db": round(loudness.rms, 1),
            "noise_floor_db": round(loudness.noise_floor, 1),
            "longest_silence_s": round(loudness.silence, 1),
        }

    return {
        "object": "project.loudness",
        "loudness": mastering.standard.name if has_standard else "none",
        "gain_db": round(mastering.gain, 1) if has_standard else 0.0,
        "limited": mastering.is_limited if has_standard else False,
        "before": measured(mastering.before),
        "after": measured(mastering.after if has_standard else mastering.before),
        "faults": mastering.standard.faults(mastering.after) if has_standard else [],
    }

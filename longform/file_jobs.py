"""The files that are being made from projects, as jobs that can be listed and cancelled."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar, cast

from studio.errors import Cancelled, NotFound
from studio.jobs import JobCaller, JobEntry
from studio.library.audio_files import AudioFiles

Piece = TypeVar("Piece")


class FileJob:
    """A file that is made: counts the takes that are read for it, and ends at the next one if it is cancelled."""

    def __init__(self, caller: str, title: str, project: str, takes: int, kind: str = "file") -> None:
        """``takes``: how many will be read; 0: unknown. ``kind``: file or measure."""
        self._kind = kind
        self.key = uuid.uuid4().hex
        self.caller, self._title, self._project, self._takes = caller, title, project, takes
        self._read = 0
        self.started = time.monotonic()
        self._is_cancelled = False

    @property
    def entry(self) -> JobEntry:
        done = min(self._read, self._takes) if self._takes else self._read
        eta = (time.monotonic() - self.started) / done * (self._takes - done) if done and self._takes else None
        return JobEntry(self._kind, self.key, self._title, done, self._takes, None, eta, self._project)

    def cancel(self) -> None:
        self._is_cancelled = True

    def note_read(self) -> None:
        """Raises Cancelled."""
        if self._is_cancelled:
            raise Cancelled("the file was cancelled in the list of jobs")
        self._read += 1


class CountedFiles(AudioFiles):
    """The library's files, of which each that is looked up counts as a step of a job."""

    def __init__(self, files: AudioFiles, job: FileJob) -> None:
        """It adds no file, and needs no folder of its own."""
        self._files, self._job = files, job

    def path(self, digest: str) -> Path:
        """Raises Cancelled, ValueError."""
        self._job.note_read()
        return self._files.path(digest)


class FileJobs:
    """The files that are being made. Used from several threads."""

    kinds = frozenset({"file", "measure"})

    def __init__(self) -> None:
        self._jobs: dict[str, FileJob] = {}

    def during(self, job: FileJob, pieces: Generator[Piece, None, None]) -> Generator[Piece, None, None]:
        """The same pieces; the job is listed from now on, while it waits for its turn too, until their end."""
        listed = self._listed(job, pieces)
        next(listed)  # only a generator that has begun notices that it is closed
        return cast(Generator[Piece, None, None], listed)

    def _listed(self, job: FileJob, pieces: Generator[Piece, None, None]) -> Generator[Piece | None, None, None]:
        self._jobs[job.key] = job
        try:
            yield None
            job.started = time.monotonic()
            yield from pieces
        finally:
            self._jobs.pop(job.key, None)

    async def jobs(self, caller: JobCaller) -> list[JobEntry]:
        return [job.entry for job in list(self._jobs.values()) if job.caller == caller.name]

    async def cancel(self, kind: str, key: str, caller: JobCaller) -> None:
        job = self._jobs.get(key)
        if job is None or job.caller != caller.name:
            raise NotFound("this file is no longer being generated", "job")
        job.cancel()
        del self._jobs[key]  # it ends at its next step, which may have to wait for its turn

"""The list of jobs: queued parts and files that are being made, each seen and cancelled by its own caller."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from longform.library.project_records import NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from studio.errors import Cancelled, NotFound, QueueFull
from studio.jobs import CountedFiles, FileJob, FileJobs, JobCaller
from studio.library.audio_files import AudioFiles
from studio.work import EXPORTS, WorkQueue
from tests.longform.test_projects import Json, create_project, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served


def listed(served: Served) -> list[Json]:
    with served.client() as client:
        return client.get("/v1/jobs").json()["data"]


def test_queued_parts_are_a_job_that_can_be_cancelled(steered: Callable[..., Steered]) -> None:
    served, engine = steered(max_rows=2)
    engine.later_frames_gate.clear()
    project = create_project(
        served, items=[{"input": text} for text in ("One.", "Two.", "Three.")], title="Counting", start=True
    )
    [job] = listed(served)
    assert (job["kind"], job["title"], job["project"]) == ("parts", "Counting", project["id"])
    assert (job["done"], job["left"], job["total"], job["eta_s"]) == (0, 3, 3, None)
    with served.client() as client:
        assert client.delete(f"/v1/jobs/{job['id']}").json()["cancelled"] is True
        assert listed(served) == []
        for unknown in ("file:gone", "toast:1"):
            assert_envelope(client.delete(f"/v1/jobs/{unknown}"), 404)
    engine.later_frames_gate.set()
    until(served, project, "new", queued=0)


async def test_file_counts_the_takes_that_it_reads_and_ends_at_the_next_when_cancelled(tmp_path: Path) -> None:
    anna, bert = (JobCaller(name, name, False) for name in ("anna", "bert"))
    jobs, job = FileJobs(), FileJob("anna", "Counting (mp3)", "p", 4)
    files = CountedFiles(AudioFiles(tmp_path), job)

    def pieces() -> Generator[Path, None, None]:
        for number in range(4):
            yield files.path(f"{number}" * 64)

    making = jobs.during(job, pieces())
    [waiting] = await jobs.jobs(anna)
    assert (waiting.done, waiting.total, waiting.eta_s) == (0, 4, None)
    assert next(making) == tmp_path / "00" / ("0" * 64)
    [entry] = await jobs.jobs(anna)
    assert (entry.done, entry.total, entry.project) == (1, 4, "p") and entry.eta_s is not None
    assert await jobs.jobs(bert) == []
    with pytest.raises(NotFound):
        await jobs.cancel("file", job.key, bert)
    await jobs.cancel("file", job.key, anna)
    assert await jobs.jobs(anna) == []
    with pytest.raises(Cancelled):
        next(making)
    refused = WorkQueue(dataclasses.replace(EXPORTS, at_once=0, waiting=0))
    with pytest.raises(QueueFull):
        await refused.stream("anna", jobs.during(job, (b"" for _ in range(3))))
    assert await jobs.jobs(anna) == []


def test_old_projects_with_work_under_way_are_jobs(tmp_path: Path) -> None:
    projects = ProjectLibrary(tmp_path).projects
    old, checked, *_ = (
        projects.create("", str(number), "txt", [NewPart("Hi.")], ProjectSettings()).id for number in range(5)
    )
    projects.queue_parts(old, None, "all")
    found = projects.page(None, 2, under_way=json.dumps([checked]))
    assert [project.id for project in found] == [checked, old]

"""Several studios on one library: each part is spoken by one of them, or by another once the first has ended."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from studio.library import Library
from studio.library.projects import part_queue
from studio.library.projects.project_records import ClaimedPart, NewPart, Project, ProjectSettings
from studio.library.takes.take import NewTake, Take
from studio.paths import ROOT
from studio.speech.planning import planner
from tests.studio.conftest import Steered
from tests.studio.projects.test_projects import PROJECTS, create_project, parts_of, post_verb, until
from tests.studio.server import Served
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]


@pytest.fixture
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studios check often for changes by other studios on the same library."""
    monkeypatch.setattr("studio.projects.worker.RENEW_SECONDS", 0.05)


@pytest.mark.usefixtures("watchful")
def test_two_studios_speak_each_part_once(steered: Steer, tmp_path: Path) -> None:
    (first, engine), (second, other) = (steered(home=str(tmp_path), max_rows=4) for _ in range(2))
    for fake in (engine, other):
        fake.later_frames_gate.clear()
    project = create_project(first, items=[{"input": f"Number {n}."} for n in range(8)], start=True)
    until(second, project, speaking=4, queued=4)  # two each: the second has noticed by itself
    for studio in (first, second):
        studio.until(running=2)  # a part counts as speaking once it is claimed, before its engine has it
    assert len(engine.utterances) == len(other.utterances) == 2
    third, _ = steered(home=str(tmp_path), project_rows=0)  # its start takes nothing away from the others
    assert until(third, project, speaking=4)["parts"]["queued"] == 4
    for fake in (engine, other):
        fake.later_frames_gate.set()
    until(first, project, "done")
    spoken = sorted(utterance.text for utterance in [*engine.utterances, *other.utterances])
    assert spoken == [f"Number {n}." for n in range(8)]
    assert all(len(part["takes"]) == 1 for part in parts_of(first, project))


@pytest.mark.usefixtures("watchful")
@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_parts_cancelled_or_deleted_by_another_studio_end_here(steered: Steer, tmp_path: Path, verb: str) -> None:
    (first, engine), (second, _) = (
        steered(home=str(tmp_path)),
        steered(home=str(tmp_path), project_rows=0),
    )
    engine.later_frames_gate.clear()
    project = create_project(first, items=[{"input": "One two."}], start=True)
    first.until(running=1)
    if verb == "cancel":
        post_verb(second, project, "cancel")
    else:
        with second.client() as client:
            assert client.delete(f"{PROJECTS}/{project['id']}").status_code == 200
    first.until(running=0, cancelled=1)


@contextmanager
def another_studio(home: Path, voices: Path, lease: float) -> Iterator[tuple[Served, subprocess.Popen[str]]]:
    program = [sys.executable, "-m", "tests.studio.projects.studio_process", str(home), str(voices), str(lease)]
    with subprocess.Popen(program, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip(), None), process  # type: ignore[arg-type]
        finally:
            process.kill()


@pytest.mark.usefixtures("watchful")
def test_studio_takes_over_the_parts_of_a_killed_one(steered: Steer, voices_folder: Path, tmp_path: Path) -> None:
    with another_studio(tmp_path, voices_folder, lease=2.5) as (killed, process):
        project = create_project(killed, items=[{"input": "One, stop."}, {"input": "Two, stop."}], start=True)
        until(killed, project, speaking=2)
        served, engine = steered(home=str(tmp_path))
        library: Library = served.app.state.studio.library
        for _ in range(2):  # a living studio keeps its leases
            ends = leases(library)
            wait_until_true(lambda: min(leases(library)) > max(ends))  # noqa: B023
        assert engine.utterances == []
        process.kill()
        until(served, project, "done")
    assert len(engine.utterances) == 2


def leases(library: Library) -> list[float]:
    with library.store.reading() as db:
        return [row["leased_until"] for row in db.table("parts").rows_where("state = 'speaking'")]


def test_part_being_planned_ends_with_its_project(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, go_on, plan_of = threading.Event(), threading.Event(), planner.plan_of

    def held(*arguments: object) -> object:
        planned.set()
        assert go_on.wait(60)
        return plan_of(*arguments)  # type: ignore[arg-type]

    served, engine = steered()
    monkeypatch.setattr(planner, "plan_of", held)
    project = create_project(served, items=[{"input": "One two three."}], start=True)
    assert planned.wait(60)
    assert post_verb(served, project, "cancel")["state"] == "new"
    go_on.set()
    until(served, create_project(served, items=[{"input": "Next."}], start=True), "done")
    assert [utterance.text for utterance in engine.utterances] == ["Next."]
    assert until(served, project, "new")["parts"]["new"] == 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The current time, as the only entry."""
    now = [1_000_000.0]
    monkeypatch.setattr("studio.library.projects.part_queue.time.time", lambda: now[0])
    return now


def claimed(library: Library) -> tuple[Project, ClaimedPart]:
    project = library.projects.create("", "Book", "txt", [NewPart("One.")], ProjectSettings())
    library.projects.queue_parts(project.id, None, "all")
    part = library.part_queue.claim()
    assert part is not None and library.part_queue.claim() is None
    return project, part


def test_expired_lease_ends_and_its_late_worker_changes_nothing(tmp_path: Path, clock: list[float]) -> None:
    library, other = Library(tmp_path), Library(tmp_path)
    project, part = claimed(library)
    clock[0] += part_queue.LEASE_SECONDS - 1
    assert other.part_queue.recover() == 0 and library.part_queue.renew([part.lease]) == {part.lease}
    clock[0] += part_queue.LEASE_SECONDS - 1
    assert other.part_queue.recover() == 0
    clock[0] += 2
    assert other.part_queue.recover() == 1
    taken = other.part_queue.claim()
    assert taken is not None and taken.part_id == part.part_id and taken.lease != part.lease
    assert library.part_queue.renew([part.lease]) == set()
    take = Take("late", 1.0, "anna", 1, "finished", part_id=part.part_id, recipe=part.recipe, work_s=1.0)
    library.part_queue.done(part, NewTake(take, [b"sound"]))
    library.part_queue.fail(part, "late")
    library.part_queue.release(part)
    library.part_queue.drop(part)
    [now] = library.projects.parts(project.id, None)
    assert (now.state, now.attempts, now.takes) == ("speaking", 0, ())
    library.part_queue.recover([taken.lease])
    assert library.projects.get(project.id, None).parts["queued"] == 1


def test_clock_set_back_does_not_lock_parts(tmp_path: Path, clock: list[float]) -> None:
    library = Library(tmp_path)
    claimed(library)
    clock[0] -= 3600
    assert library.part_queue.recover() == 0, "its worker has time to renew it"
    clock[0] += part_queue.LEASE_SECONDS
    assert library.part_queue.recover() == 1

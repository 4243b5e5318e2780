"""The library under kill -9 and with many processes: no incomplete voice, lost file, or orphan among the audio."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from longform.library.project_repository import ProjectLibrary
from studio.library import Library
from tests.studio.library.worker import begin, work


def check(home: Path) -> Library:
    """Open the library as a start does, and check that its contents are consistent."""
    library = ProjectLibrary(home)
    named = set[str]()
    voices = library.voices.page() + library.voices.page(deleted=True)
    for voice in voices:
        for revision in range(1, voice.latest + 1) if voice.deleted is None else ():
            samples = library.voices.get(f"{voice.id}@{revision}").samples
            assert samples, f"{voice.address} lost its samples"
            for sample in samples:
                library.files.read(sample.clip)
    with sqlite3.connect(library.home / "library.db") as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert db.execute("pragma foreign_key_check").fetchall() == []
        incomplete = "select count(*) from revisions r where not exists (select 1 from samples s where s.voice_id = r.voice_id and s.revision = r.number)"  # noqa: E501
        assert db.execute(incomplete).fetchone() == (0,)
        assert db.execute("select count(*) from samples where voice_id not in (select id from voices)").fetchone() == (
            0,
        )
        named |= {
            row[0]
            for row in db.execute(
                "select clip from samples union select audio from takes union select recording from consents"
            )
        } - {None}
    found = {name for name, _ in library.files.everything()}
    assert named <= found
    assert all(name.endswith(".unnamed") for name in found - named)  # an orphan is set aside, for some days
    return library


@pytest.mark.parametrize("seed", range(5))
def test_killed_process_leaves_a_consistent_library(tmp_path: Path, seed: int) -> None:
    for turn in range(3):
        worker, progress = begin(work, tmp_path, seed * 10 + turn, 10_000, 4)
        for _ in range(5 + 12 * seed + turn):
            progress.recv()
        worker.kill()
        worker.join()
        progress.close()
        check(tmp_path)


def test_library_stays_consistent_under_eight_concurrent_processes(tmp_path: Path) -> None:
    workers = [begin(work, tmp_path, seed, 100, 6) for seed in range(8)]
    for worker, progress in workers:
        for _ in range(100):
            progress.recv()
        worker.join()
        assert worker.exitcode == 0
    library = check(tmp_path)
    assert len({voice.name for voice in library.voices.page()}) == library.voices.count()

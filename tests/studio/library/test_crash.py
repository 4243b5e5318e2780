"""The library under kill -9 and under many processes: no half voice, no lost file, no orphan."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from studio.library import Library
from studio.settings import ROOT

WORKER = """
import runpy, sys
sys.modules["pandas"] = None  # sqlite_utils would import it, for half of a worker's start
runpy.run_module("tests.studio.library.worker", run_name="__main__")
"""


def start(home: Path, seed: int, count: int, names: int) -> subprocess.Popen[str]:
    arguments = [str(home), str(seed), str(count), str(names)]
    return subprocess.Popen([sys.executable, "-c", WORKER, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def check(home: Path) -> Library:
    """Open the library as a start does, and hold everything in it against everything else."""
    library = Library(home)
    named = set[str]()
    voices = library.voices.page() + library.voices.deleted()
    for voice in voices:
        for revision in range(1, voice.latest + 1) if voice.deleted is None else ():
            samples = library.voices.get(f"{voice.id}@{revision}").samples
            assert samples, f"{voice.address} lost its samples"
            for sample in samples:
                library.files.read(sample.clip)
    with sqlite3.connect(library.home / "library.db") as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert db.execute("pragma foreign_key_check").fetchall() == []
        half = "select count(*) from revisions r where not exists (select 1 from samples s where s.voice_id = r.voice_id and s.revision = r.number)"  # noqa: E501
        assert db.execute(half).fetchone() == (0,)
        assert db.execute("select count(*) from samples where voice_id not in (select id from voices)").fetchone() == (
            0,
        )
        named |= {
            row[0]
            for row in db.execute(
                "select clip from samples union select audio from takes union select recording from consents"
            )
        } - {None}
    assert {name for name, _ in library.files.everything()} == named
    library.audit.verify()
    return library


@pytest.mark.parametrize("seed", range(8))
def test_a_process_killed_in_the_middle_leaves_a_whole_library(tmp_path: Path, seed: int) -> None:
    for turn in range(3):
        worker = start(tmp_path, seed * 10 + turn, 10_000, 4)
        assert worker.stdout
        for _ in range(5 + 7 * seed + turn):
            assert worker.stdout.readline()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker.stdout.close()
        check(tmp_path)


def test_eight_processes_with_two_hundred_operations_each_agree(tmp_path: Path) -> None:
    workers = [start(tmp_path, seed, 200, 6) for seed in range(8)]
    outputs = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sum(len(output.splitlines()) for output, _ in outputs) == 1600
    library = check(tmp_path)
    assert len({voice.name for voice in library.voices.page()}) == library.voices.count()

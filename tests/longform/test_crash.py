"""A studio killed in the middle of a project continues where it stopped and keeps the finished parts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from studio import ROOT
from tests.longform.test_projects import PROJECTS, parts_of, until
from tests.studio.conftest import Steered
from tests.studio.server import Served


def test_a_killed_studio_resumes_its_projects(
    steered: Callable[..., Steered], voices_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longform.worker.RENEW_SECONDS", 0.05)
    command = [sys.executable, "-m", "tests.longform.studio_process", str(tmp_path), str(voices_folder), "1"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        items = [{"input": text} for text in ("One.", "Two.", "Please stop.", "Four.", "Five, stop.", "Six.")]
        project = httpx.post(url + PROJECTS, json={"items": items, "start": True}, timeout=60).json()
        before = until(Served(url, None), project, done=3, speaking=2, queued=1)  # type: ignore[arg-type]
        assert before["state"] == "running"
        parts_before = parts_of(Served(url, None), project)  # type: ignore[arg-type]
        process.kill()
    served, engine = steered(home=str(tmp_path), max_rows=4)
    until(served, project, "done")
    assert sorted(utterance.text for utterance in engine.utterances) == ["Five, stop.", "Please stop.", "Six."]
    parts = parts_of(served, project)
    assert [part["chosen"] for part in parts if part["chosen"] in {old["chosen"] for old in parts_before}] == [
        parts_before[index]["chosen"] for index in (0, 1, 3)
    ]
    assert all(len(part["takes"]) == 1 for part in parts)
    with served.client() as client:
        assert client.get(f"{PROJECTS}/{project['id']}/audio").status_code == 200

"""Hostile model folders: each is answered in words by the list, by a switch and by `check`, and the studio goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch import check_command
from studio.settings import Settings
from tests.hostile_models import HOSTILE, SEEN_LATER
from tests.studio.fake_engine import FakeEngine
from tests.studio.models.conftest import LIST, STATE, switched
from tests.studio.server import Served, serve


@pytest.fixture(scope="module")
def served(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studio.engine_host.LAST_USE_SECONDS", 0.0)
        patch.setattr("studio.engine_host.release_memory", lambda: None)
        patch.setattr("studio.models.model_list.CATALOGUE", ())  # surveying it takes most of the time
        home = str(tmp_path_factory.mktemp("home"))
        with serve(Settings(model="test/model", voices=str(voices_folder), home=home), FakeEngine.start) as served:
            yield served


def check_words(words: str) -> None:
    assert words and words.isprintable() and "Traceback" not in words and len(words) < 9000


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_model_is_answered_in_words(
    served: Served, quick_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = str(HOSTILE[name](shutil.copytree(quick_checkpoint, tmp_path / "model")))
    with served.client() as client:
        answer = client.get(LIST, params={"path": path})
        assert answer.status_code == 200
        if (error := answer.json()["data"][-1]["error"]) is not None:
            check_words(error)
        refused = client.put(STATE, json={"model": path})
        if refused.status_code == 202:
            assert any(file in name for file in SEEN_LATER) and error is None
            assert switched(client)["error"] is None
        else:
            assert refused.status_code == 400
            check_words(refused.json()["error"]["message"])
        assert client.get("/health").json()["status"] == "ready"
    if refused.status_code == 400 or "tokenizer.json" in name:
        assert check_command.main([path, "--device", "cpu"]) == 1
        words = capsys.readouterr().err.splitlines()[-1]
        assert words.startswith("studio: ")
        check_words(words)

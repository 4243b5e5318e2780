"""One studio with two speech processes, whose takes of more than a frame continue until they are cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.settings import Settings, read_keys
from tests.fleet.frontends.engines import held
from tests.fleet.frontends.several import Several, several
from tests.studio.sounds import tone, wav
from tests.waiting import wait_until_true

KEYS = [f"key-{number}" for number in range(20)]


@pytest.fixture(scope="package")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    voices = tmp_path_factory.mktemp("voices")
    (voices / "anna.wav").write_bytes(wav(tone(1.5, hertz=300)))
    (voices / "anna.txt").write_text("My name is Anna.\n")
    settings = Settings(
        home=str(tmp_path_factory.mktemp("home")),
        voices=str(voices),
        model="test/model",
        api_keys=read_keys(",".join(KEYS)),
        max_rows=8,
        max_per_caller=2,
        requests_per_minute=8,
    )
    with several(settings, lambda: held) as studio:
        yield studio
        pids, folder = studio.pids, studio.processes._folder
    assert folder is not None and not Path(folder).exists()
    wait_until_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.fixture
def key(studio: Several, request: pytest.FixtureRequest) -> Iterator[str]:
    """The key of a caller that no other test uses; all its takes must have ended afterwards."""
    studio.ready(2)
    key = KEYS.pop()
    yield key
    wait_until_true(lambda: not any(studio.active_takes(number) for number in range(2)))

"""The studio over real connections: with the real engine for a whole run, or a fake one per test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine import Engine, EngineConfig
from longform.worker import ProjectWorker
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

Steered = tuple[Served, FakeEngine]


@pytest.fixture(scope="session")
def voices_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bundled voices, and files that are not voices."""
    folder = tmp_path_factory.mktemp("voices")
    for name, hertz in (("anna", 300), ("bert", 150)):
        (folder / f"{name}.wav").write_bytes(wav(tone(1.5, hertz=hertz)))
        (folder / f"{name}.txt").write_text(f"My name is {name}.\n")
    (folder / "wordless.wav").write_bytes(wav(tone(1.5)))
    (folder / "README.md").write_text("voices")
    return folder


@pytest.fixture(scope="session")
def studio(quick_checkpoint: Path, voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio with the real engine on a small random checkpoint."""
    home, voices = str(tmp_path_factory.mktemp("studio")), str(voices_folder)
    settings = Settings(model=str(quick_checkpoint), home=home, voices=voices, max_rows=2, max_waiting=2)
    with serve(settings, Engine.start) as served:
        yield served


@contextlib.contextmanager
def _steered(bundled: Path, project_rows: int | None = None, **settings: Any) -> Iterator[Steered]:
    """A studio whose engine the test controls; ``project_rows`` is passed to `ProjectWorker`."""
    engines: list[FakeEngine] = []

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        engines.append(FakeEngine.start(config, progress))
        return engines[0]

    options = {"model": "test/model", "voices": str(bundled)} | settings
    assert options.keys() <= Settings.model_fields.keys()
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("longform.extension.ProjectWorker", partial(ProjectWorker, rows=project_rows))
            served = stack.enter_context(serve(Settings(**options), start))
        yield served, engines[0]


@pytest.fixture
def steered(voices_folder: Path) -> Iterator[Callable[..., Steered]]:
    """Makes a studio whose engine the test controls: ``steered(max_rows=1, …)`` accepts what `_steered` does."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(_steered(voices_folder, **settings))


@pytest.fixture(scope="module")
def untouched(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steered]:
    """One studio for all tests of a file whose requests it refuses, or that leave nothing which others could find."""
    with _steered(voices_folder, home=str(tmp_path_factory.mktemp("home"))) as steered:
        yield steered

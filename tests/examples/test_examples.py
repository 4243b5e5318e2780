"""Every example runs as its first line says and writes speech."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import soundfile

from engine import Engine
from studio import ASSETS, ROOT
from studio.settings import Settings
from tests.clients.test_node import NODE
from tests.studio.server import Served, serve

EXAMPLES = ROOT / "examples"
CLIP = ASSETS / "fry" / "voices" / "Otto.wav"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With one of the bundled voices: each takes the model half a second."""
    voices = tmp_path_factory.mktemp("voices")
    for clip in (ASSETS / "fry" / "voices").glob("Clara.*"):
        shutil.copy(clip, voices)
    settings = Settings(home=str(tmp_path_factory.mktemp("home")), voices=str(voices))
    with serve(settings, Engine.start) as served:
        yield served


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs an example with these arguments; one in Python in this process, which has imported most of it already."""

    def run(example: str, *arguments: object) -> None:
        words = [str(EXAMPLES / example), *map(str, arguments)]
        if example.endswith(".py"):
            monkeypatch.setattr(sys, "argv", words)
            runpy.run_path(words[0], run_name="__main__")
            return
        done = subprocess.run([NODE, *words], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr

    return run


def seconds_of(path: Path) -> float:
    return float(soundfile.info(path).duration)


def test_stream_example_writes_speech(run: Callable[..., None], tmp_path: Path) -> None:
    run("stream_to_file.py", "Hello there.", tmp_path / "a.wav")
    assert 0.5 < seconds_of(tmp_path / "a.wav") < 5


def test_clone_example_writes_speech(run: Callable[..., None], tmp_path: Path) -> None:
    words = CLIP.with_suffix(".txt").read_text("utf-8")
    run("clone_a_voice.py", CLIP, words, "Hello there.", tmp_path / "a.wav")
    assert 0.5 < seconds_of(tmp_path / "a.wav") < 5


def test_batch_example_writes_a_file_per_line(run: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("One line.\n\nAnother line.\n")
    run("run_a_batch.py", tmp_path / "lines.txt", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0001.wav", "0002.wav"]
    assert all(seconds_of(path) > 0.4 for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["call_the_api.py", "call_the_api.mjs"])
def test_api_examples_write_speech(run: Callable[..., None], studio: Served, tmp_path: Path, name: str) -> None:
    run(name, studio.url, tmp_path / "a.mp3")
    assert 0.5 < seconds_of(tmp_path / "a.mp3") < 5


def test_every_example_is_listed_and_tested() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    tried = Path(__file__).read_text("utf-8")
    for path in EXAMPLES.iterdir():
        if path.suffix in (".py", ".mjs"):
            assert f"]({path.name})" in listed and f'"{path.name}"' in tried

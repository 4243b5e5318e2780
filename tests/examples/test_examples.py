"""Every example runs as its first line says, and what it writes is speech."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from engine import Engine
from studio.paths import ASSETS, ROOT
from studio.settings import Settings
from tests.clients.test_openai_node import NODE
from tests.studio.server import Served, serve

EXAMPLES = ROOT / "examples"
CLIP = ASSETS / "fry" / "voices" / "Otto.wav"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = Settings(home=str(tmp_path_factory.mktemp("home")))
    with serve(settings, Engine.start) as served:
        yield served


def run(*command: object) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    words = [str(word) for word in command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def seconds_of(path: Path) -> float:
    return float(soundfile.info(path).duration)


def test_speech_is_written_while_it_is_generated(tmp_path: Path) -> None:
    run(sys.executable, EXAMPLES / "stream_to_file.py", "Hello there.", tmp_path / "a.wav")
    assert 0.5 < seconds_of(tmp_path / "a.wav") < 5


def test_a_clip_is_the_voice(tmp_path: Path) -> None:
    words = CLIP.with_suffix(".txt").read_text("utf-8")
    run(sys.executable, EXAMPLES / "clone_a_voice.py", CLIP, words, "Hello there.", tmp_path / "a.wav")
    assert 0.5 < seconds_of(tmp_path / "a.wav") < 5


def test_every_line_of_a_file_is_spoken(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("One line.\n\nAnother line.\n")
    run(sys.executable, EXAMPLES / "run_a_batch.py", tmp_path / "lines.txt", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0001.wav", "0002.wav"]
    assert all(seconds_of(path) > 0.4 for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["call_the_api.py", "call_the_api.mjs"])
def test_the_api_is_called(studio: Served, tmp_path: Path, name: str) -> None:
    program = NODE if name.endswith(".mjs") else sys.executable
    run(program, EXAMPLES / name, studio.url, tmp_path / "a.mp3")
    assert 0.5 < seconds_of(tmp_path / "a.mp3") < 5


def test_every_example_is_in_the_list_and_tried_here() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    tried = Path(__file__).read_text("utf-8")
    for path in EXAMPLES.iterdir():
        if path.suffix in (".py", ".mjs"):
            assert f"]({path.name})" in listed and f'"{path.name}"' in tried

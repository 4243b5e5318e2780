"""The documents keep their word: routes, settings, files, commands and the curl line of README are the real ones."""

from __future__ import annotations

import dataclasses
import re
import shlex
import subprocess
import sys
from pathlib import Path

import av
import pytest
from fastapi import FastAPI

from app import create_app
from engine import Engine
from studio.settings import Settings
from studio.terminal import curl_line
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.sounds import tone, wav

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [path for path in (ROOT / name for name in ("README.md", "NOTES.md", "CHANGELOG.md")) if path.exists()]


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(Settings(page=False))


def test_readme_has_every_route_of_the_api(app: FastAPI) -> None:
    paths = app.openapi()["paths"]
    assert len(paths) > 4
    for path, methods in paths.items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in README
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "studio" / "api").rglob("*.py"))]
    for path in re.findall(r"\.websocket\(\"([^\"]+)\"", "".join(sources)):
        assert f"`WS {path}`" in README


def test_readme_has_every_setting_with_its_row() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", README, re.MULTILINE)
    assert rows == [field.name.upper() for field in dataclasses.fields(Settings)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = re.findall(r"`([\w.-]+(?:/[\w.-]*)*)`", text)
    paths = {name for name in named if "/" in name or name.endswith((".py", ".md", ".txt"))}
    paths |= {link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link}
    missing = [path for path in sorted(paths) if not (ROOT / path).exists()]
    assert not missing


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", document.read_text("utf-8"), re.MULTILINE)) <= targets


def test_the_space_front_matter_fits_the_requirements() -> None:
    front = dict(re.findall(r"^(\w+): (.+)$", README.split("---")[1], re.MULTILINE))
    assert f"gradio=={front['sdk_version']}" in (ROOT / "requirements.txt").read_text()
    assert (ROOT / front["app_file"]).is_file()
    assert len(front["short_description"]) <= 60


def test_the_curl_line_is_the_one_that_the_studio_prints_and_it_speaks(tiny_checkpoint: Path, tmp_path: Path) -> None:
    # A short take, in the random voice: a reference would not fit.
    settings = Settings(model=str(tiny_checkpoint), device="cpu", max_context=256, voices=str(tmp_path))
    line = curl_line(settings.address)
    assert line in README
    with serve(settings, Engine.start) as served:
        command = shlex.split(line.replace(settings.address, served.url))
        subprocess.run([*command, "--no-progress-meter", "--fail"], cwd=tmp_path, check=True, timeout=120)
    with av.open(str(tmp_path / "hello.mp3")) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 44_100


def test_the_python_programs_of_readme_run_and_speak(tmp_path: Path) -> None:
    (tmp_path / "anna.wav").write_bytes(wav(tone(1.5)))
    (tmp_path / "anna.txt").write_text("My name is Anna.")
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(programs) == 2
    settings = Settings(model="test/model", voices=str(tmp_path))
    with serve(settings, FakeEngine.start, page=True) as served:  # type: ignore[arg-type]
        for program in programs:
            assert Settings().address in program
            text = program.replace(Settings().address, served.url)
            subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True, timeout=120)
    with av.open(str(tmp_path / "hello.mp3")) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 44_100

"""The documents are accurate: routes, settings, files, modules, commands and README's programs are the real ones."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import av
import pytest
from fastapi import FastAPI

from engine import Engine
from launch.startup import create_app, curl_line
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.sounds import tone, wav

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *sorted(DOCS.rglob("*.md"))]
NOT_FILES = {"fishaudio/s2-pro", "NAME.txt", "merges.txt", "__init__.py"}
"""Names of other things that look like paths."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    home, voices = str(tmp_path_factory.mktemp("docs")), str(tmp_path_factory.mktemp("voices"))
    return create_app(Settings(page=False, home=home, voices=voices))


def test_every_route_is_in_the_api_table(app: FastAPI) -> None:
    manual = page("api.md")
    paths = app.openapi()["paths"]
    assert len(paths) > 4
    for path, methods in paths.items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in manual
    sources = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "studio" / "api").rglob("*.py"))]
    sockets = re.findall(r"\.websocket\(\"([^\"]+)\"", "".join(sources))
    assert sockets
    for path in sockets:
        assert f"`WS {path}`" in manual


def test_every_setting_has_a_row_in_the_settings_table() -> None:
    rows = re.findall(r"^\| `([A-Z_0-9]+)` \|", page("settings.md"), re.MULTILINE)
    assert rows == ["STUDIO_" + name.upper() for name in Settings.model_fields]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_named_in_documents_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = re.findall(r"`([\w.-]+(?:/[\w.-]*)*)`", text)
    paths = {name for name in named if "/" in name or name.endswith((".py", ".md", ".txt"))}
    links = {link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link}
    missing = [path for path in sorted(paths - NOT_FILES) if not (ROOT / path).exists()]
    missing += [link for link in sorted(links) if not (document.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_modules_named_in_documents_exist(document: Path) -> None:
    text = re.sub(r"```python\n.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    code = "\n".join([*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^.*python -m .*$", text, re.MULTILINE)])
    named = set(
        re.findall(
            r"(?<![\w./-])((?:engine|fleet|longform|manuscript|protocols|speechtext|studio|training|benchmarks|scripts|tests)(?:\.\w+)+)",
            code,
        )
    )
    assert not [name for name in sorted(named) if not is_a_module_or_a_name_in_one(name)]


def is_a_module_or_a_name_in_one(name: str) -> bool:
    file, rest = ROOT, name.split(".")
    while rest and (file / rest[0]).is_dir():
        file, rest = file / rest[0], rest[1:]
    if rest and (file / f"{rest[0]}.py").is_file():
        file, rest = file / f"{rest[0]}.py", rest[1:]
    else:
        file = file / "__init__.py" if rest else file
    return not rest or (file.is_file() and re.search(rf"\b{rest[0]}\b", file.read_text("utf-8")) is not None)


def test_structure_page_names_every_package() -> None:
    packages = ["audio", "engine", "fleet", "longform", "manuscript", "protocols", "speechtext", "studio"]
    folders = {path.parent.name for name in packages for path in (ROOT / name).rglob("__init__.py")}
    named = set(re.findall(r"^ *([a-z]+)/ ", page("structure.md"), re.MULTILINE))
    assert folders <= named


def test_readme_and_glossary_stay_short() -> None:
    assert len(README.splitlines()) <= 150
    assert 0 < len(re.findall(r"^\| (?!term \|)", page("glossary.md"), re.MULTILINE)) <= 30


def test_website_has_no_dead_links_and_no_other_hosts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path).with_suffix(".md") for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(DOCS) for path in DOCS.rglob("*.md")} <= pages
    for path in tmp_path.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*", html)


def test_every_make_target_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        assert set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text("utf-8"), re.MULTILINE)) <= targets


def test_space_front_matter_matches_the_requirements() -> None:
    front = dict(re.findall(r"^(\w+): (.+)$", README.split("---")[1], re.MULTILINE))
    assert f"gradio=={front['sdk_version']}" in (ROOT / "requirements.txt").read_text()
    assert (ROOT / front["app_file"]).is_file()
    assert len(front["short_description"]) <= 60


def test_documented_curl_line_matches_the_printed_one_and_works(quick_checkpoint: Path, tmp_path: Path) -> None:
    # A short take, in the random voice: a reference would not fit.
    settings = Settings(model=str(quick_checkpoint), device="cpu", max_context=256, voices=str(tmp_path))
    line = curl_line(settings.address)
    assert line in README
    with serve(settings, Engine.start) as served:
        command = shlex.split(line.replace(settings.address, served.url))
        subprocess.run([*command, "--no-progress-meter", "--fail"], cwd=tmp_path, check=True, timeout=120)
    with av.open(str(tmp_path / "hello.mp3")) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 44_100


def test_python_programs_in_the_readme_run_and_speak(tmp_path: Path) -> None:
    (tmp_path / "anna.wav").write_bytes(wav(tone(1.5)))
    (tmp_path / "anna.txt").write_text("My name is Anna.")
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(programs) == 2
    settings = Settings(model="test/model", voices=str(tmp_path))
    with serve(settings, FakeEngine.start, page=True) as served:
        for program in programs:
            assert Settings().address in program
            text = program.replace(Settings().address, served.url)
            subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True, timeout=120)
    with av.open(str(tmp_path / "hello.mp3")) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 44_100

"""The wheel: small and complete, and able to speak without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import soundfile
import yaml

import studio
from studio import ROOT
from studio.library import Library

MAX_BYTES = 60 * 1000 * 1000
"""In bytes: acceptable to a package index and to a user who downloads it."""


def run(*command: object, **options: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files only: its dependencies come from the tests' environment."""
    folder = tmp_path_factory.mktemp("installed")
    how = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", folder)
    run(sys.executable, "-m", "pip", "install", *how, wheel)
    return folder


def test_wheel_has_the_version_and_requires_what_make_installs(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = message_from_bytes(next(file.read(name) for name in names if name.endswith("METADATA")))
    assert metadata["Version"] == studio.__version__
    required = {
        line.partition("=")[0].partition(">")[0].partition("<")[0] for line in metadata.get_all("Requires-Dist", [])
    }
    wanted = {line.partition("=")[0].partition(">")[0] for line in _requirements()}
    assert {name.lower().replace("_", "-") for name in wanted} <= {name.lower().replace("_", "-") for name in required}
    for name in (
        "engine/py.typed",
        "engine/native/lib/linux-x86_64.so",
        "engine/native/lib/windows-x86_64.dll",
        "studio/py.typed",
        "studio/assets/fry/model.safetensors",
        "studio/assets/page/words/en.json",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("tests/", "training/", "benchmarks/"))]


def _requirements() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


COMMANDS = """
import runpy, sys
command = sys.argv[1]
for arguments in ["--version"], ["--help"], ["voices", "list"]:
    sys.argv = [command, *arguments]
    try:
        runpy.run_path(command, run_name="__main__")
    except SystemExit as end:
        assert not end.code, arguments

import engine, studio.settings
from fastapi import FastAPI
from fastapi.testclient import TestClient
from studio.api.openapi import install_docs_page
app = FastAPI()
install_docs_page(app, "")
client = TestClient(app)
print(engine.__file__, studio.settings.Settings().model)
print([client.get(path).status_code for path in ("/docs", "/docs/icon.svg", "/docs/swagger-ui.css")])
"""
"""Separate processes would repeat the same imports."""


def test_installed_wheel_speaks_and_has_the_command_its_own_files_and_the_docs_page(
    installed: Path, tmp_path: Path
) -> None:
    environment = os.environ | {"PYTHONPATH": str(installed), "STUDIO_HOME": str(tmp_path / "home")}
    options = {"cwd": tmp_path, "env": environment}
    command = installed / "bin" / "fish-voice-studio"
    Library(tmp_path / "home")
    version, *others, where, statuses = run(sys.executable, "-c", COMMANDS, command, **options).splitlines()
    assert version == studio.__version__ and "STUDIO_HOME" in "".join(others)
    assert where.count(str(installed)) == 2 and statuses == "[200, 200, 200]"
    run(sys.executable, ROOT / "examples" / "stream_to_file.py", "Hello there.", "a.wav", **options)
    assert soundfile.info(tmp_path / "a.wav").duration > 0.5


def test_the_compose_file_has_a_service_for_a_cpu_and_one_for_nvidia() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    cpu, nvidia = compose["services"]["cpu"], compose["services"]["nvidia"]
    assert cpu["profiles"] == ["cpu"] and nvidia["profiles"] == ["nvidia"]
    (device,) = nvidia["deploy"]["resources"]["reservations"]["devices"]
    assert device["driver"] == "nvidia" and "gpu" in device["capabilities"]
    for service in (cpu, nvidia):
        assert service["build"] == "." and {volume.partition(":")[0] for volume in service["volumes"]} == set(
            compose["volumes"]
        )

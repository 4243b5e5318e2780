"""The Dockerfile, checked without building it: it copies all files it needs, and its commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from engine import EngineConfig
from studio.settings import Settings
from tests.environment import data_variables
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

ROOT = Path(__file__).resolve().parent.parent
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text("utf-8")).splitlines()
STEPS = [tuple(line.split(" ", 1)) for line in LINES if line and not line.startswith("#")]
NOT_OURS = {"HF_HOME", "TRITON_CACHE_DIR"}


def steps(name: str) -> list[str]:
    return [step[1] for step in STEPS if step[0] == name]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in steps("ENV") for pair in line.split())


def copied() -> list[str]:
    """From this folder, not from an earlier stage."""
    return [source for line in steps("COPY") if not line.startswith("--from") for source in line.split()[:-1]]


def test_copied_files_exist_are_not_ignored_and_suffice_to_start(tmp_path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    for source in copied():
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored and not any(fnmatch(source, pattern) for pattern in ignored[1:])
        if source == "assets":  # but not a copy of the weights
            shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("fry"))
            (tmp_path / source / "fry").symlink_to(ROOT / "assets" / "fry")
        elif (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / source)
        else:
            shutil.copy(ROOT / source, tmp_path / source)
    (command,) = (json.loads(line) for line in steps("CMD"))
    assert command == ["python", "app.py"]
    built = (
        "import app, sys; from studio.settings import Settings; from launch.startup import create_app; "
        "create_app(Settings()); print(app.__file__); "
        "sys.argv[1:] = ['--help']; sys.exit(app.main())"
    )
    program = [sys.executable, "-c", built]
    apart = {**os.environ, **data_variables(tmp_path), "PYTHONPATH": ""}
    done = subprocess.run(program, cwd=tmp_path, env=apart, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path, _, help_text = done.stdout.partition("\n")
    assert Path(path) == tmp_path / "app.py" and "STUDIO_HOME" in help_text


def test_container_variables_are_settings_and_its_port_is_open() -> None:
    variables = environment()
    assert set(variables) - NOT_OURS <= {"PORT", *("STUDIO_" + name.upper() for name in Settings.model_fields)}
    assert variables["PORT"] == str(Settings().port) and steps("EXPOSE") == [variables["PORT"]]
    assert variables["STUDIO_HOST"] == "0.0.0.0"
    volumes = json.loads(steps("VOLUME")[0])
    assert {variables["STUDIO_HOME"], variables["HF_HOME"]} == set(volumes)
    user_line = next(line for line in steps("RUN") if "useradd" in line)
    assert "--uid 1000" in user_line and all(volume in user_line for volume in volumes)
    assert steps("USER") == ["studio"]
    # docker compose also passes a .env that is written for the host: its places must not apply in the container.
    own = {name.replace("PORT", "STUDIO_PORT"): value for name, value in variables.items()}
    for service in yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"].values():
        given = {name: str(value) for name, value in service["environment"].items()}
        assert given == own | {"STUDIO_BACKUP_DIR": "", "STUDIO_VOICES": ""}
        assert service["ports"][0].endswith(f":{given['STUDIO_PORT']}")


def test_container_and_space_use_the_same_python() -> None:
    front = (ROOT / "README.md").read_text("utf-8").split("---")[1]
    (version,) = re.findall(r'^python_version: "(.+)"$', front, re.MULTILINE)
    base = f"python:{version}-slim-bookworm"
    assert steps("FROM") == [f"{base} AS packages", base]


@pytest.mark.parametrize("is_well", [True, False])
def test_health_check_detects_a_studio_that_cannot_speak(
    is_well: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        if not is_well:
            raise RuntimeError("no device")
        return FakeEngine(config)

    command = json.loads(steps("HEALTHCHECK")[0].partition("CMD ")[2])
    with serve(Settings(voices=str(tmp_path)), start, wait=is_well) as studio:
        monkeypatch.setenv("PORT", studio.url.rpartition(":")[2])
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nothing listens
        done = subprocess.run([sys.executable, *command[1:]], check=False, capture_output=True, timeout=60)
    assert (done.returncode == 0) is is_well

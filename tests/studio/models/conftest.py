"""A hub on loopback with a small checkpoint under a catalogue name, and studios that start with chosen models."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import huggingface_hub.constants
import pytest

from engine import CheckpointError, EngineConfig
from studio.models.catalogue import in_catalogue
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.models.hub import COMMIT, Hub, serve_hub
from tests.studio.server import Served, serve
from tests.waiting import wait_until

AUDIO8 = "audio8-0.6b"
STATE, LIST = "/v1/engine/model", "/v1/engine/models"
DOWNLOAD = f"{LIST}/{AUDIO8}/download"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Hugging Face cache for this test."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def hub(quick_checkpoint: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    model = in_catalogue(AUDIO8)
    assert model is not None and model.repo is not None
    with serve_hub(quick_checkpoint, model.repo, "codec.pth") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


@pytest.fixture
def snapshot(cache: Path) -> Path:
    """The folder of the downloaded model's files."""
    return cache / "models--Edge0--Audio8-TTS-Preview-0.6b" / "snapshots" / COMMIT


@dataclass
class Studio:
    """A studio with fake engines; ``engines``: all that started, ``broken``: errors of models that fail to load."""

    served: Served
    engines: list[FakeEngine]
    broken: dict[str, Exception] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        return [engine.config.model for engine in self.engines]


@pytest.fixture
def studio_of(voices_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Studio]]:
    """Makes a studio from settings."""
    monkeypatch.setattr("studio.engine_host.LAST_USE_SECONDS", 0.0)  # the test keeps stopped engines
    monkeypatch.setattr("studio.engine_host.release_memory", lambda: None)  # fake engines hold none
    with contextlib.ExitStack() as stack:

        def make(broken: dict[str, Exception] | None = None, **settings: Any) -> Studio:
            engines: list[FakeEngine] = []
            faults = {} if broken is None else broken

            def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
                if (fault := faults.get(config.model)) is not None:
                    raise fault
                engine = FakeEngine.start(config, progress)
                engine.info = replace(engine.info, codec_fingerprint=config.model)
                engines.append(engine)
                return engine

            options = Settings(voices=str(voices_folder), **settings)
            return Studio(stack.enter_context(serve(options, start)), engines, faults)

        yield make


def until(client: httpx.Client, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until the state of the models satisfies the condition; the state."""
    return wait_until(holds, lambda: client.get(STATE).json())


def downloaded(client: httpx.Client) -> dict[str, Any]:
    """Wait for the download to end; its status."""
    return until(client, lambda state: not state["downloads"][AUDIO8]["running"])["downloads"][AUDIO8]


def switched(client: httpx.Client) -> dict[str, Any]:
    """Wait for the switch to end; the state of the models."""
    return until(client, lambda state: state["switching_to"] is None and state["status"] != "starting")


def say(client: httpx.Client, **more: object) -> httpx.Response:
    return client.post("/v1/audio/speech", json={"input": "Hello there.", "response_format": "wav"} | more)


def unreadable(model: str) -> CheckpointError:
    return CheckpointError(f"{model}/model.safetensors is truncated")

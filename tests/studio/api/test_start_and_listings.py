"""The start reports its progress; models and voices are listed in the form that clients expect."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from engine import CheckpointError, EngineConfig
from studio import engine_host
from studio.settings import Settings
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

Steer = Callable[..., Steered]


def test_health_reports_start_progress_and_speech_is_refused_until_ready(voices_folder: Path) -> None:
    may_continue = threading.Event()
    halfway = threading.Event()

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        progress("loading weights", 0.25)
        halfway.set()
        assert may_continue.wait(30)
        return FakeEngine(config)

    with serve(Settings(model="some/model", voices=str(voices_folder)), start, wait=False) as served:
        assert halfway.wait(30)
        health = httpx.get(f"{served.url}/health")
        assert health.status_code == 503
        assert health.json() == {
            "status": "starting",
            "doing": "loading weights",
            "progress": 0.25,
            "error": None,
            "transcriber": None,
            "denoiser": True,
        }
        early = httpx.post(f"{served.url}/v1/audio/speech", json={"input": "a"})
        assert early.status_code == 503 and "loading weights" in early.json()["error"]["message"]
        assert early.headers["retry-after"] == "2"
        may_continue.set()
        served.app.state.studio.speech.host.wait(30)
        ready = httpx.get(f"{served.url}/health")
        assert (ready.status_code, ready.json()["status"], ready.json()["engine"]["model"]) == (
            200,
            "ready",
            "some/model",
        )


def test_health_reports_a_failed_engine_start_and_speech_is_refused(voices_folder: Path) -> None:
    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        raise CheckpointError("config.json is missing")

    with serve(Settings(voices=str(voices_folder)), start, wait=False) as served:
        with pytest.raises(CheckpointError):
            served.app.state.studio.speech.host.wait(30)
        health = httpx.get(f"{served.url}/health")
        assert health.status_code == 503
        assert (health.json()["status"], health.json()["error"]) == ("failed", "config.json is missing")
        assert httpx.post(f"{served.url}/v1/audio/speech", json={"input": "a"}).status_code == 503


def test_stopping_the_server_stops_the_engine(voices_folder: Path) -> None:
    engines = []

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        engines.append(FakeEngine(config))
        return engines[0]

    with serve(Settings(voices=str(voices_folder)), start):
        assert not engines[0].stopped
    assert engines[0].stopped


def test_models_are_listed_with_their_aliases(steered: Steer) -> None:
    served, _ = steered(model="fishaudio/s2-pro")
    with served.client() as client:
        ids = [model["id"] for model in client.get("/v1/models").json()["data"]]
        assert ids[0] == "fishaudio/s2-pro" and {"tts-1", "tts-1-hd", "gpt-4o-mini-tts"} < set(ids)
        model = client.get("/v1/models/fishaudio%2Fs2-pro").json()
        assert (model["id"], model["object"]) == ("fishaudio/s2-pro", "model")
        missing = client.get("/v1/models/other")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
        assert client.get("/v1/test").json() == {"status": "ok"}  # clients that look for Kokoro-FastAPI find all voices
        assert (
            client.get("/v1/readyz").status_code == 404
        )  # LocalAI's, whose clients would offer only its name as a voice
        assert client.post("/v1/audio/speech", json={"input": "a", "model": "fishaudio/s2-pro"}).status_code == 200


def test_voices_are_listed_with_ids_and_names_or_in_the_legacy_format(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        listed = client.get("/v1/audio/voices").json()
        assert {voice["id"]: voice["name"] for voice in listed["voices"]} == {
            "anna": "Anna",
            "bert": "Bert",
            "random": "Random (the seed decides)",
        }
        assert listed["data"] == listed["voices"] and listed["has_more"] is False
        assert listed["aliases"]["default"] == "anna" and listed["aliases"]["alloy"] in ("anna", "bert")
        assert client.get("/v1/audio/voices?legacy=true").json()["voices"] == ["anna", "bert", "random"]


def test_only_listed_origins_may_call_from_a_browser(steered: Steer) -> None:
    served, _ = steered(cors_origins=("https://good.example",))
    ask = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
    }
    with served.client() as client:
        good = client.options("/v1/audio/speech", headers=ask | {"Origin": "https://good.example"})
        assert good.status_code == 200
        assert good.headers["access-control-allow-origin"] == "https://good.example"
        assert "x-stainless-os" in good.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in good.headers
        bad = client.options("/v1/audio/speech", headers=ask | {"Origin": "https://bad.example"})
        assert "access-control-allow-origin" not in bad.headers
        spoken = client.post("/v1/audio/speech", json={"input": "a"}, headers={"Origin": "https://good.example"})
        assert "x-seed" in spoken.headers["access-control-expose-headers"]
        refused = client.post("/v1/audio/speech", json={"input": ""}, headers={"Origin": "https://good.example"})
        assert refused.headers["access-control-allow-origin"] == "https://good.example"


def test_every_error_of_engine_and_studio_has_an_http_status() -> None:
    import engine.engine_errors
    import studio.errors
    from studio.api.error_responses import describe

    for module in (engine.engine_errors, studio.errors):
        for kind in vars(module).values():
            # An invalid setting aborts the start, before any request can be answered.
            if isinstance(kind, type) and issubclass(kind, Exception) and kind is not studio.errors.SettingsError:
                answer = describe(kind("why"))
                assert 400 <= answer.status <= 599 and answer.message == "why"


def test_freed_memory_is_returned_regularly(monkeypatch: pytest.MonkeyPatch, steered: Steer) -> None:
    heap_trims = threading.Semaphore(0)
    monkeypatch.setattr(engine_host, "RELEASE_SECONDS", 0.01)
    monkeypatch.setattr(engine_host, "trim_heap", heap_trims.release)
    steered()
    assert heap_trims.acquire(timeout=30) and heap_trims.acquire(timeout=30)

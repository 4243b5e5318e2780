"""A recogniser at one click: downloaded completely and used, or nothing is left and the reason is reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.settings import read_keys
from studio.voices.recogniser import MODEL, Recogniser
from tests.studio.api.test_ownership import asking
from tests.studio.clips import spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.models.hub import COMMIT, Hub, serve_hub
from tests.studio.server import Served
from tests.studio.voices.whisper import write_model
from tests.waiting import wait_until

Steer = Callable[..., tuple[Served, FakeEngine]]
ROUTE = "/v1/recogniser"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights") / "base"
    write_model(folder, ["The", "birch", "canoe", "slid."], 1.5)
    return folder


@pytest.fixture
def hub(weights: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_hub(weights, MODEL) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def until(client: httpx.Client, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return wait_until(holds, lambda: client.get(ROUTE).json())


def files_in(home: Path) -> set[str]:
    return {path.name for path in (home / "models").rglob("*")}


def test_recogniser_is_downloaded_used_and_found_at_the_next_start(hub: Hub, steered: Steer, tmp_path: Path) -> None:
    served, _ = steered(home=str(tmp_path))
    files = {"audio_sample": ("me.wav", spoken())}
    hub.gate.clear()
    with served.client() as client:
        before = client.get(ROUTE).json()
        assert before["name"] is None and before["installed"] and before["may_fetch"] and before["fetching"] is None
        assert before["offered"]["licence"] == "MIT" and before["offered"]["bytes"] > 10**8
        assert client.post("/v1/voices/transcribe", files=files).status_code == 501
        assert client.post(ROUTE).status_code == 202 and client.post(ROUTE).json()["fetching"]
        under_way = until(client, lambda status: status["fetching"] is not None and status["fetching"]["bytes"] > 10**6)
        assert under_way["fetching"]["bytes"] < under_way["fetching"]["total"] < 10**8
        hub.gate.set()
        after = until(client, lambda status: status["fetching"] is None)
        assert after["error"] is None and client.get("/health").json()["transcriber"] == after["name"]
        transcript = client.post("/v1/voices/transcribe", files=files).json()
        assert transcript["text"] == "The birch canoe slid."
        assert client.post(ROUTE).status_code == 202  # which changes nothing
    assert hub.paths.count(f"/{MODEL}/resolve/{COMMIT}/model.bin") == 1
    assert files_in(tmp_path) == {"faster-whisper-base", *(path.name for path in hub.folder.iterdir())}
    again, _ = steered(home=str(tmp_path))
    with again.client() as client:
        assert client.get(ROUTE).json()["name"] == after["name"]


def test_cancelled_or_failed_downloads_leave_nothing(hub: Hub, steered: Steer, tmp_path: Path) -> None:
    served, _ = steered(home=str(tmp_path))
    with served.client() as client:
        hub.gate.clear()
        client.post(ROUTE)
        until(client, lambda status: status["fetching"] is not None and status["fetching"]["bytes"] > 10**6)
        assert len(files_in(tmp_path)) > 1
        given_up = client.delete(ROUTE).json()
        assert given_up["fetching"] is given_up["error"] is given_up["name"] is None
        assert files_in(tmp_path) == set()
        hub.gate.set()
        hub.broken = True
        client.post(ROUTE)
        failed = until(client, lambda status: status["fetching"] is None)
        assert "differs from the hub's file" in failed["error"] and failed["name"] is None
        assert files_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("endpoint", "why"), [("http://127.0.0.1:9", "127.0.0.1 cannot be reached"), ("hub", "answered 404 for /nowhere/")]
)
def test_an_unreachable_hub_is_reported_with_the_remedy(
    hub: Hub, steered: Steer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, why: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.url}/nowhere" if endpoint == "hub" else endpoint)
    leftover = tmp_path / "models" / ".faster-whisper-base-crashed"
    leftover.mkdir(parents=True)
    os.utime(leftover, (0, 0))
    served, _ = steered(home=str(tmp_path))
    assert not leftover.exists()
    with served.client() as client:
        client.post(ROUTE)
        assert why in until(client, lambda status: status["fetching"] is None)["error"]
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (ImportError("libcublas.so.12: cannot open shared object file"), "libcublas.so.12"),
        (MemoryError(), "not enough memory to load it"),
        (RuntimeError("Library libcudnn is not found"), "libcudnn"),
        (KeyError("unforeseen"), "it cannot be loaded here: 'unforeseen'"),
    ],
)
def test_unloadable_model_is_reported_with_the_reason(
    hub: Hub,
    steered: Steer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    problem: Exception,
    why: str,
) -> None:
    def load(self: Recogniser) -> None:
        raise problem

    monkeypatch.setattr(Recogniser, "load", load)
    served, _ = steered(home=str(tmp_path))
    with served.client() as client:
        client.post(ROUTE)
        failed = until(client, lambda status: status["fetching"] is None)
    assert why in failed["error"] and failed["name"] is None and files_in(tmp_path) == set()
    assert f"Systran/faster-whisper-base cannot be used: {failed['error']}" in caplog.text


def test_recogniser_download_needs_the_owner_and_the_package(
    hub: Hub, steered: Steer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered(home=str(tmp_path), api_keys=read_keys("Anna=first,Bert=second"))
    with asking(served, "second") as guest, asking(served, "first") as owner:
        assert not guest.get(ROUTE).json()["may_fetch"] and owner.get(ROUTE).json()["may_fetch"]
        for answer in (guest.post(ROUTE), guest.delete(ROUTE)):
            assert answer.status_code == 403 and answer.json()["error"]["code"] == "owner_only"
        monkeypatch.setitem(sys.modules, "faster_whisper", None)
        assert owner.get(ROUTE).json()["installed"] is False
        missing = owner.post(ROUTE)
        assert missing.status_code == 501
        assert f"{sys.executable} -m pip install faster-whisper" in missing.json()["error"]["message"]
    assert hub.paths == []

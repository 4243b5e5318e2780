"""Model downloads: resumed, verified, shared by all requests; an incomplete one does not count as a model."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from studio.models import hub_download
from studio.models.catalogue import CATALOGUE, in_catalogue, installed_folder
from studio.models.hub_download import DownloadStatus, HubDownload
from tests.studio.models.conftest import AUDIO8, DOWNLOAD, LIST, STATE, Studio, downloaded, until
from tests.studio.models.hub import COMMIT, Hub, serve_hub
from tests.tiny_qwen import write_qwen

StudioOf = Callable[..., Studio]
MODEL = next(model for model in CATALOGUE if model.name == AUDIO8)
LARGE = "codec.pth"
ARRIVED = 2 * 2**20
"""Bytes of the large file on the disk when the hub stops halfway."""


def until_half(client: httpx.Client, snapshot: Path) -> dict[str, Any]:
    """Wait until half of the large file is on the disk; the state of the models."""
    part = snapshot / f".{LARGE}.part"
    return until(client, lambda state: part.exists() and part.stat().st_size == ARRIVED)


def test_two_requests_share_one_download_which_counts_only_once_complete(
    hub: Hub, snapshot: Path, studio_of: StudioOf
) -> None:
    hub.gate.clear()
    with studio_of(model="test/model").served.client() as client:
        assert client.post(DOWNLOAD).status_code == client.post(DOWNLOAD).status_code == 202
        under_way = until_half(client, snapshot)
        status = under_way["downloads"][AUDIO8]
        assert status["running"] and 0 < status["bytes"] < status["total"]
        assert installed_folder(MODEL) is None and not (snapshot / "config.json").exists()
        hub.gate.set()
        assert downloaded(client) == {"running": False, "bytes": 0, "total": 0, "error": None}
        listed = {model["name"]: model for model in client.get(LIST).json()["data"]}
    assert installed_folder(MODEL) == snapshot and listed[AUDIO8]["path"] == str(snapshot)
    assert {path.name for path in snapshot.iterdir()} == {path.name for path in hub.folder.iterdir()}
    assert (snapshot.parents[1] / "refs/main").read_text() == COMMIT
    assert sum(path.endswith(f"resolve/{COMMIT}/{LARGE}") for path in hub.paths) == 1


def test_files_in_folders_are_downloaded_into_theirs(
    cache: Path, studio_of: StudioOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = in_catalogue("qwen3-tts-0.6b-base")
    assert model is not None and model.repo is not None
    with serve_hub(write_qwen(tmp_path / "qwen"), model.repo, "speech_tokenizer/model.safetensors") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with studio_of(model="test/model").served.client() as client:
            assert client.post(f"{LIST}/{model.name}/download").status_code == 202
            state = until(client, lambda state: not state["downloads"][model.name]["running"])
            assert state["downloads"][model.name]["error"] is None
            listed = {entry["name"]: entry for entry in client.get(LIST).json()["data"]}
        folder = installed_folder(model)
        assert folder is not None and listed[model.name]["path"] == str(folder) and listed[model.name]["fits"]
        files = {path.relative_to(hub.folder) for path in hub.folder.rglob("*") if path.is_file()}
        assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == files
        assert all((folder / name).read_bytes() == (hub.folder / name).read_bytes() for name in files)


def test_paused_download_keeps_its_files_and_a_cancelled_one_leaves_none(
    hub: Hub, snapshot: Path, studio_of: StudioOf
) -> None:
    hub.gate.clear()
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        until_half(client, snapshot)
        [job] = client.get("/v1/jobs").json()["data"]
        assert job["id"] == f"model:{AUDIO8}" and 0 < job["done"] < job["total"]
        paused = client.delete(DOWNLOAD, params={"keep": True}).json()["downloads"][AUDIO8]
        assert (paused["running"], paused["error"]) == (False, None) and 0 < paused["bytes"] < paused["total"]
        assert (snapshot / f".{LARGE}.part").exists() and client.get("/v1/jobs").json()["data"] == []
    with studio_of(model="test/model").served.client() as client:  # after a restart
        kept = client.get(STATE).json()["downloads"][AUDIO8]
        assert not kept["running"] and ARRIVED <= kept["bytes"] < kept["total"]
        assert client.delete(DOWNLOAD).json()["downloads"][AUDIO8]["error"] is None
        assert not list(snapshot.glob(".*")) and installed_folder(MODEL) is None
        assert client.delete(DOWNLOAD).status_code == 200  # cancelling again has no effect
        assert client.post(f"{LIST}/bundled/download").status_code == 404


async def test_download_requested_while_files_are_removed_begins_afterwards(hub: Hub, tmp_path: Path) -> None:
    is_removing, may_end = threading.Event(), threading.Event()

    def remove() -> None:
        is_removing.set()
        may_end.wait(60)

    async def finish(commit: str, folder: Path) -> None:
        finished.append(folder)

    finished = list[Path]()
    download = HubDownload(MODEL.files, lambda commit: tmp_path, finish, remove)
    download.status = DownloadStatus(False, 1, 2)  # paused
    cancelling = asyncio.create_task(download.cancel())
    await asyncio.to_thread(is_removing.wait, 60)
    download.begin()  # from another tab
    await asyncio.sleep(0)
    assert hub.paths == []
    may_end.set()
    await cancelling
    assert download.status.is_running
    await download.wait()
    assert finished == [tmp_path] and download.status == DownloadStatus()


@pytest.mark.posix
def test_download_of_a_killed_program_is_resumed(hub: Hub, snapshot: Path, cache: Path, studio_of: StudioOf) -> None:
    """The killed program is `fish-voice-studio models download`; while it runs, a studio does not download too."""
    hub.gate.clear()
    command = [sys.executable, "app.py", "models", "download", AUDIO8]
    environment = os.environ | {"HF_HUB_CACHE": str(cache), "PYTHONPATH": "."}
    with (
        studio_of(model="test/model").served.client() as client,
        subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as program,
    ):
        part = snapshot / f".{LARGE}.part"
        until_half(client, snapshot)
        client.post(DOWNLOAD)
        assert "another program on this machine" in downloaded(client)["error"]
        program.send_signal(signal.SIGKILL)
        program.wait()
        assert part.exists() and installed_folder(MODEL) is None
        hub.gate.set()
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
    assert hub.ranges == [f"{LARGE} from {ARRIVED}"] and installed_folder(MODEL) == snapshot
    assert (snapshot / LARGE).read_bytes() == (hub.folder / LARGE).read_bytes()


PAGE = b"<html>Please log in</html>"


@pytest.mark.parametrize("says_length", [True, False])
@pytest.mark.parametrize(("page", "page_type"), [(b"", ""), (PAGE, ""), (PAGE, "text/html; charset=utf-8")])
def test_broken_connection_is_reopened(
    hub: Hub,
    snapshot: Path,
    studio_of: StudioOf,
    monkeypatch: pytest.MonkeyPatch,
    says_length: bool,
    page: bytes,
    page_type: str,
) -> None:
    """Even if a proxy hides the break, or answers something else before it continues."""
    monkeypatch.setattr(hub_download, "PAUSE", 0.0)
    hub.breaks, hub.says_length, hub.page, hub.page_type = 1, says_length, page, page_type
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
    assert installed_folder(MODEL) == snapshot
    assert len(hub.ranges) == (0 if page_type else 1 + bool(page))
    assert all(int(sent.rpartition(" ")[2]) >= ARRIVED for sent in hub.ranges)


def test_stalled_download_fails_and_can_be_resumed(
    hub: Hub, studio_of: StudioOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PAUSE": 0.0, "PATIENCE": 1.0, "ATTEMPTS": 1}.items():
        monkeypatch.setattr(hub_download, name, value)
    hub.gate.clear()
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] == "127.0.0.1 stopped sending; try again later"
        monkeypatch.setattr(hub_download, "PATIENCE", 60.0)
        hub.gate.set()
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
    assert hub.ranges[-1] == f"{LARGE} from {ARRIVED}"


def test_a_wrong_checksum_is_reported_and_the_file_removed(hub: Hub, snapshot: Path, studio_of: StudioOf) -> None:
    hub.broken = True
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert f"{LARGE} differs from the hub's file" in downloaded(client)["error"]
        assert not [path for path in snapshot.iterdir() if LARGE in path.name] and installed_folder(MODEL) is None
        hub.broken = False
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None and installed_folder(MODEL) == snapshot


def test_full_disk_is_detected_before_and_during_a_download(
    hub: Hub, snapshot: Path, studio_of: StudioOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    free = [10**6]
    monkeypatch.setattr(hub_download.shutil, "disk_usage", lambda folder: usage(10**9, 10**9, free[0]))
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        error = downloaded(client)["error"]
        assert "0.00 GB are free" in error and "set HF_HOME" in error
        assert not any("resolve" in path for path in hub.paths)
        hub.gate.clear()
        free[0] = 10**9
        client.post(DOWNLOAD)
        until_half(client, snapshot)
        free[0] = 10**6
        hub.gate.set()
        assert "0.00 GB are free" in downloaded(client)["error"]
        assert (snapshot / f".{LARGE}.part").stat().st_size == ARRIVED


def test_a_full_disk_is_reported(hub: Hub, studio_of: StudioOf, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hub_download, "_sync", refuse)
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        error = downloaded(client)["error"]
    assert "snapshots" in error and error.endswith(": No space left on device")
    assert installed_folder(MODEL) is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_model_with_terms_needs_a_token(hub: Hub, studio_of: StudioOf, status: int) -> None:
    hub.refused = status
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        error = downloaded(client)["error"]
    assert "set HF_TOKEN" in error and f"https://huggingface.co/{MODEL.repo}" in error


def test_unreachable_hub_is_reported_with_an_alternative(cache: Path, studio_of: StudioOf) -> None:
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        error = downloaded(client)["error"]
    assert "127.0.0.1 cannot be reached" in error and "copy the model into a folder" in error


def test_unknown_certificate_is_reported_with_the_setting(
    cache: Path, studio_of: StudioOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Proxied(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")

    client = httpx.AsyncClient(transport=Proxied(), base_url="https://hub.test")
    monkeypatch.setattr(hub_download, "_client", lambda: client)
    with studio_of(model="test/model").served.client() as caller:
        caller.post(DOWNLOAD)
        assert "set SSL_CERT_FILE to a file with the certificate" in downloaded(caller)["error"]


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("HF_ENDPOINT", "http://[::1", "HF_ENDPOINT='http://[::1' is not an address"),
        ("HF_ENDPOINT", "localhost:80", "HF_ENDPOINT='localhost:80' is not an address"),
        ("HF_TOKEN", "hf_s\u00e9cret", "copy it again"),
        ("ALL_PROXY", "foo://x", "the proxy in ALL_PROXY"),
        ("SSL_CERT_FILE", "/no/such.pem", "check SSL_CERT_FILE"),
        ("HF_HUB_OFFLINE", "1", "HF_HUB_OFFLINE is set"),
        ("TRANSFORMERS_OFFLINE", "yes", "TRANSFORMERS_OFFLINE is set"),
    ],
)
def test_error_names_an_invalid_setting(
    hub: Hub, studio_of: StudioOf, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    with studio_of(model="test/model").served.client() as client:
        monkeypatch.setenv(variable, value)
        client.post(DOWNLOAD)
        error = downloaded(client)["error"]
    assert message in error and "s\u00e9cret" not in error
    assert not hub.paths


@pytest.mark.parametrize("answer", [b"[" * 200_000, b" " * (hub_download._MAX_LISTING_BYTES + 1), b"[1]", b"\xff"])
def test_response_other_than_a_list_of_files_is_refused(hub: Hub, studio_of: StudioOf, answer: bytes) -> None:
    hub.listed = answer
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] == "127.0.0.1 did not answer with a list of files"


@pytest.mark.posix
def test_links_and_pipes_in_the_cache_are_neither_followed_nor_waited_for(
    hub: Hub, snapshot: Path, studio_of: StudioOf, tmp_path: Path
) -> None:
    """Another program may write in the cache; what it puts there must not become a way out of it."""
    precious = tmp_path / "precious"
    precious.write_text("keep")
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    for link in (snapshot / ".config.json.part", snapshot / ".lock", snapshot.parents[1] / "refs" / "main"):
        link.symlink_to(precious)
    os.mkfifo(snapshot / f".{LARGE}.part")
    os.mkfifo(snapshot / "model.safetensors.index.json")
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
        assert client.get(LIST).status_code == 200
    assert precious.read_text() == "keep" and installed_folder(MODEL) is None, "not with a pipe for its index"
    assert (snapshot.parents[1] / "refs/main").read_text() == COMMIT
    (snapshot / "model.safetensors.index.json").unlink()
    assert installed_folder(MODEL) == snapshot


@pytest.mark.posix
def test_a_lock_that_its_owner_has_just_removed_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three programs, the second would lock a file that the first has removed, and the third a new one."""
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock

    def late(lock: Any, how: int) -> None:
        (tmp_path / ".lock").unlink()  # as the first program ends its download
        flock(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(ValueError, match="another program"), hub_download._locked(tmp_path, "a/b"):
        pass


def test_partial_files_of_an_earlier_commit_are_removed(hub: Hub, snapshot: Path, studio_of: StudioOf) -> None:
    older = snapshot.with_name("f" * 40)
    older.mkdir(parents=True)
    (older / "tokenizer.json").touch()
    (older / f".{LARGE}.part").touch()
    with studio_of(model="test/model").served.client() as client:
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
    assert [path.name for path in older.iterdir()] == ["tokenizer.json"]


def test_partial_download_of_another_program_does_not_count(hub: Hub, snapshot: Path) -> None:
    """The hub's own tools leave complete files, with others missing."""
    snapshot.mkdir(parents=True)
    for name in ("config.json", "codec.pth", "tokenizer.json"):
        (snapshot / name).write_bytes(b"{}")
    assert installed_folder(MODEL) is None
    (snapshot / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')
    assert installed_folder(MODEL) is None
    (snapshot / "model-1.safetensors").write_bytes(b"")
    assert installed_folder(MODEL) == snapshot

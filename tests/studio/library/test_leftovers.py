"""No leftovers on the disk: none in the temporary folder, and no file in the library without a row."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from protocols.fish.fish_body import MESSAGE_PACK
from protocols.fish.message_pack import pack
from studio.library import Library, client_files
from studio.library.store import named_files
from studio.settings import Settings
from tests.studio.clips import WORDS, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.waiting import wait_until

Calls = Iterator[tuple[str, str, dict[str, Any]]]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty temporary folder for this process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv("GRADIO_TEMP_DIR", raising=False)
    return folder


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def orphans(served: Served) -> set[str]:
    """Audio files of the library without a row, including unfinished ones."""
    library: Library = served.app.state.studio.speech.voices.library
    with library.store.reading() as db:
        return {name for name, _ in library.files.everything()} - named_files(db.conn)


def known_ids(client: httpx.Client) -> dict[str, str]:
    """Ids of one item of each kind that paths name; the voice has a consent."""
    clip = {"audio_sample": ("me.wav", spoken(), "audio/wav")}
    client.post("/v1/audio/voices", data={"name": "Eve", "ref_text": WORDS, "consent": "I agree."}, files=clip)
    take = client.post("/v1/audio/speech", json={"input": "Two words."}).headers["x-request-id"]
    project = client.post("/v1/projects", files={"file": ("a.txt", b"One.\n\nTwo.")}, data={"start": "true"}).json()
    at = f"/v1/projects/{project['id']}"
    assert wait_until(lambda state: state != "running", lambda: client.get(at).json()["state"]) == "done"
    part = client.get(f"/v1/projects/{project['id']}/parts").json()["data"][0]
    note = {"take": part["chosen"], "at": 0}
    consent = client.get("/v1/audio/voice_consents").json()["data"][0]["id"]
    return {
        "reference": "eve",
        "voice_id": "eve",
        "sample_id": client.get("/v1/voices/eve").json()["samples"][0]["id"],
        "revision": "1",
        "consent_id": consent,
        "take_id": take,
        "history_item_id": take,
        "project_id": project["id"],
        "part_id": part["id"],
        "preview_id": client.post("/v1/projects/preview", json={"input": WORDS}).json()["id"],
        "name": "unknown",
        "receipt": "unknown",
        "spot_id": client.post(f"/v1/projects/{project['id']}/proof/notes", json=note).json()["id"],
        "request_id": take,
        "character_id": client.post(f"/v1/projects/{project['id']}/cast", json={"name": "Ann"}).json()["id"],
        "token": client.post(f"/v1/takes/{take}/shares", json={}).json()["token"],
        "pronunciation_id": client.post("/v1/pronunciations", json={"phrase": "GIF", "said": "jif"}).json()["id"],
        "model_id": "test/model",
        "job_id": f"project-{project['id']}",
        "user_id": "self",
    }


FISH_CLIPS = [(name, ("me.wav", spoken(), "audio/wav")) for name in ("voices", "voices", "audio")]


def every_call(served: Served, ids: dict[str, str]) -> Calls:
    """Each method of each route, deletions last, with valid and invalid bodies."""
    clip = {"audio_sample": ("me.wav", spoken(), "audio/wav")}
    named = {"data": {"name": "Fay", "ref_text": WORDS}, "files": clip}
    bodies: list[dict[str, Any]] = [{}, {"json": {}}, {"files": {"file": b"nonsense"}}, named]
    bodies += [{"json": {"input": "Two words.", "text": "Two words.", "items": [{"input": "Hi."}]}}]
    bodies += [{"data": {"title": "Gus", "texts": [WORDS] * 2, "id": "Gus", "text": WORDS}, "files": FISH_CLIPS}]
    packed = {"title": "Hal", "voices": spoken(), "texts": WORDS, "id": "Ida", "text": "a", "audio": spoken()}
    bodies += [{"content": pack(packed), "headers": {"Content-Type": MESSAGE_PACK}}]
    paths = served.app.openapi()["paths"]
    order = ("get", "post", "put", "patch", "delete")
    calls = sorted(
        (order.index(method), path) for path, operations in paths.items() for method in operations if method in order
    )
    for number, path in calls:
        own = path.replace("/takes/{take_id}/audio", "/takes/none/audio") if "projects" in path else path
        for body in bodies if order[number] in ("post", "put", "patch") else [{}]:
            yield order[number].upper(), own.format(**ids), body
    for name in ("wav", "mp3", "flac", "opus", "m4b"):
        yield "GET", f"/v1/projects/{ids['project_id']}/audio?format={name}", {}
        yield "GET", f"/v1/takes/{ids['take_id']}/audio?format={name}", {}


def test_routes_leave_no_files(temporary: Path, tmp_path: Path, voices_folder: Path) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path / "home"), share_days=3)
    with serve(settings, FakeEngine.start) as served, served.client() as client:
        statuses: dict[int, int] = {}
        for method, path, body in [*every_call(served, known_ids(client))]:
            answer = client.request(method, path, **body)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert answer.status_code < 500 or answer.status_code == 501, (method, path, answer.text)
            assert files_of(temporary) == set(), (method, path)
        client.get("/v1/takes")  # waits for the takes to be written
        assert orphans(served) == set()
    assert statuses[200] > 50 and statuses[400] > 20, statuses
    assert files_of(temporary) == set()


def called(client: httpx.Client, name: str, data: list[Any]) -> str:
    """The complete response of one of Gradio's endpoints."""
    event = client.post(f"/gradio_api/call{name}", json={"data": data}).json()["event_id"]
    return client.get(f"/gradio_api/call{name}/{event}").text


GOOD: dict[str, dict[str, Any]] = {
    "/synthesize": {"text": "Two words."},
    "/synthesize_stream": {"text": "Two words."},
    "/dialogue": {"script": "Anna: Hi.\nBert: Well."},
    "/voice_export": {"voice": "anna"},
    "/voice_preview": {"voice": "anna"},
}


def test_client_files_expire_soon_and_are_removed_at_shutdown(
    temporary: Path, tmp_path: Path, voices_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "RESULT_SECONDS", 0.1)
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True) as served, served.client() as client:
        sent = client.post("/gradio_api/upload", files={"files": ("me.wav", spoken())}).json()[0]
        uploaded = {"path": sent, "meta": {"_type": "gradio.FileData"}}
        take = client.post("/v1/audio/speech", json={"input": "Some secret words."}).headers["x-request-id"]
        before = files_of(temporary)
        endpoints = client.get("/gradio_api/info").json()["named_endpoints"]
        good = GOOD | {"/take_get": {"take_id": take}, "/analyze_reference": {"audio": uploaded, "text": WORDS}}
        everything = {"audio": uploaded, "pack": uploaded, "document": uploaded}
        count = 0
        for name, endpoint in endpoints.items():
            arguments = endpoint["parameters"]
            for values in [{}, everything | good.get(name, {})]:
                data = [
                    values.get(parameter["parameter_name"], parameter.get("parameter_default"))
                    for parameter in arguments
                ]
                answer = called(client, name, data)
                assert "event: complete" in answer or "event: error" in answer, answer
                paths = [line for line in answer.splitlines() if "gradio.FileData" in line]
                count += len(paths)
                assert "secret" not in "".join(json.loads(line[6:])[0]["path"] for line in paths)
        assert count >= 5
        wait_until(lambda files: files == before, lambda: files_of(temporary))
        assert orphans(served) == set()
        monkeypatch.setattr(client_files, "RESULT_SECONDS", 600)
        assert "event: complete" in called(client, "/voice_export", ["anna"])
        assert files_of(temporary) > before
    assert files_of(temporary) == set()

"""Files of gradio_client: every endpoint refuses any path that does not refer to one of the caller's uploads."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from starlette.routing import Mount, Route

from studio.library import client_files
from studio.settings import Settings, read_keys
from studio.ui.offered_routes import OFFERED
from tests.browser.hosting.intruder import META, called, result, traps, try_everything, upload
from tests.browser.hosting.test_hosting import PREFIX, behind_proxy
from tests.fleet.frontends.engines import held
from tests.fleet.frontends.several import several
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav
from tests.waiting import wait_until_true

CLIP = wav(tone(2))
WORDS = "A steady tone."
KEYS = {"ann": "key-of-ann", "bob": "key-of-bob"}
API_KEYS = read_keys(",".join(KEYS.values()))
MANY = 100
"""Minimum number of tries; there are 19 endpoints with some 90 arguments."""
Steer = Callable[..., Served]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this process, used only by these studios."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def settings(voices_folder: Path, tmp_path: Path) -> Settings:
    return Settings(model="test/model", voices=str(voices_folder), home=str(tmp_path / "home"))


@pytest.fixture
def served(settings: Settings, temporary: Path) -> Iterator[Served]:
    with serve(settings, FakeEngine.start, page=True) as studio:
        yield studio


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


def rating_of(client: httpx.Client, reference: str) -> str:
    """The response of the endpoint that rates clips, for an upload."""
    return called(client, "/analyze_reference", [{"path": reference, "meta": META}, WORDS, 0, 0, 0, -1])


def folder_of(temporary: Path) -> Path:
    (folder,) = temporary.glob("studio-files-*")
    return folder


def stored_files(temporary: Path) -> list[Path]:
    """Clients' files on disk, without the hidden file that marks the folder as in use."""
    return [path for path in folder_of(temporary).iterdir() if not path.name.startswith(".")]


def test_endpoints_read_only_their_callers_uploads(served: Served, temporary: Path, tmp_path: Path) -> None:
    with served.client() as client:
        uploaded = upload(client, "me.wav", CLIP)
        uploads = folder_of(temporary)
        with traps(tmp_path / "traps", uploads) as laid:
            foreign = [uploaded.rpartition("/")[0], f"../{uploaded}", f"{uploaded}x"]
            assert try_everything(client, laid, foreign, uploads, odd_ones=True) > 5 * MANY
        assert rating_of(client, uploaded).startswith("event: complete")
        assert [path.name for path in stored_files(temporary)] == [uploaded.partition("/")[0]], "nothing was copied"
        assert client.get("/v1/projects").json()["data"] == []


def test_callers_cannot_reach_files_of_other_keys(settings: Settings, tmp_path: Path, temporary: Path) -> None:
    keyed = Settings(model=settings.model, voices=settings.voices, home=settings.home, api_keys=API_KEYS)
    with (
        serve(keyed, FakeEngine.start, page=True) as studio,
        studio.client(headers=bearer("ann")) as ann,
        studio.client(headers=bearer("bob")) as bob,
        studio.client() as nobody,
    ):
        clip = upload(ann, "me.wav", CLIP)
        sound = result(ann, "/voice_preview", ["anna", 0])[0]["path"]
        with traps(tmp_path / "traps", folder_of(temporary)) as laid:
            assert try_everything(bob, laid, [clip, sound], folder_of(temporary)) > MANY
        assert rating_of(ann, clip).startswith("event: complete")
        for reference in (clip, sound):
            assert ann.get(f"/gradio_api/file={reference}").status_code == 200
            assert bob.get(f"/gradio_api/file={reference}").status_code == 404
            assert nobody.get(f"/gradio_api/file={reference}").status_code == 401
        assert nobody.post("/gradio_api/upload", files={"files": ("a.wav", CLIP)}).status_code == 401


def test_foreign_files_are_unreachable_behind_a_proxy_path(
    settings: Settings, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.studio.server.create_app", behind_proxy)
    prefixed = Settings(model=settings.model, voices=settings.voices, home=settings.home, root_path=PREFIX)
    with serve(prefixed, FakeEngine.start, page=True) as studio:
        behind = Served(f"{studio.url}{PREFIX}", studio.app)
        with behind.client() as client, traps(tmp_path / "traps") as laid:
            assert try_everything(client, laid, []) > MANY
            sound = result(client, "/voice_preview", ["anna", 0])[0]
            assert sound["url"] == f"{behind.url}/gradio_api/file={sound['path']}"
            assert client.get(sound["url"]).content[:4] == b"RIFF"


def test_foreign_files_are_unreachable_through_a_speech_process(
    voices_folder: Path, temporary: Path, tmp_path: Path
) -> None:
    settings = Settings(
        model="test/model",
        voices=str(voices_folder),
        home=str(tmp_path / "home"),
        api_keys=API_KEYS,
    )
    with several(settings, lambda: held, page=True) as studio, traps(tmp_path / "traps") as laid:
        with studio.client_at(0, headers=bearer("ann")) as ann, studio.client_at(1, headers=bearer("bob")) as bob:
            clip = upload(ann, "me.wav", CLIP)
            assert try_everything(bob, laid, [clip]) > MANY
            assert rating_of(bob, clip).startswith("event: error")
        with studio.client_at(1, headers=bearer("ann")) as ann:  # in any process
            assert rating_of(ann, clip).startswith("event: complete")


@pytest.mark.parametrize("kind", ["symlink", "folder", "FIFO", "device", "giant", "nothing"])
def test_files_replacing_an_upload_are_not_read(served: Served, temporary: Path, tmp_path: Path, kind: str) -> None:
    with served.client() as client:
        reference = upload(client, "me.wav", CLIP)
        path = folder_of(temporary) / reference.partition("/")[0]
        path.unlink()
        (tmp_path / "same size").write_bytes(CLIP)
        if kind == "symlink":
            path.symlink_to(tmp_path / "same size")
        elif kind == "folder":
            path.mkdir()
        elif kind == "FIFO":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "giant":
            with path.open("wb") as giant:
                giant.truncate(1 << 40)
        text = rating_of(client, reference)
        assert text.startswith("event: error") and "upload it again" in text
        assert str(tmp_path) not in text
        assert client.get(f"/gradio_api/file={reference}").status_code == 404


def test_upload_folder_and_files_are_private_to_their_user(served: Served, temporary: Path) -> None:
    with served.client() as client:
        reference = upload(client, "secret words.wav", CLIP)
        result(client, "/voice_export", ["anna"])
        assert folder_of(temporary).stat().st_mode & 0o777 == 0o700
        files = stored_files(temporary)
        assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
        assert reference.endswith("/secret words.wav") and not any("words" in path.name for path in files)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("me.wav", "me.wav"),
        ("", "file"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("a\u202egpj.wav", "agpj.wav"),
        ("Stimme – 声.wav", "Stimme – 声.wav"),
        (".bashrc", "bashrc"),
    ],
)
def test_upload_names_are_sanitised(served: Served, name: str, kept: str) -> None:
    part = f'Content-Disposition: form-data; name="files"; filename="{name}"\r\nContent-Type: audio/wav'.encode()
    body = b"--x\r\n" + part + b"\r\n\r\n" + CLIP + b"\r\n--x--\r\n"
    with served.client() as client:
        head = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = client.post("/gradio_api/upload", content=body, headers=head)
        assert answer.status_code == 200, answer.text
        (reference,) = answer.json()
        assert reference.partition("/")[2] == kept
        file = client.get(f"/gradio_api/file={reference}")
        assert file.content == CLIP and "attachment" in file.headers["content-disposition"]
        assert client.head(f"/gradio_api/file={reference}").headers["content-length"] == str(len(CLIP))


def test_uploads_are_limited_and_used_ones_are_evicted(
    served: Served, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "MAX_FILES", 2)
    with served.client() as client:
        first, second = upload(client, "a.wav", CLIP), upload(client, "b.wav", CLIP)
        full = client.post("/gradio_api/upload", files={"files": ("c.wav", CLIP)})
        assert full.status_code == 429 and full.headers["retry-after"] == "60"
        assert "at most 2 and 256 MiB of one caller" in full.json()["error"]["message"]
        assert rating_of(client, first).startswith("event: complete")
        third = upload(client, "c.wav", CLIP)
        assert client.get(f"/gradio_api/file={first}").status_code == 404
        assert rating_of(client, second).startswith("event: complete") and rating_of(client, third)
        monkeypatch.setattr(client_files, "MAX_CALLER_BYTES", 2 * len(CLIP) - 1)
        assert upload(client, "d.wav", CLIP)
        assert len(stored_files(temporary)) == 1
        monkeypatch.setattr(client_files, "MAX_UPLOAD", len(CLIP) - 1)
        assert client.post("/gradio_api/upload", files={"files": ("e.wav", CLIP)}).status_code == 400
        several_files = [("files", ("f.wav", b"f")), ("files", ("g.wav", CLIP))]
        assert client.post("/gradio_api/upload", files=several_files).status_code == 400
        assert len(stored_files(temporary)) == 1, "nothing stays of a form that is refused"


def test_uploads_expire(served: Served, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_files, "UPLOAD_SECONDS", 0)
    with served.client() as client:
        reference = upload(client, "a.wav", CLIP)
        wait_until_true(lambda: client.get(f"/gradio_api/file={reference}").status_code != 200)
        assert "upload it to /gradio_api/upload first" in rating_of(client, reference)
        assert stored_files(temporary) == []


def test_unstorable_files_are_reported(served: Served, temporary: Path) -> None:
    temporary.rmdir()
    temporary.write_text("in the way", encoding="utf-8")
    with served.client() as client:
        answer = client.post("/gradio_api/upload", files={"files": ("a.wav", CLIP)})
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "no_room"
        assert str(temporary) not in answer.text
        result = called(client, "/voice_preview", ["anna", 0])
        assert "the studio's temporary folder is full or cannot be written" in result and str(temporary) not in result
        temporary.unlink()
        temporary.mkdir()
        assert upload(client, "a.wav", CLIP)


@pytest.mark.parametrize("files", [{"file": ("a.wav", CLIP)}, {"files": (None, b"words")}])
def test_a_form_without_files_is_refused(served: Served, files: dict[str, Any]) -> None:
    with served.client() as client:
        answer = client.post("/gradio_api/upload", files=files)
        assert answer.status_code == 400 and "the form has no file named files" in answer.json()["error"]["message"]


def test_values_named_path_are_returned_unchanged(served: Served, temporary: Path, tmp_path: Path) -> None:
    """A cast with speakers of these names is returned as it was sent; Gradio itself would look for a file."""
    (tmp_path / "anna").write_text("secret")
    with served.client() as client:
        cast = {"path": "anna", "meta": "anna"}
        take = client.post("/v1/audio/speech", json={"input": "path: Hello.\nmeta: Hi.", "cast": cast})
        assert take.status_code == 200, take.text
        facts = result(client, "/take_get", [take.headers["x-request-id"]])[1]
        assert facts["parameters"]["cast"] == {"path": "anna@1", "meta": "anna@1"}


def test_gradio_client_uploads_only_local_files(served: Served, tmp_path: Path) -> None:
    (tmp_path / "me.wav").write_bytes(CLIP)
    client = Client(served.url, verbose=False)
    advice = client.predict(audio=handle_file(tmp_path / "me.wav"), text=WORDS, api_name="/analyze_reference")
    assert advice["seconds"] == 2
    with traps(tmp_path / "traps") as laid:
        with pytest.raises(AppError, match="audio is not a file that you have uploaded"):
            client.predict(audio=handle_file(laid.web_address), text=WORDS, api_name="/analyze_reference")
        laid.assert_untouched()
    client.close()


OPEN = {
    *("/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/pwa_icon", "/robots.txt"),
    *("/static/{path}", "/assets/{path}"),
    *("/gradio_api/" + name for name in ("info", "openapi.json", "app_id", "startup-events", "theme.css")),
    *("/gradio_api/" + name for name in ("heartbeat/{session_hash}", "reset", "cancel")),
    *("/gradio_api/queue/" + name for name in ("join", "data", "status")),
    *(f"/gradio_api/{name}/{{api_name}}" for name in ("run", "api", "call", "call/v2")),
    *(f"/gradio_api/{name}/{{api_name}}/{{event_id}}" for name in ("call", "call/v2")),
}
"""Gradio's routes that the page and gradio_client need."""


def test_all_other_gradio_routes_are_closed(served: Served) -> None:
    """This includes routes that a later version adds."""
    (gradio,) = [route.app for route in served.app.routes if isinstance(route, Mount) and route.path == ""]
    assert isinstance(gradio, FastAPI)
    routes = {*gradio.openapi()["paths"], *(route.path for route in gradio.routes if isinstance(route, Route))}
    paths = {path.replace(":path}", "}").rstrip("/") or "/" for path in routes}
    assert paths >= OPEN
    with served.client() as client:
        for path in paths:
            example = re.sub(r"\{[^}]*\}", "x", path)
            if path in OPEN:
                assert OFFERED.fullmatch(example), path
                continue
            assert not OFFERED.fullmatch(example), path
            ours = example.startswith(("/gradio_api/upload", "/gradio_api/file", "/endpoints", "/openapi.json"))
            for method in () if ours else ("GET", "POST", "HEAD"):
                assert client.request(method, example).status_code == 404, f"{method} {example}"
        for query in ("?deep_link=x", "?page=endpoints"):
            assert client.head(f"/{query}").status_code == 200
            assert client.get(f"/config{query}").content == client.get("/config").content


def test_results_are_limited_and_the_oldest_are_removed(
    served: Served, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_files, "MAX_FILES", 3)
    with served.client() as client:
        results = [result(client, "/voice_preview", ["anna", 0])[0]["url"] for _ in range(5)]
        assert [client.get(url).status_code for url in results] == [404, 404, 200, 200, 200]
        assert len(stored_files(temporary)) == 3
        monkeypatch.setattr(client_files, "MAX_BYTES", 1)
        assert client.get(result(client, "/voice_preview", ["anna", 0])[0]["url"]).status_code == 200
        assert len(stored_files(temporary)) == 1


def test_cancelled_call_leaves_no_file(served: Served, temporary: Path) -> None:
    with served.client() as client:
        result(client, "/voice_preview", ["anna", 0])
        (number,) = [
            dependency["id"]
            for dependency in served_page(served).config["dependencies"]
            if dependency["api_name"] == "voice_preview"
        ]
        for name in map(str, range(30)):
            body = {"data": ["anna", 0], "fn_index": number, "session_hash": name}
            event = client.post("/gradio_api/queue/join", json=body).json()["event_id"]
            cancel = {"session_hash": name, "fn_index": number, "event_id": event}
            assert client.post("/gradio_api/cancel", json=cancel).status_code == 200
        count = len(result(client, "/voice_preview", ["anna", 0]))
        assert count
        studio = served.app.state.studio
        while len(stored_files(temporary)) > len(studio.client_files._files):
            pass


def served_page(served: Served) -> Any:
    return next(route.app for route in served.app.routes if isinstance(route, Mount) and route.path == "").get_blocks()  # type: ignore[attr-defined]


@pytest.mark.parametrize("planted", ["folder", "link"])
def test_folder_of_another_user_is_not_used(served: Served, temporary: Path, tmp_path: Path, planted: str) -> None:
    with served.client() as client:
        uploaded = upload(client, "a.wav", CLIP)
        folder = folder_of(temporary)
        folder.rename(tmp_path / "cleared away")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        folder.mkdir() if planted == "folder" else folder.symlink_to(elsewhere)
        (folder / uploaded.partition("/")[0]).write_bytes(b"\0" * len(CLIP))
        assert client.get(f"/gradio_api/file={uploaded}").status_code == 404
        again = upload(client, "b.wav", CLIP)
        assert client.get(f"/gradio_api/file={again}").content == CLIP
        assert len([*folder.iterdir()]) == 1, "nothing was written there"
    assert folder.exists(), "nor is it removed"


def test_leftovers_of_a_killed_studio_are_removed(settings: Settings, temporary: Path) -> None:
    killed, foreign = temporary / "studio-files-killed", temporary / "studio-files-other"
    for folder in (killed, foreign):
        folder.mkdir()
        (folder / "upload").write_bytes(CLIP)
    (killed / ".owner").touch()
    with serve(settings, FakeEngine.start, page=True) as one, one.client() as client:
        first = upload(client, "a.wav", CLIP)
        assert not killed.exists() and foreign.exists()
        with serve(settings, FakeEngine.start, page=True) as other, other.client() as another:
            assert upload(another, "a.wav", CLIP)
        assert client.get(f"/gradio_api/file={first}").content == CLIP, "a running studio's folder stays"


def test_studios_starting_together_clean_the_same_folders(temporary: Path) -> None:
    for number in range(50):
        (temporary / f"studio-files-dead{number}").mkdir()
        (temporary / f"studio-files-dead{number}" / ".owner").touch()
    os.mkfifo(temporary / "studio-files-dead0" / ".other")
    (temporary / "studio-files-odd").mkdir()
    os.mkfifo(temporary / "studio-files-odd" / ".owner")
    folders = [client_files.TemporaryFolder() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        paths = [*threads.map(lambda folder: folder.path(), folders)]
    assert {*temporary.iterdir()} == {*paths, temporary / "studio-files-odd"}
    assert all((path / ".owner").is_file() for path in paths)
    for folder in folders:
        folder.close()
    assert [*temporary.iterdir()] == [temporary / "studio-files-odd"]

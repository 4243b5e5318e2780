"""A full disk: speech continues, everything is readable, deleting frees space, and no partial file remains."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from launch.startup import create_app
from longform.library.project_records import NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from manuscript.table import read_csv
from studio.errors import LibraryBusy, LibraryFull, SettingsError
from studio.library import Backup, Library, TakeFilter, VoiceFields
from studio.library.audio_files import AudioFiles
from studio.settings import Settings
from tests.longform.test_projects import create_project, until
from tests.studio.answers import assert_envelope
from tests.studio.clips import new_sample
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.tiny_disk import can_mount, fill, tiny_disk
from tests.studio.library.worker import stored_take
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav
from tests.waiting import wait_until_true

Steer = Callable[..., Steered]
CLIP = wav(tone(1.5))
SPEECH, TAKES = "/v1/audio/speech", "/v1/takes"


def files(home: Path) -> set[str]:
    return {path.name for path in (home / "audio").rglob("*") if path.is_file()}


Full = Callable[[Callable[[], bool]], None]
"""Makes the disk full from now on whenever the function returns True."""


@pytest.fixture
def full_when(monkeypatch: pytest.MonkeyPatch) -> Full:
    """A disk that can become full in the middle of writing an audio file."""
    tests: list[Callable[[], bool]] = [lambda: False]
    whole = os.fsync

    def fsync(handle: int) -> None:
        if tests[-1]():
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(handle)

    monkeypatch.setattr("studio.library.audio_files.os.fsync", fsync)
    return tests.append


def test_failed_write_leaves_no_file(tmp_path: Path, full_when: Full) -> None:
    audio = AudioFiles(tmp_path / "audio")
    full_when(lambda: True)
    with pytest.raises(OSError, match="No space"):
        audio.put(b"sound" * 1000)
    assert files(tmp_path) == set()


def test_folders_of_some_disks_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(error, os.strerror(error))

    audio, error = AudioFiles(tmp_path / "audio"), errno.EINVAL
    monkeypatch.setattr("studio.library.audio_files.os.fsync", fsync)
    assert audio.read(audio.put(b"sound")) == b"sound"
    error = errno.EIO
    with pytest.raises(OSError, match=os.strerror(error)):
        audio.put(b"more")


def test_voice_import_leaves_no_clips_if_the_disk_is_full(tmp_path: Path, full_when: Full) -> None:
    library = Library(tmp_path)
    shared = new_sample(CLIP, "shared words")
    library.voices.create(VoiceFields(name="Anna"), [shared])
    before = files(tmp_path)
    full_when(lambda: len(files(tmp_path) - before) > 2)
    with pytest.raises(LibraryFull, match="no room left on its disk"):
        library.voices.create(
            VoiceFields(name="Bert"), [shared, *(new_sample(bytes([n]) * 500, "more") for n in range(3))]
        )
    assert files(tmp_path) == before, "what another voice has stays, and nothing else"
    assert [voice.name for voice in library.voices.page()] == ["Anna"]


def test_trash_is_emptied_for_a_new_take_and_a_waiting_take_degrades_health(
    tmp_path: Path, steered: Steer, full_when: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.recorder.RETRY_SECONDS", 0.01)
    served, _ = steered(home=str(tmp_path / "home"))
    library: Library = served.app.state.studio.speech.voices.library
    library.takes.add(stored_take("req_old", "old", "anna"), b"old sound")
    old = library.files.path(str(library.takes.get("req_old").audio))
    library.takes.delete(TakeFilter(ids=("req_old",)))
    assert old.exists(), "it can be brought back as long as nobody needs its room"
    full_when(old.exists)
    with served.client() as client:
        take_id = client.post(SPEECH, json={"input": "Two words"}).headers["x-request-id"]
        assert client.get(f"{TAKES}/{take_id}").json()["stored"]
        assert client.get("/health").json()["degraded"] is False
        full_when(lambda: True)
        waiting = client.post(SPEECH, json={"input": "Two words"}).headers["x-request-id"]
        assert client.get(f"{TAKES}/{waiting}").json()["stored"] is False
        health = client.get("/health")
        assert (health.status_code, health.json()["status"], health.json()["degraded"]) == (200, "ready", True)
        assert health.json()["background"]["recorder"]["ok"] is False
        error = client.get("/v1/diagnostics").json()["background"]["recorder"]["error"]
        assert "takes wait to be kept: the library has no room left" in error
        full_when(lambda: False)
        client.post(SPEECH, json={"input": "Two words"})
        client.get(TAKES)
        wait_until_true(lambda: client.get("/health").json()["background"]["recorder"]["ok"] is True)
    assert library.trash.page(None) == [] and [n for n in files(tmp_path / "home") if "." in n] == []


def test_trash_is_emptied_of_takes_before_voices(tmp_path: Path, full_when: Full) -> None:
    library = Library(tmp_path)
    clip = library.files.path(
        library.voices.create(VoiceFields(name="Anna"), [new_sample(CLIP, "words")]).samples[0].clip
    )
    library.takes.add(stored_take("req_old", "old", "anna"), b"old sound")
    library.takes.delete(TakeFilter(ids=("req_old",)))
    library.voices.delete("anna")
    old = library.files.path(hashlib.sha256(b"old sound").hexdigest())
    full_when(old.exists)
    library.voices.create(VoiceFields(name="Bert"), [new_sample(b"other", "words")])
    assert clip.exists() and not old.exists(), "nobody is refused for whom there is room"
    full_when(clip.exists)
    library.voices.create(VoiceFields(name="Carl"), [new_sample(b"third", "words")])
    assert not clip.exists()
    full_when(lambda: True)
    with pytest.raises(LibraryFull, match="delete something"):
        library.voices.create(VoiceFields(name="Dora"), [new_sample(b"fourth", "words")])


def test_a_full_disk_is_reported_without_its_path(
    tmp_path: Path, steered: Steer, full_when: Full, caplog: pytest.LogCaptureFixture
) -> None:
    served, _ = steered(home=str(tmp_path / "home"))
    with served.client() as client:
        full_when(lambda: True)
        answer = create_voice(client)
    assert_envelope(answer, 503)
    assert answer.json()["error"]["code"] == "library_unavailable"
    assert "no room left on its disk" in answer.text and str(tmp_path) not in answer.text
    assert str(tmp_path / "home") in caplog.text, "the log says where"


def test_regenerated_take_is_stored_whole_or_refused(tmp_path: Path, steered: Steer, full_when: Full) -> None:
    served, _ = steered(home=str(tmp_path / "home"))
    with served.client() as client:
        take = client.post(SPEECH, json={"input": "One two. Three."}).headers["x-request-id"]
        whole = {"start": 0, "end": 1}
        assert client.post(f"{TAKES}/{take}/regenerate", json=whole).status_code == 201
        before = client.get(TAKES).json(), files(tmp_path / "home")
        full_when(lambda: True)
        refused = client.post(f"{TAKES}/{take}/regenerate", json=whole)
        assert_envelope(refused, 503)
        assert "no room left on its disk" in refused.text
        full_when(lambda: False)
        rows = [row for row in client.get(TAKES).json()["data"] if row["stored"]]
        assert (rows, files(tmp_path / "home")) == (before[0]["data"], before[1])


@pytest.mark.parametrize("room", [None, 0, 1000, 6000])
def test_audiobook_is_refused_without_leftovers_on_a_full_disk(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, room: int | None
) -> None:
    """``room``: free bytes; None: not even an empty file can be created."""
    opened: list[io.BytesIO] = []

    class Crowded(io.BytesIO):
        def write(self, data: Any) -> int:
            if self.tell() + len(data) > (room or 0):
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    def open_one(dir: Path) -> io.BytesIO:
        if room is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        opened.append(Crowded())
        return opened[-1]

    served, _ = steered()
    items = [{"input": "One.", "pause": 10}, {"input": "Two."}]
    project = create_project(served, items=items, start=True)
    until(served, project, "done")
    monkeypatch.setattr(tempfile, "TemporaryFile", open_one)
    with served.client() as client:
        answer = client.get(f"/v1/projects/{project['id']}/audio?format=m4b")
    assert_envelope(answer, 503)
    assert "no room left on its disk" in answer.text
    assert len(opened) == (room is not None) and all(file.closed for file in opened)


def test_takes_wait_for_room_on_the_disk_and_are_played_meanwhile(
    tmp_path: Path, steered: Steer, full_when: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.recorder.RETRY_SECONDS", 0.01)
    served, _ = steered(home=str(tmp_path / "home"))
    with served.client() as client:
        full_when(lambda: True)
        first, second, unwanted = (speak(served, f"Number {number}.") for number in range(3))
        details = client.get(f"{TAKES}/{first}").json()
        assert (details["stored"], details["text"]) == (False, "Number 0.")
        page = client.get(TAKES, params={"limit": 2}).json()
        assert [take["id"] for take in page["data"]] == [unwanted, second]
        assert [take["id"] for take in client.get(TAKES, params={"after": second}).json()["data"]] == [first]
        sound = client.get(f"{TAKES}/{first}/audio")
        assert sound.status_code == 200 and hashlib.sha256(sound.content).hexdigest() == details["audio"]["sha256"]
        part = client.get(f"{TAKES}/{first}/audio", headers={"Range": "bytes=44-99"})
        assert part.status_code == 206 and part.content == sound.content[44:100]
        assert client.get(f"{TAKES}/{first}/audio", params={"format": "flac"}).content.startswith(b"fLaC")
        refused = client.get(f"{TAKES}/{first}/timestamps")
        assert_envelope(refused, 409, "take_id")
        assert "not stored yet" in refused.text
        assert client.delete(f"{TAKES}/{unwanted}").json()["undo_seconds"] == 0
        assert client.get(f"{TAKES}/{unwanted}").status_code == 404
        full_when(lambda: False)
        wait_until_true(lambda: client.get(f"{TAKES}/{second}").json()["stored"])
        assert [take["id"] for take in client.get(TAKES).json()["data"]] == [second, first]
        assert client.get(f"{TAKES}/{first}/audio").content == sound.content
        assert client.get("/health").json()["takes"] == {"kept": 2, "soundless": 0, "lost": 0}


def test_word_times_need_no_room_on_the_disk(tmp_path: Path, steered: Steer) -> None:
    served, _ = steered(home=str(tmp_path / "home"))
    with served.client() as client:
        take_id = speak(served)
        assert client.get(f"{TAKES}/{take_id}").json()["stored"]
        with closing(sqlite3.connect(tmp_path / "home" / "library.db")) as disk:
            refused = "select raise(abort, 'database or disk is full'); end"
            disk.execute(f"create trigger full before insert on take_times begin {refused}")
        answer = client.get(f"{TAKES}/{take_id}/timestamps")
    assert answer.status_code == 200 and len(answer.json()["timestamps"]) == 2


def refuse(_: object) -> None:
    raise LibraryBusy("the library is busy")


def speak(served: Served, text: str = "Two words") -> str:
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": text, "response_format": "wav"})
    assert answer.status_code == 200 and len(answer.content) > 44
    return answer.headers["x-request-id"]


def create_voice(client: httpx.Client) -> httpx.Response:
    return client.post("/v1/audio/voices", data={"name": "Eve", "ref_text": "Hi."}, files={"audio_sample": CLIP})


def test_take_too_large_for_the_disk_holds_up_no_other_and_is_deleted_with_all(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.recorder.RETRY_SECONDS", 0.01)
    room, sync = [2**40], os.fsync

    def fsync(handle: int) -> None:
        if os.fstat(handle).st_size > room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr("studio.library.audio_files.os.fsync", fsync)
    served, _ = steered()
    room[0] = 100_000
    with served.client() as client:
        large, small = (speak(served, text) for text in ("It swam to the shore, and sang. " * 20, "One."))
        wait_until_true(lambda: client.get(f"{TAKES}/{small}").json()["stored"])
        assert client.get(f"{TAKES}/{large}").json()["stored"] is False
        assert "2 takes" in client.delete(TAKES).text
        with monkeypatch.context() as busy:
            busy.setattr(served.app.state.studio.library.takes, "delete", refuse)
            assert_envelope(client.delete(TAKES, params={"confirm": True}), 503, None)
        assert client.get(f"{TAKES}/{large}/audio").is_success, "the refusal has deleted nothing"
        deleted = client.delete(TAKES, params={"confirm": True}).json()
        assert set(deleted["ids"]) == {large, small} and deleted["undo_seconds"] == 0, "one of them is gone for good"
        room[0] = 2**40
        last = speak(served, "Two.")
        wait_until_true(lambda: client.get(f"{TAKES}/{last}").json()["stored"])
        assert [take["id"] for take in client.get(TAKES).json()["data"]] == [last]


if can_mount():

    @pytest.fixture
    def disk(tmp_path: Path) -> Iterator[Path]:
        folder = tmp_path / "disk"
        folder.mkdir()
        with tiny_disk(folder, 32) as mounted:
            yield mounted

    def test_backup_names_a_full_folder_for_temporary_files(
        tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Library(tmp_path / "home")
        backup = Backup(tmp_path / "home", tmp_path / "bucket")
        fill(disk)
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        assert not backup._try()
        assert "(TMPDIR) has no room" in str(backup.status.error) and str(disk) in str(backup.status.error)

    def test_takes_are_played_listed_and_deleted_on_a_full_disk(
        disk: Path, steered: Steer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("studio.speech.recorder.RETRY_SECONDS", 0.1)
        home = disk / "home"
        served, _ = steered(home=str(home))
        ids = [speak(served) for _ in range(8)]
        with served.client() as client:
            assert [take["id"] for take in client.get(TAKES).json()["data"] if take["stored"]] == ids[::-1]
            fill(disk)
            waiting = speak(served)
            for path in (f"{TAKES}?limit=50", "/v1/voices", "/v1/settings", f"{TAKES}/{ids[0]}/audio", "/health"):
                assert client.get(path).status_code == 200, path
            refused = create_voice(client)
            assert_envelope(refused, 503)
            assert "no room left on its disk" in refused.text and str(home) not in refused.text
            assert client.get(f"{TAKES}/{waiting}").json()["stored"] is False
            assert client.get(f"{TAKES}/{waiting}/audio").status_code == 200
            assert client.get(f"{TAKES}/{ids[0]}/timestamps").status_code == 200
            assert [name for name in files(home) if name.endswith(".part")] == []
            for take_id in ids[:7]:
                assert client.delete(f"{TAKES}/{take_id}").status_code == 200
            wait_until_true(lambda: client.get(f"{TAKES}/{waiting}").json()["stored"])
            assert client.get(f"{TAKES}/{speak(served, 'One')}").json()["stored"], "deleting has made room"
            assert create_voice(client).status_code == 200
            assert client.delete("/v1/voices/eve").status_code == 200

    @pytest.mark.posix  # Windows has no folder in memory
    @pytest.mark.parametrize("has_library", [False, True])
    def test_bundled_voices_speak_though_the_disk_is_full_at_the_start(
        disk: Path,
        voices_folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        has_library: bool,
    ) -> None:
        home = disk / "home"
        (disk / "backup").mkdir()
        home.mkdir()
        if has_library:
            library = Library(home)
            library.voices.create(VoiceFields(name="Carl"), [new_sample(CLIP, "words")])
            library.store.close()
            del library
            (home / "reserve").unlink()
        fill(disk)
        monkeypatch.setattr(tempfile, "tempdir", str(disk))  # as on a machine with one disk
        settings = Settings(
            model="test/model", home=str(home), voices=str(voices_folder), backup_dir=str(disk / "backup")
        )
        with serve(settings, FakeEngine.start) as served, served.client() as client:
            temporary = Path(served.app.state.studio.library.home)
            speak(served)
            assert [voice["name"] for voice in client.get("/v1/voices").json()["data"]] == ["Anna", "Bert"]
            assert create_voice(client).status_code == 200
            assert client.get(TAKES).json()["data"] == [], "its folder may be in memory"
            assert client.get("/v1/settings").json()["storage"]["backup"] is None, "an empty library replaces no backup"
        assert f"STUDIO_HOME={str(home)!r} is full: free 50 MB there" in caplog.text and str(temporary) in caplog.text
        assert not temporary.exists()
        (disk / "something else").unlink()
        assert [voice.name for voice in Library(home).voices.page()] == (["Carl"] if has_library else [])

    def test_start_without_any_room_says_what_to_do(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fill(disk)
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        monkeypatch.setattr("studio.services.TEMPORARY_BYTES", 2**62)
        with pytest.raises(SettingsError, match=f"STUDIO_HOME='{disk}/home' is full: free 50 MB there, or set"):
            create_app(Settings(home=str(disk / "home"), page=False))

    @pytest.mark.parametrize("is_quota", [False, True])
    def test_library_opens_on_a_full_disk_and_deletes_a_thousand_takes(
        disk: Path, is_quota: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if is_quota:  # others have room there
            monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**40))
        library = Library(disk / "home")
        library.takes.add(stored_take("req_0", "words " * 50, "anna"), b"sound" * 1000)
        with library.store.writing() as db:
            row = next(iter(db.table("takes").rows))
            db.table("takes").insert_all(row | {"n": None, "id": f"req_{n}"} for n in range(1, 1100))
        del library, db
        fill(disk)
        again = Library(disk / "home")
        assert len(again.takes.page(limit=500)) == 500
        assert len(again.takes.delete(TakeFilter())) == 1000
        assert again.trash.empty(None) == 1000
        assert again.takes.count(TakeFilter()) == 100
        with again.store.reading() as db:
            assert db.execute("pragma integrity_check").fetchall() == [("ok",)]

    def test_update_of_a_table_leaves_the_room_that_deletions_need(disk: Path) -> None:
        library = ProjectLibrary(disk / "home")
        parts = [NewPart(f"Line {number}.", name=f"line_{number}") for number in range(4000)]
        project = library.projects.create("me", "Book", "csv", parts, ProjectSettings())
        table = read_csv(b"id,text\n" + b"".join(b"line_%d,Another line.\n" % number for number in range(4000)))
        library.store.close()
        fill(disk)
        again = ProjectLibrary(disk / "home")
        with pytest.raises(LibraryFull):
            again.tables.update(project.id, "me", table, lambda passage, *_: NewPart(passage.text, name=passage.name))
        again.projects.delete(project.id, "me")
        assert again.trash.empty("me") == 1

    @pytest.mark.parametrize("free", [2**20, 2**17])
    def test_library_opened_on_an_almost_full_disk_can_still_delete(disk: Path, free: int) -> None:
        library = Library(disk / "home")
        library.takes.add(stored_take("req_0", "words " * 50, "anna"), b"sound" * 1000)
        with library.store.writing() as db:
            row = next(iter(db.table("takes").rows))
            db.table("takes").insert_all(row | {"n": None, "id": f"req_{n}"} for n in range(1, 1100))
        library.store.close()
        (disk / "home" / "reserve").unlink()
        occupied = fill(disk)
        os.truncate(occupied, occupied.stat().st_size - free)
        again = Library(disk / "home")
        fill(disk)
        assert again.takes.delete(TakeFilter(ids=("req_7",))) == ["req_7"]
        assert again.takes.delete(TakeFilter()), "as many as its log has room for"

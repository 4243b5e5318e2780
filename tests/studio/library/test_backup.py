"""Backups of the library on another disk: after writes, at shutdown, and restored, even after interruptions."""

from __future__ import annotations

import filecmp
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from launch.startup import create_app
from longform.library.project_records import NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from studio.errors import SettingsError
from studio.library import Backup, Library, VoiceFields
from studio.library.audio_files import AudioFiles
from studio.library.records import GLOBAL, Pronunciation
from studio.settings import Settings
from studio.voices.bundled import EVENT
from tests.longform.test_projects import create_project, parts_of, until
from tests.studio.clips import new_sample
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.test_crash import check
from tests.studio.library.worker import begin, copy_voice_by_voice
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav


def add(library: ProjectLibrary, name: str, seed: int = 1) -> None:
    clip = wav(tone(0.3, hertz=200 + seed))
    library.voices.create(VoiceFields(name=name), [new_sample(clip, f"words of {name}")])


def write(library: ProjectLibrary) -> None:
    """A change without audio."""
    library.pronunciations.add(GLOBAL, Pronunciation(phrase=f"GIF {time.monotonic_ns()}", said="jif"))


def names(library: Library) -> set[str]:
    return {voice.name for voice in library.voices.page()}


def with_signal(snapshot: Callable[[], Path], taken: threading.Event) -> Callable[[], Path]:
    def take() -> Path:
        path = snapshot()
        taken.set()
        return path

    return take


def test_empty_library_is_restored_from_the_newest_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    assert backup.restore() is None
    add(library, "Anna")
    backup.snapshot()
    add(library, "Bert", 2)
    newest = backup.snapshot()
    again = Backup(tmp_path / "new", tmp_path / "bucket")
    assert again.restore() == newest
    assert names(check(tmp_path / "new")) == {"Anna", "Bert"}
    killed = tmp_path / "new" / "library.db.00112233.part"
    killed.touch()
    os.utime(killed, (0, 0))
    assert again.restore() is None, "a library with something in it is left alone"
    assert not killed.exists(), "left by a restore that was killed"

    def read_after_another_wrote(files: AudioFiles, digest: str) -> bytes:
        monkeypatch.undo()
        add(ProjectLibrary(tmp_path / "shared"), "Carla", 3)
        return files.read(digest)

    monkeypatch.setattr(AudioFiles, "read", read_after_another_wrote)
    with pytest.raises(OSError, match="was used meanwhile"):
        Backup(tmp_path / "shared", tmp_path / "bucket").restore()
    assert names(check(tmp_path / "shared")) == {"Carla"}, "what a command added during a restore stays"


@pytest.mark.posix
def test_pipes_in_a_backup_are_not_opened(tmp_path: Path) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    add(library, "Bert", 2)
    good = backup.snapshot()
    os.mkfifo(tmp_path / "bucket" / "backup-9.db")
    copy = next(path for path in (tmp_path / "bucket" / "audio").rglob("*") if path.is_file())
    copy.unlink()
    os.mkfifo(copy)
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore() == good


LINUX = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="has no file that cannot be read")


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "foreign", pytest.param("unreadable", marks=LINUX)])
def test_previous_snapshot_is_restored_if_the_newest_is_damaged(tmp_path: Path, damage: str) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    good = backup.snapshot()
    add(library, "Bert", 2)
    bad = backup.snapshot()
    data = bad.read_bytes()
    middle = len(data) // 2
    bad.write_bytes(
        {
            "cut": data[:middle],
            "noise": data[:middle] + bytes(255 - byte for byte in data[middle : middle + 8192]) + data[middle + 8192 :],
            "empty": b"",
            "foreign": b"no database at all" * 1000,
            "unreadable": b"",
        }[damage]
    )
    if damage == "unreadable":
        bad.unlink()
        bad.symlink_to("/proc/self/mem")
    again = Backup(tmp_path / "new", tmp_path / "bucket")
    assert again.restore() == good
    assert names(check(tmp_path / "new")) == {"Anna"}


@pytest.mark.parametrize("name", ["bucket", "a#b", "a?mode=rw", "100%25", "ä b"])
def test_only_the_newest_snapshots_and_their_audio_are_kept(tmp_path: Path, name: str) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / name)
    add(library, "Anna")
    for _ in range(2):
        write(library)
        backup.snapshot()
    killed = tmp_path / name / "backup-3.db.0123abcd.part"
    killed.touch()
    for path in (tmp_path / name).rglob("*"):
        os.utime(path, (0, 0))  # younger ones may be another studio's
    songs = tmp_path / name / "audio" / "Abbey Road"  # the folder is somebody's, who has a folder "audio" too
    songs.mkdir()
    song, index = songs / "x.flac", next((tmp_path / name / "audio").glob("??")) / "@eaDir"  # as some disks make
    song.touch()
    index.mkdir()
    library.voices.delete("anna")
    library.trash.empty(None)
    for _ in range(3):
        write(library)
        backup.snapshot()
    assert sorted(path.name for path in (tmp_path / name).glob("backup*")) == [f"backup-{n}.db" for n in (4, 5, 6)]
    assert [path for path in (tmp_path / name / "audio").rglob("*") if path.is_file()] == [song]
    assert index.is_dir()


def test_a_copy_that_lost_its_content_is_written_again_and_any_number_is_followed_by_the_next(tmp_path: Path) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    first = backup.snapshot()
    first.rename(first.with_name("backup-999999999999.db"))
    clip = library.voices.get("anna").samples[0].clip
    copy = AudioFiles(tmp_path / "bucket" / "audio").path(clip)
    for kept in (0, 100):
        write(library)
        copy.write_bytes(copy.read_bytes()[:kept])
        newest = backup.snapshot()
        assert copy.read_bytes() == library.files.read(clip)
    assert newest.name == "backup-1000000000001.db"
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore() == newest


@pytest.mark.parametrize("folder", ["home", pytest.param("link", marks=pytest.mark.posix), "other"])
def test_folder_of_a_library_is_refused(tmp_path: Path, folder: str) -> None:
    Library(tmp_path / "other").store.close()
    (tmp_path / "home").mkdir()
    if folder == "link":
        (tmp_path / "link").symlink_to(tmp_path / "home")
    settings = Settings(home=str(tmp_path / "home"), backup_dir=str(tmp_path / folder), page=False)
    with pytest.raises(SettingsError, match=r"STUDIO_BACKUP_DIR=.* a library's own folder"):
        create_app(settings)


def test_good_snapshots_are_not_replaced_by_those_of_a_damaged_library(tmp_path: Path) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    good = backup.snapshot()
    library.store.close()
    with closing(sqlite3.connect(library.store.path)) as damaged:
        query = "select rootpage, page_size from sqlite_master, pragma_page_size where name = 'idx_projects_id'"
        page, size = damaged.execute(query).fetchone()
    with library.store.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"noise" * 100)
    for _ in range(3):
        with pytest.raises(sqlite3.DatabaseError):
            backup.snapshot()
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore() == good
    assert names(check(tmp_path / "new")) == {"Anna"}


def test_old_snapshots_stay_while_a_newer_one_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    good = backup.snapshot()
    for _ in range(3):
        write(library)
        backup.snapshot().write_bytes(b"no database at all")
    again = Backup(tmp_path / "new", tmp_path / "bucket")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert again.restore() == good and names(check(tmp_path / "new")) == {"Anna"}, "it needs no room elsewhere"
    monkeypatch.undo()
    for _ in range(4):
        write(library)
        assert backup._try()
    assert {path.name for path in good.parent.glob("*.db")} == {f"backup-{n}.db" for n in (2, 3, 4, 6, 7, 8)}
    assert backup.status.error is None and "backup-2.db in the backup folder is damaged" in str(backup.watch.status)


def test_snapshot_is_taken_once_writing_has_settled(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path / "home")
    backup = Backup(tmp_path / "home", tmp_path / "bucket", settle=0.05, poll=0.01)
    backup.restore()
    taken = threading.Event()
    snapshot = backup.snapshot
    backup.snapshot = with_signal(snapshot, taken)  # type: ignore[method-assign]
    backup.start()
    assert taken.wait(30), "a library that was never backed up is, at once"
    taken.clear()
    add(library, "Anna")
    assert taken.wait(30)
    backup.stop()
    assert backup.status.error is None and backup.status.last is not None
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore()
    assert names(ProjectLibrary(tmp_path / "new")) == {"Anna"}


def test_start_backs_up_what_was_written_before_it_and_replaces_no_snapshot_if_nothing_was(tmp_path: Path) -> None:
    library, backup = ProjectLibrary(tmp_path / "home"), Backup(tmp_path / "home", tmp_path / "bucket")
    add(library, "Anna")
    first = backup.snapshot()
    add(library, "Bert")  # and then a crash, before the next snapshot
    for _ in range(4):
        ProjectLibrary(tmp_path / "home")
        backup = Backup(tmp_path / "home", tmp_path / "bucket", settle=0.0, poll=0.01)
        backup.start()
        backup.stop()
    assert len(list(first.parent.glob("backup-*.db"))) == 2
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore()
    assert names(ProjectLibrary(tmp_path / "new")) == {"Anna", "Bert"}


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    ProjectLibrary(tmp_path / "home")
    backup = Backup(tmp_path / "home", tmp_path / "bucket", settle=0.0, poll=0.01)
    backup.restore()
    (tmp_path / "bucket" / "audio").write_text("in the way of the folder")
    backup.start()
    backup.stop()
    assert backup.status.error


def test_damaged_clips_are_reported_and_left_out_and_the_rest_is_backed_up(tmp_path: Path) -> None:
    library, backup = (
        ProjectLibrary(tmp_path / "home"),
        Backup(tmp_path / "home", tmp_path / "bucket", settle=0.0, poll=0.01),
    )
    for number, name in enumerate(("Anna", "Bert", "Gone", "Dora")):
        add(library, name, number)
    clips = {voice.name: library.files.path(voice.samples[0].clip) for voice in library.voices.page()}
    data = bytearray(clips["Anna"].read_bytes())
    data[100] ^= 1
    clips["Anna"].write_bytes(data)
    clips["Gone"].unlink()
    backup.restore()
    backup.start()
    backup.stop()
    assert sorted(backup.status.left_out) == ["a clip of the voice Anna", "a clip of the voice Gone"]
    assert backup.status.error is None and "2 damaged files" in str(backup.watch.status.error)
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore()
    copy = ProjectLibrary(tmp_path / "new")
    assert names(copy) == {"Anna", "Bert", "Gone", "Dora"}
    for name in ("Bert", "Dora"):
        copy.files.read(copy.voices.get(name).samples[0].clip)
    clips["Anna"].unlink()
    library.files.put(bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:]))
    library.voices.delete("gone")
    library.trash.empty(None)
    backup.snapshot()
    assert backup.status.left_out == ()


def test_library_is_backed_up_after_watching_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ProjectLibrary(tmp_path / "home")
    backup = Backup(tmp_path / "home", tmp_path / "bucket", settle=0.0, poll=0.01)
    backup.restore()
    failures = [sqlite3.OperationalError("disk I/O error"), KeyError("unforeseen")]

    def version(watch: sqlite3.Connection) -> int:
        if failures:
            raise failures.pop()
        return int(watch.execute("pragma data_version").fetchone()[0])

    monkeypatch.setattr("studio.library.backup._version", version)
    taken = threading.Event()
    snapshot = backup.snapshot
    backup.snapshot = with_signal(snapshot, taken)  # type: ignore[method-assign]
    add(library, "Anna")
    backup._last = 1.0
    backup.start()
    assert taken.wait(30)
    backup.stop()
    assert not failures and backup.watch.status.failures == 2 and backup.watch.status.error is None
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore()
    assert names(ProjectLibrary(tmp_path / "new")) == {"Anna"}


@pytest.mark.parametrize("lines", [1, 3, 6])
def test_kill_during_a_copy_leaves_the_previous_snapshot(tmp_path: Path, lines: int) -> None:
    worker, progress = begin(copy_voice_by_voice, tmp_path / "home", tmp_path / "bucket")
    last = [progress.recv() for _ in range(lines)][-1]
    worker.kill()
    worker.join()
    progress.close()
    assert Backup(tmp_path / "new", tmp_path / "bucket").restore()
    library = check(tmp_path / "new")
    assert {f"voice {n}" for n in range(last + 1)} <= names(library)
    for voice in library.voices.page():
        for sample in voice.samples:
            library.files.read(sample.clip)


def test_studio_restores_voices_and_takes_after_losing_its_disk(tmp_path: Path, voices_folder: Path) -> None:
    def settings(home: str) -> Settings:
        folder = str(tmp_path / home)
        return Settings(model="test/model", voices=str(voices_folder), home=folder, backup_dir=str(tmp_path / "bucket"))

    with serve(settings("first"), FakeEngine.start) as studio:
        add(studio.app.state.studio.speech.voices.library, "Zoe", 3)
        with studio.client() as client:
            assert client.post("/v1/audio/speech", json={"input": "Two words"}).status_code == 200
    with serve(settings("second"), FakeEngine.start) as studio:
        with studio.client() as client:
            assert "zoe" in [voice["id"] for voice in client.get("/v1/audio/voices").json()["voices"]]
            storage = client.get("/v1/settings").json()["storage"]
        assert storage["takes"] == 1
        assert storage["backup"]["folder"] == str(tmp_path / "bucket") and storage["backup"]["error"] is None
        assert httpx.get(f"{studio.url}/health").json()["backup"]["failed"] is False


@pytest.mark.posix  # the failed start ends with the process, whose files Windows does not rename before
@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_damaged_library_stops_the_start_until_moved_then_its_backup_is_restored(
    tmp_path: Path, voices_folder: Path, damage: str
) -> None:
    home = tmp_path / "home"
    settings = Settings(
        model="test", home=str(home), voices=str(voices_folder), page=False, backup_dir=str(tmp_path / "bucket")
    )
    with serve(settings, FakeEngine.start) as served:
        add(served.app.state.studio.library, "Carla")
    for path in home.glob("library.db*"):
        path.unlink()
    whole = next((tmp_path / "bucket").glob("*.db")).read_bytes()
    (home / "library.db").write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"no database at all" * 1000)
    with pytest.raises(SettingsError, match=r"the library is damaged; move .* \(STUDIO_HOME="):
        create_app(settings)
    for path in home.glob("library.db*"):
        path.rename(tmp_path / path.name)
    with serve(settings, FakeEngine.start) as served:
        assert "Carla" in names(served.app.state.studio.library)


def test_audio_of_takes_and_projects_survives_a_restart_and_a_lost_disk(tmp_path: Path, voices_folder: Path) -> None:
    def settings(home: str) -> Settings:
        folder, bucket = str(tmp_path / home), str(tmp_path / "bucket")
        return Settings(model="test/model", voices=str(voices_folder), home=folder, backup_dir=bucket)

    def sounds(studio: Served) -> list[bytes]:
        with studio.client() as client:
            return [client.get(path).raise_for_status().content for path in paths]

    paths: list[str] = []
    with serve(settings("first"), FakeEngine.start) as studio:
        project = create_project(studio, items=[{"input": "A part."}], start=True)
        until(studio, project, "done")
        [part] = parts_of(studio, project)
        with studio.client() as client:
            take = client.post("/v1/audio/speech", json={"input": "A take, longer."}).headers["x-request-id"]
        paths += [f"/v1/projects/{project['id']}/takes/{part['chosen']}/audio", f"/v1/takes/{take}/audio"]
        first = sounds(studio)
    assert first[0] != first[1]
    for home in ("first", "second"):  # the same disk, then an empty one
        with serve(settings(home), FakeEngine.start) as studio:
            assert sounds(studio) == first


@pytest.mark.parametrize("content", ["a project", "a dictionary", "an edited bundled voice", "a favourite"])
def test_library_with_anything_of_a_person_does_not_count_as_empty(tmp_path: Path, content: str) -> None:
    old, backup = ProjectLibrary(tmp_path / "old"), Backup(tmp_path / "old", tmp_path / "bucket")
    add(old, "Anna")
    backup.snapshot()
    new = ProjectLibrary(tmp_path / "home")
    voice = new.voices.create(VoiceFields(name="Bert"), [new_sample(wav(tone(0.3)), "words")], EVENT, bundled=True)
    if content == "a project":
        new.projects.create("me", "Mine", "text", [NewPart("Hello.", "")], ProjectSettings())
    elif content == "a dictionary":
        new.pronunciations.add(GLOBAL, Pronunciation("Siobhan", "Shivawn"))
    elif content == "a favourite":
        new.voices.edit(voice.id, VoiceFields(favourite=True))
    else:
        new.voices.edit(voice.id, VoiceFields(description="my favourite"))
    assert Backup(tmp_path / "home", tmp_path / "bucket").restore() is None


def test_snapshots_of_another_library_stay_in_a_folder_that_was_mounted_late(tmp_path: Path) -> None:
    old, bucket = ProjectLibrary(tmp_path / "old"), tmp_path / "bucket"
    add(old, "Anna")
    earlier = Backup(tmp_path / "old", bucket).snapshot()
    bucket.rename(tmp_path / "disk")
    backup = Backup(tmp_path / "home", bucket)
    assert backup.restore() is None
    new = ProjectLibrary(tmp_path / "home")
    shutil.rmtree(bucket)
    (tmp_path / "disk").rename(bucket)
    add(new, "Bert")
    for _ in range(4):
        write(new)
        assert backup._try()
    assert backup.status.error is None and f"another library's {earlier.name}" in str(backup.watch.status.error)
    later = [path.name for path in bucket.glob("backup-*.db") if path != earlier]
    assert sorted(later) == [f"backup-{n}.db" for n in (3, 4, 5)]
    for name in later:
        (bucket / name).unlink()
    assert Backup(tmp_path / "again", bucket).restore() == earlier
    assert names(check(tmp_path / "again")) == {"Anna"}


def test_a_copied_library_and_its_original_keep_their_own_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original, bucket = ProjectLibrary(tmp_path / "home"), tmp_path / "bucket"
    backup, first = Backup(tmp_path / "home", bucket), list[Path]()
    for name in ("Anna", "Bert"):
        add(original, name)
        first.append(backup.snapshot())
    original.store.close()
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    copied, others = ProjectLibrary(tmp_path / "copy"), Backup(tmp_path / "copy", bucket)
    for _ in range(4):
        write(copied)
        assert others._try()
    assert others.watch.status.error is None and [path.name for path in first] == ["backup-1.db", "backup-2.db"]
    assert sorted(path.name for path in bucket.glob("backup-*.db")) == [f"backup-{n}.db" for n in (1, 2, 4, 5, 6)]
    assert backup.snapshot() == first[1], "nothing was written here since"
    shutil.rmtree(tmp_path / "home")
    assert Backup(tmp_path / "home", bucket).restore() == first[1]
    assert "backup-6.db is newer" in caplog.text
    assert names(check(tmp_path / "home")) == {"Anna", "Bert"}
    add(ProjectLibrary(tmp_path / "home"), "Cleo", 3)
    add(copied, "Dora", 4)
    both, compare = list[Path](), filecmp.cmp

    def meanwhile(one: Path, other: Path, shallow: bool) -> bool:
        """The other one makes a snapshot after the audio of this one was copied."""
        monkeypatch.setattr(filecmp, "cmp", compare)
        both.append(others.snapshot())
        return compare(one, other, shallow)

    monkeypatch.setattr(filecmp, "cmp", meanwhile)
    both.append(backup.snapshot())
    for place, snapshot, voice in (("copy", both[0], "Dora"), ("home", both[1], "Cleo")):
        shutil.rmtree(tmp_path / place)
        assert Backup(tmp_path / place, bucket).restore() == snapshot
        restored = check(tmp_path / place)
        assert restored.voices.clip(restored.voices.get(voice).samples[0])


def test_a_space_backs_up_to_its_bucket_if_it_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.settings.SPACE_DATA", tmp_path)
    assert Settings().backup_dir is None
    monkeypatch.setenv("SPACE_ID", "me/studio")
    assert Settings().backup_dir == str(tmp_path / "studio")
    monkeypatch.setattr("studio.settings.SPACE_DATA", tmp_path / "none")
    assert Settings().backup_dir is None

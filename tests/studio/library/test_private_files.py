"""Permissions of the library: only its owner may read it, whatever the umask and its earlier permissions."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.library_command import main
from studio.library import Backup, Library, VoiceFields
from studio.settings import Settings
from tests.studio.clips import WORDS, new_sample, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.worker import stored_take
from tests.studio.server import serve
from tests.studio.sounds import tone, wav

pytestmark = pytest.mark.posix


@pytest.fixture(params=[0o022, 0o000], ids=["umask 022", "umask 000"], autouse=True)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def readable_by_others(folder: Path, *excluded: str) -> dict[str, str]:
    """Octal modes of a folder and the paths in it that other users may access, except names in ``excluded``.

    Files that a running studio removes in the meantime are left out.
    """
    modes = {}
    for path in [folder, *(path for path in folder.rglob("*") if path.name not in excluded)]:
        with contextlib.suppress(FileNotFoundError):
            if mode(path) & 0o077:
                modes[str(path.relative_to(folder))] = oct(mode(path))
    return modes


def create_library(home: Path) -> Library:
    """A library with a voice and a take."""
    library = Library(home)
    library.voices.create(VoiceFields(name="Anna"), [new_sample(wav(tone(0.3)), "her words")])
    library.takes.add(stored_take("req_1", "words", "anna"), b"sound")
    return library


def make_readable(home: Path) -> None:
    """Set the permissions that an earlier version of the studio used."""
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "users of this machine" in record.getMessage()]


def test_new_library_is_private_to_its_owner(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "new" / "home"
    library = create_library(home)
    names = {path.name for path in home.iterdir()}
    assert {"library.db", "library.db-wal", "library.db-shm", "reserve", "audio"} <= names
    assert readable_by_others(home) == {}
    assert library.voices.get("anna").samples, "it can be read all the same"
    assert warnings(caplog) == []


def test_readable_library_becomes_private_when_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    library = create_library(home)  # still open, so that SQLite's log and its index exist too
    (home / "library.db.old").write_bytes(b"a copy")
    (home / "library.db.older").mkdir()
    (home / "sessions").mkdir()
    (home / "sessions" / "digest").write_text("key")
    (home / "models" / "whisper").mkdir(parents=True)
    (home / "update.json").touch()  # as STUDIO_UPDATE_NOTICE writes it
    make_readable(home)
    again = Library(home)
    assert readable_by_others(home, "models", "whisper", "update.json") == {}
    assert mode(home / "library.db.older") == 0o700, "a folder can still be entered"
    assert mode(home / "models" / "whisper") == 0o755, "a published model is nobody's secret"
    assert again.voices.get("anna") == library.voices.get("anna")
    assert warnings(caplog) == []


def test_folder_with_other_files_keeps_its_permissions_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    (home / "notes.txt").write_text("somebody's")
    (home / "notes.txt").chmod(0o644)
    create_library(home)
    assert readable_by_others(home) == {".": "0o755", "notes.txt": "0o644"}
    assert len(warnings(caplog)) == 1 and "notes.txt" in warnings(caplog)[0]


def test_a_shared_folder_keeps_its_permissions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o1777)
    create_library(home)
    assert readable_by_others(home) == {".": "0o1777"}
    assert len(warnings(caplog)) == 1 and "sticky" in warnings(caplog)[0]


def test_another_users_folder_keeps_its_permissions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: home.stat().st_uid + 1)
    create_library(home)
    assert readable_by_others(home) == {".": "0o755"}
    assert len(warnings(caplog)) == 1 and "another user" in warnings(caplog)[0]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EROFS, errno.ENOTSUP])
def test_file_system_without_permissions_causes_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    home = tmp_path / "home"
    create_library(home)
    make_readable(home)

    def refused(path: object, mode: int, **options: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("os.chmod", refused)
    assert Library(home).voices.get("anna")
    assert len(warnings(caplog)) == 1 and os.strerror(number) in warnings(caplog)[0]


def test_symlink_out_of_the_library_is_not_followed(tmp_path: Path) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.write_bytes(b"not the studio's")
    outside.chmod(0o644)
    create_library(home)
    (home / "library.db.link").symlink_to(outside)
    Library(home)
    assert mode(outside) == 0o644


def test_library_behind_a_symlink_is_private_too(tmp_path: Path) -> None:
    home, link = tmp_path / "home", tmp_path / "link"
    create_library(home)
    make_readable(home)
    link.symlink_to(home, target_is_directory=True)
    Library(link)
    assert readable_by_others(home) == {}


def test_backup_is_private_and_its_folder_keeps_its_permissions(tmp_path: Path) -> None:
    home, bucket = tmp_path / "home", tmp_path / "bucket"
    bucket.mkdir()
    bucket.chmod(0o755)
    create_library(home)
    Backup(home, bucket).snapshot()
    assert readable_by_others(bucket) == {".": "0o755"}
    Backup(tmp_path / "restored", bucket).restore()
    assert readable_by_others(tmp_path / "restored") == {}


def test_backups_of_an_earlier_version_become_private(tmp_path: Path) -> None:
    home, bucket = tmp_path / "home", tmp_path / "bucket"
    create_library(home)
    backup = Backup(home, bucket)
    backup.snapshot()
    make_readable(bucket)
    backup.start()
    backup.stop()
    assert readable_by_others(bucket) == {".": "0o755"}


def test_running_studio_writes_only_private_files(tmp_path: Path, voices_folder: Path) -> None:
    home = tmp_path / "home"
    settings = Settings(model="test/model", voices=str(voices_folder), home=str(home))
    with serve(settings, FakeEngine.start) as served, served.client() as client:
        assert client.post("/v1/audio/speech", json={"input": "a"}).status_code == 200
        assert readable_by_others(home) == {}
    assert readable_by_others(home) == {}


def test_command_line_keeps_the_library_private(tmp_path: Path) -> None:
    home, clip, pack = tmp_path / "home", tmp_path / "eve.wav", tmp_path / "eve.fishvoice"
    clip.write_bytes(spoken())
    assert main(["voices", "add", "Eve", str(clip), "--text", WORDS, "--home", str(home)]) == 0
    assert readable_by_others(home) == {}
    make_readable(home)
    assert main(["voices", "export", "eve", str(pack), "--home", str(home)]) == 0
    assert readable_by_others(home) == {}
    umask = os.umask(0)
    os.umask(umask)
    assert mode(pack) == 0o666 & ~umask, "an export is a file like any other of its owner's"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_in_a_library_belongs_to_its_owner(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    home = tmp_path / "new" / "home"
    library = Library(home)  # a command with sudo, for a service that runs as another user
    library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    assert {(path.stat().st_uid, path.stat().st_gid) for path in tmp_path.rglob("*")} == {(12345, 12345)}

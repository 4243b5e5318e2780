"""Backs up the library to another folder, such as a Space's bucket: snapshots after writes, and restoring them.

The folder may be slow, show changes late, or be append-only: it receives complete files, one after the other, renamed
to their final names last.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import logging
import re
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studio.errors import REFUSALS
from studio.library.audio_files import AudioFiles
from studio.library.client_files import TemporaryFolder
from studio.library.private_files import (
    make_copies_private,
    make_private_folder,
    remove_abandoned,
    whole_file,
    write_whole,
)
from studio.library.schema import AUDIO_OWNERS, OWN_CONTENT
from studio.library.store import named_files
from studio.supervisor import HealthCheck

log = logging.getLogger(__name__)

SETTLE_SECONDS = 30.0
"""A snapshot is taken after this long without a write."""
LONGEST_SECONDS = 300.0
"""A snapshot is taken at the latest this long after a write."""
POLL_SECONDS = 1.0
KEPT = 3
"""Number of snapshots kept, newest first."""

_SNAPSHOT = re.compile(r"backup-([0-9]+)\.db(?:\.[0-9a-f]{8}\.part)?")
"""Also an unfinished one."""


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """``last``: Unix time of the newest snapshot; ``pending``: written to since; ``error``: of the last attempt.

    ``left_out``: audio missing from that snapshot because it is damaged or gone from the library, by owner.
    """

    last: float | None
    pending: bool
    error: str | None
    left_out: tuple[str, ...] = ()


class Backup:
    """Backs up one library to ``folder``; its copies elsewhere may use the same one, and keep their own snapshots."""

    def __init__(self, home: Path, folder: Path, settle: float = SETTLE_SECONDS, poll: float = POLL_SECONDS) -> None:
        self.folder = folder
        self._database = home / "library.db"
        self._place = zlib.crc32(bytes(home.resolve())) >> 1 | 1
        make_private_folder(home)
        self._files = AudioFiles(home / "audio")
        self._settle, self._poll = settle, poll
        self._last: float | None = None
        self._pending = False
        self._error: str | None = None
        self._left_out: tuple[str, ...] = ()
        self._remark = ""  # what the owner should do about other snapshots in the folder
        self.watch = HealthCheck("backup")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="backup", daemon=True)

    @property
    def status(self) -> BackupStatus:
        return BackupStatus(self._last, self._pending, self._error, self._left_out)

    def restore(self) -> Path | None:
        """Restore the newest complete snapshot, best of this place, unless the library has content; returns its name.

        Call it before the library is opened. Raises OSError when the folder cannot be read, the library gets content
        meanwhile, or the folder is a library's: a snapshot removes the audio that no snapshot names.
        """
        make_private_folder(self.folder)
        remove_abandoned(self._database.parent.glob("library.db.*.part"))  # of a restore that was killed
        if self.folder.samefile(self._database.parent) or (self.folder / self._database.name).exists():
            raise OSError("it is a library's own folder; choose another one")
        if self._has_content():
            return None
        for snapshot in self._snapshots():
            try:
                self._restore_snapshot(snapshot)
            except (sqlite3.Error, *REFUSALS) as error:
                log.warning("the backup %s cannot be used: %s", snapshot, error)
                continue
            log.warning("the library was empty and has been restored from %s", snapshot)
            if (newest := max(self._snapshots(), key=_number)) != snapshot:
                remedy = "to restore it, move library.db and the older ones away before a start"
                log.warning("%s is newer, but damaged or of the library in another folder: %s", newest, remedy)
            return snapshot
        return None

    def start(self) -> None:
        """Watch the library, which must be open by now, and follow its writes."""
        self._last = max((path.stat().st_mtime for path in self._snapshots()), default=None)
        self._thread.start()

    def stop(self) -> None:
        """Take the last snapshot, if anything was written since the previous one. Blocking."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def snapshot(self) -> Path:
        """Copy the library, unless the newest snapshot equals it; files that cannot be read are listed in `status`.

        Raises OSError, and sqlite3.Error, also for a damaged library; then all earlier snapshots stay.
        """
        newest = next(iter(self._snapshots()), None)
        with contextlib.closing(TemporaryFolder()) as scratch:
            copy = scratch.path() / "library.db"
            copies = AudioFiles(self.folder / "audio")
            digests = _copy_database(self._database, copy, self._place)
            self._left_out = self._owners(self._copy_files(digests, copies))
            if newest and filecmp.cmp(newest, copy, shallow=False):
                target = newest  # so that starts without writes push no older one out
            else:  # numbered only now: the studio of a copy may have made one meanwhile, or be making one
                last = max(map(_number, self.folder.glob("backup-*.db*")), default=0)
                target = self.folder / f"backup-{last + 1}.db"
                with copy.open("rb") as content:
                    write_whole(target, content)
        self._last = time.time()
        self._prune(copies)
        return target

    def _copy_files(self, digests: set[str], copies: AudioFiles) -> list[str]:
        """Copy the audio that the backup lacks; returns the files that could not be read."""
        unread = []
        for digest in sorted(digests):
            copy = copies.path(digest)
            if _is_whole(copy, self._files.path(digest)):
                continue
            try:
                data = self._files.read(digest)
            except (*REFUSALS, OSError):  # only this file is unreadable
                unread.append(digest)
            else:
                copies.put(data)
        return unread

    def _owners(self, digests: list[str]) -> tuple[str, ...]:
        """The owners of these files; files that were removed from the library meanwhile have none."""
        with contextlib.closing(sqlite3.connect(self._database)) as library:
            query = f"{' union all '.join(AUDIO_OWNERS)} limit 1"
            rows = [library.execute(query, {"d": digest}).fetchone() for digest in digests]
        return tuple(row[0] for row in rows if row is not None)

    def _run(self) -> None:
        with self.watch.guarded(f"the permissions of the backup in {self.folder} cannot be checked"):
            make_copies_private(self.folder, self._snapshots())
        while True:
            with self.watch.guarded("the library cannot be watched for its backup"):
                self._follow()
                return
            self._pending = True
            if self._stopping.wait(max(self._settle, self._poll)):
                self._try()
                return

    def _follow(self) -> None:
        """Take snapshots after writes until the studio stops, and then the last one."""
        with contextlib.closing(sqlite3.connect(self._database)) as connection:
            version = None  # what was written before the start may not be in a snapshot: a crash, a command
            first_write = latest_write = 0.0  # times of the first and the latest write since the last snapshot
            while not self._stopping.wait(self._poll):
                new_version, now = _version(connection), time.monotonic()
                if new_version != version:
                    version, latest_write = new_version, now
                    first_write = first_write if self._pending else now
                    self._pending = True
                if self._pending and (now - latest_write >= self._settle or now - first_write >= LONGEST_SECONDS):
                    first_write = latest_write = now  # a failed snapshot is retried after the same time
                    self._pending = not self._try()
            if self._pending or _version(connection) != version:
                self._try()

    def _try(self) -> bool:
        with self.watch.guarded(f"the library could not be backed up to {self.folder}"):
            self.snapshot()
            self._error = None
            if self._left_out:
                owners = f"{self._left_out[0]}{', and others' if self._left_out[1:] else ''}"
                self.watch.report_failure(f"{len(self._left_out)} damaged files are left out of the backup: {owners}")
            elif self._remark:
                self.watch.report_failure(self._remark)
            else:
                self.watch.report_success()
            return True
        self._error = self.watch.status.error
        return False

    def _has_content(self) -> bool:
        for query in OWN_CONTENT if self._database.exists() else ():
            try:
                with contextlib.closing(sqlite3.connect(self._database)) as library:
                    if library.execute(f"{query} limit 1").fetchone():
                        return True
            except sqlite3.DatabaseError as error:
                if "no such table" not in str(error):  # as after an interrupted first start
                    return True
        return False

    def _restore_snapshot(self, snapshot: Path) -> None:
        """Copy the audio first and the database last, in one rename: if interrupted, it can start again."""
        copies = AudioFiles(self.folder / "audio")
        with whole_file(self._database) as copy:
            copy.writelines(_pieces(snapshot))
            copy.flush()
            with contextlib.closing(_unchanging(Path(copy.name))) as library:
                _check_integrity(library)
                digests = named_files(library)
            missing = 0
            for digest in digests:
                try:
                    self._files.put(copies.read(digest))
                except REFUSALS:
                    missing += 1
            if missing:
                log.warning("%d of %d audio files are missing from the backup %s", missing, len(digests), snapshot)
            if self._has_content():  # by a command, or another studio: it took minutes to copy the audio
                raise OSError("the library was used meanwhile: start again, or move library.db away, to restore it")
            for suffix in ("-wal", "-shm"):
                self._database.with_name(self._database.name + suffix).unlink(missing_ok=True)

    def _snapshots(self) -> list[Path]:
        """Those of this place first, the newest first."""
        paths = (path for path in self.folder.glob("backup-*.db") if _number(path) and path.is_file())
        return sorted(paths, key=lambda path: (_place(path) == self._place, _number(path)), reverse=True)

    def _prune(self, copies: AudioFiles) -> None:
        """Remove snapshots that are too old, and audio that no other snapshot names; no audio if one cannot be read.

        Those of another library stay: this one may be new because the folder was not there yet at its start.
        """
        own, kept, obsolete, digests = None, 0, list[Path](), set[str]()
        self._remark = ""
        for snapshot in self._snapshots():
            try:
                with contextlib.closing(_unchanging(snapshot)) as library:
                    own = own or _birth(library)
                    is_own = _birth(library) == own
                    is_of_here = is_own and _place(snapshot) in (0, self._place)
                    if is_of_here and kept == KEPT:
                        obsolete.append(snapshot)
                        continue
                    digests |= named_files(library)
                kept += is_of_here
                if not is_own:
                    remedy = "move it away; to restore it, move library.db and the other backups away before a start"
                    self._remark = f"the backup folder also has another library's {snapshot.name}: {remedy}"
            except sqlite3.Error as error:  # its audio is unknown
                log.warning("the backup %s cannot be read: %s", snapshot, error)
                self._remark = f"{snapshot.name} in the backup folder is damaged: remove it; its audio stays until then"
                digests |= {name for name, _ in copies.everything()}
        for path in obsolete:
            path.unlink()
        # A younger one may belong to a snapshot that the studio of a copy has not written yet.
        remove_abandoned(path for name, path in copies.everything() if name not in digests)
        remove_abandoned(self.folder.glob("backup-*.db.*.part"))


def _copy_database(source: Path, target: Path, place: int) -> set[str]:
    """A consistent copy of a database that others write to, as one file with its place; returns the audio it names.

    Raises sqlite3.Error for a damaged one, whose snapshots would soon replace the good ones, and OSError without room.
    """
    with contextlib.closing(sqlite3.connect(source)) as original, contextlib.closing(sqlite3.connect(target)) as copy:
        try:
            original.backup(copy)
            copy.execute("pragma journal_mode = delete")
            copy.execute(f"pragma application_id = {place:d}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
            reason = "the folder for temporary files (TMPDIR) has no room for a copy of library.db"
            raise OSError(errno.ENOSPC, reason, str(target.parent)) from error
        _check_integrity(copy)
        return named_files(copy)


def _pieces(snapshot: Path) -> Iterator[bytes]:
    """Its content. Raises sqlite3.DatabaseError if its disk cannot read it, OSError if it cannot be opened."""
    with snapshot.open("rb") as file:
        try:
            while piece := file.read(1 << 20):
                yield piece
        except OSError as error:
            raise sqlite3.DatabaseError(f"its disk cannot read it: {error.strerror}") from error


def _unchanging(path: Path) -> sqlite3.Connection:
    """Opens a database to which nobody writes, without files beside it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _is_whole(copy: Path, original: Path) -> bool:
    """Whether the backup has a file. Sizes are compared, because a folder can lose a write and keep the name."""
    size = copy.stat().st_size if copy.is_file() else -1
    return size == original.stat().st_size if original.is_file() else size > 0


def _check_integrity(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError."""
    verdict = connection.execute("pragma integrity_check").fetchone()[0]
    if verdict != "ok":
        raise sqlite3.DatabaseError(verdict)


def _birth(connection: sqlite3.Connection) -> str:
    """When the library was made, to the microsecond: all its snapshots have this in common."""
    return str(connection.execute("select min(applied_at) from _sqlite_migrations").fetchone()[0])


def _place(snapshot: Path) -> int:
    """Identifies the folder of the library that it is of; 0 if it is older than that, or cannot be read."""
    with contextlib.suppress(OSError), snapshot.open("rb") as file:
        return int.from_bytes(file.read(72)[68:])
    return 0


def _number(path: Path) -> int:
    match = _SNAPSHOT.fullmatch(path.name)
    return int(match[1]) if match else 0


def _version(connection: sqlite3.Connection) -> int:
    """A number that changes whenever another connection has written."""
    return int(connection.execute("pragma data_version").fetchone()[0])

"""The library's SQLite file: a connection for each call, write-ahead log, one writer at a time, and its audio files."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import ParamSpec, TypeVar

from studio.errors import LibraryFull, LibraryUnavailable
from studio.library.audio_files import AudioFiles
from studio.library.disk_reserve import NO_ROOM, DiskReserve, is_full
from studio.library.migrations import MIGRATIONS
from studio.library.private_files import make_library_private, make_private_file, make_private_folder
from studio.library.sqlite import Database, select

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Result = TypeVar("Result")

BUSY_SECONDS = 60
"""How long a call waits for another writer."""
MOST_WRITERS = 16
"""So many calls wait for another writer; each has a thread of those that readers need too."""
WRITER_SECONDS = 2.0
"""After which a call that would be one more is refused."""
CHECKPOINT_SECONDS = 2.0
"""How long a stop waits for other readers and writers."""
LOG_BYTES = 8 * 2**20
"""The write-ahead log keeps its room, which a full disk can then still be written to; more than this is given back."""
IDLE_CONNECTIONS = 8
"""So many are kept open for the calls to come: opening one takes longer than most of what is then asked."""
DAMAGED = (
    "is damaged; move library.db and the files named like it out of its folder, and put a backup in their place (with "
    "STUDIO_BACKUP_DIR the next start does that)"
)
TROUBLES = {
    "locked": "is locked by another program; close whatever has it open, and try again",
    "readonly": "cannot be written; allow the studio's user to write there, or set STUDIO_HOME to another folder",
    "unable to open": "cannot be opened; check that its folder exists and can be read and written",
    "disk is full": "has no room left on its disk; delete something or free some space, and try again",
    "disk I/O": "cannot be read from its disk; check the disk, or restore a backup",
    "image is malformed": DAMAGED,
    "not a database": DAMAGED,
}
"""What SQLite says, and what it means to the owner of the library."""
SYSTEM_TROUBLES = dict.fromkeys(NO_ROOM, "disk is full") | {
    errno.EACCES: "readonly",
    errno.EROFS: "readonly",
    errno.EIO: "disk I/O",
}
"""What the system says of an audio file, in SQLite's words."""

_NAMING = {"samples": "clip", "takes": "audio", "consents": "recording"}
"""Tables and their columns with the digests of audio files; what none of them names is cleared away, and not copied."""
_REFERRED = " union all ".join(f"select 1 from {table} where {column} = :d" for table, column in _NAMING.items())
_REFERRED += " limit 1"


def named_files(connection: sqlite3.Connection) -> set[str]:
    """The digests of all audio files that a library names, or a copy that an earlier version has made."""
    is_old = connection.execute("select 1 from sqlite_master where name = 'part_takes'").fetchone()  # until m025
    naming = _NAMING | ({"part_takes": "audio"} if is_old else {})
    named = " union ".join(f"select {column} from {table}" for table, column in naming.items())
    return {row[0] for row in connection.execute(named) if row[0]}


_WRITING = "begin immediate"
"""Begins a transaction that has the write lock from its first statement."""
_VIEW: ContextVar[tuple[Store | None, Database | None]] = ContextVar("view", default=(None, None))
"""The store of which this context reads one view, and that."""


class _Connection(sqlite3.Connection):
    can_write = True
    """Whether the file could be written as it was opened: SQLite then opens it for reading, and that stays so."""


class Store:
    """Opens `home`, brings its schema up to date and clears away what a crash may have left."""

    def __init__(self, home: Path) -> None:
        make_private_folder(home)
        self.home = home
        self.path = home / "library.db"
        self.files = AudioFiles(home / "audio")
        self.make_room: Callable[[], bool] = lambda: False
        """Called when the disk is found full: gives up some of the trash; whether there was any."""
        self._reserve = DiskReserve(home / "reserve")
        self._idle: list[_Connection] = []
        self._writers = threading.Semaphore(MOST_WRITERS)
        with self._reserve.borrowed(), self.explained():
            make_private_file(self.path)  # SQLite gives its log the permissions of the database
            make_library_private(home)
            self._stay_open()
            with self.writing() as db:  # the lock first: two starts at once must not both migrate
                _check_version(db)
                MIGRATIONS.apply(db)
                self._clear_orphans(db)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Say what is wrong, and what to do, in the place of SQLite's words; where it lies, to the log alone.

        Raises LibraryUnavailable, LibraryFull.
        """
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            meaning = self._meaning(error)
            if meaning is None:
                raise
            log.warning("the library %s %s", self.path, meaning)
            kind = LibraryFull if meaning == TROUBLES["disk is full"] else LibraryUnavailable
            raise kind(f"the library {meaning}") from error

    def _meaning(self, error: sqlite3.DatabaseError | OSError) -> str | None:
        """What an error means to the owner of the library; None: nothing that is known."""
        if isinstance(error, OSError):
            return TROUBLES.get(SYSTEM_TROUBLES.get(error.errno or 0, ""))
        words = next((words for words in TROUBLES if words in str(error)), "")
        if words in ("unable to open", "disk I/O") and is_full(self.home):  # where it has no room to begin with
            words = "disk is full"
        return TROUBLES.get(words)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """One consistent view of the library. Raises LibraryUnavailable."""
        store, view = _VIEW.get()
        if store is self and view is not None:
            yield view
            return
        with self.explained(), self._lent("begin") as connection:
            yield Database(connection, recursive_triggers=False)

    @contextlib.contextmanager
    def one_view(self) -> Iterator[None]:
        """All that is read in this block is as it was at one moment, and none of it waits for another program.

        Raises LibraryUnavailable, at once where another has locked the library.
        """
        with self.reading() as db:
            db.execute("pragma busy_timeout = 0")
            before = _VIEW.set((self, db))
            try:
                yield
            finally:
                _VIEW.reset(before)
                db.execute(f"pragma busy_timeout = {int(1000 * BUSY_SECONDS)}")

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """A transaction that has the write lock from its first statement: all of it is kept, or nothing.

        Audio files that were put meanwhile go with it. Raises LibraryUnavailable, LibraryFull.
        """
        with self._making_room(), self._transaction() as db:
            yield db

    @contextlib.contextmanager
    def adding(self, sounds: Sequence[Sequence[bytes]]) -> Iterator[tuple[Database, list[str]]]:
        """As `writing`, with these as audio files, each given in pieces; their digests.

        They are written before the lock is taken, several at once. Raises LibraryUnavailable, LibraryFull.
        """
        with (
            self._making_room(),
            self.explained(),
            self.files.drafted(sounds) as drafts,
            self._transaction() as db,
        ):
            yield db, self.files.keep(drafts)

    @contextlib.contextmanager
    def _making_room(self) -> Iterator[None]:
        try:
            yield
        except LibraryFull as full:
            with contextlib.suppress(LibraryUnavailable):
                full.has_made_room = self.make_room()
            raise

    @contextlib.contextmanager
    def freeing(self) -> Iterator[Database]:
        """As `writing`, for what makes room: it may have what was set aside for that. Raises LibraryUnavailable."""
        with self._reserve.borrowed() as is_needed:
            with self._transaction() as db:
                yield db
            if is_needed:  # else the log would grow by every deletion, until it has all that was set aside
                with contextlib.suppress(sqlite3.OperationalError), self._lent() as connection:
                    connection.execute("pragma wal_checkpoint(passive)")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Database]:
        added: list[str] = []
        try:
            with self.explained(), self._writer(), self._lent(_WRITING) as connection:
                self.files.added.clear()
                try:
                    yield Database(connection, recursive_triggers=False)
                    connection.commit()
                except BaseException:
                    added = list(self.files.added)
                    connection.rollback()
                    raise
        except BaseException:
            if added:
                self.drop_unreferred(added)
            raise

    @contextlib.contextmanager
    def _writer(self) -> Iterator[None]:
        """One of MOST_WRITERS. Raises sqlite3.OperationalError."""
        if not self._writers.acquire(timeout=WRITER_SECONDS):
            raise sqlite3.OperationalError("database is locked")
        try:
            yield
        finally:
            self._writers.release()

    def drop_unreferred(self, digests: Iterable[str]) -> None:
        """Remove those audio files that no row names any more. Call it after the rows are gone for good."""
        with self.freeing() as db:
            for digest in digests:
                if not list(select(db, _REFERRED, {"d": digest})):
                    self.files.remove(digest)

    def checkpoint(self) -> None:
        """Put the log into library.db, so that a copy of that alone is whole; readers may prevent it. Blocking."""
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect()) as connection:
            connection.execute(f"pragma busy_timeout = {int(1000 * CHECKPOINT_SECONDS)}")
            connection.execute("pragma wal_checkpoint(truncate)")

    def _clear_orphans(self, db: Database) -> None:
        known = named_files(db.conn)
        for name, path in self.files.everything():
            if name not in known:
                path.unlink()

    def _stay_open(self) -> None:
        """Hold one connection as long as the store lives.

        The last one to close takes the log and its index away, and a full disk has no room to make them again: then
        nothing could be read any more.
        """
        connection = self._connect()
        self._opened = self._file()
        weakref.finalize(self, _close_all, [connection], self._idle)
        connection.execute("pragma journal_mode = wal")
        connection.execute("select 1 from sqlite_master").fetchone()

    @contextlib.contextmanager
    def _lent(self, begin: str = "") -> Iterator[sqlite3.Connection]:
        """A connection that nobody else has meanwhile; ``begin`` begins a transaction, which is over afterwards."""
        if self._file() != self._opened:  # what is written to a file that is gone would be lost without a word
            raise sqlite3.OperationalError("unable to open database file: it was removed or replaced")
        connection = self._free(begin)
        is_well = True
        try:
            connection.execute(begin)
            yield connection
        except (sqlite3.Error, OSError):
            is_well = False
            raise
        finally:
            if is_well:
                connection.rollback()
            if is_well and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
            else:
                connection.close()

    def _free(self, begin: str) -> _Connection:
        """One of the idle connections, if it is of use, else a new one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connect()
            if connection.can_write or begin != _WRITING:
                return connection
            connection.close()

    def _file(self) -> tuple[int, int] | None:
        """Which file it is, whatever it is called; None where there is none."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self) -> _Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, check_same_thread=False, factory=_Connection)
        connection.can_write = os.access(self.path, os.W_OK)
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
        connection.execute(f"pragma journal_size_limit = {LOG_BYTES}")
        return connection


def _check_version(db: Database) -> None:
    """Raises LibraryUnavailable for tables of which this version knows nothing."""
    known = {migration.name for migration in MIGRATIONS.pending(Database(memory=True))}
    if newer := {migration.name for migration in MIGRATIONS.applied(db)} - known:
        log.warning("the library has tables of a newer version: %s", ", ".join(sorted(newer)))
        raise LibraryUnavailable(
            "the library was last used by a newer version of the studio; update the studio, or restore a backup that "
            "this version has made"
        )


def once_more_with_room(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have a method of a repository try again where the disk was full and what was deleted has made room by now."""

    @functools.wraps(method)
    def trying(*values: Given.args, **named: Given.kwargs) -> Result:
        while True:
            try:
                return method(*values, **named)
            except LibraryFull as full:
                if not full.has_made_room:
                    raise

    return trying


def _close_all(*lists: list[_Connection]) -> None:
    for connection in itertools.chain(*lists):
        connection.close()

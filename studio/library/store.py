"""The library's SQLite file and audio files: a connection per call, one writer at a time, help for a full disk."""

from __future__ import annotations

import contextlib
import errno
import functools
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

SYNCHRONOUS = "full"
"""SQLite's `pragma synchronous`: a commit waits for the disk, so that it survives a loss of power."""
BUSY_SECONDS = 60
"""Seconds that a call waits for another writer."""
DATABASE = "library.db"
MOST_WRITERS = 16
"""Maximum calls that wait for another writer; each occupies a thread that readers need too."""
WRITER_SECONDS = 2.0
"""Seconds after which further calls are refused."""
CHECKPOINT_SECONDS = 2.0
"""Seconds that a stop waits for other readers and writers."""
LOG_BYTES = 8 * 2**20
"""Bytes that the write-ahead log keeps, so that a full disk can still be written to; more is freed."""
IDLE_CONNECTIONS = 8
"""Idle connections kept open for later calls: opening one takes longer than most queries."""
DAMAGED = (
    "is damaged; move library.db and the files named like it out of its folder, and put a backup in their place (with "
    "STUDIO_BACKUP_DIR the next start does that)"
)
TROUBLES = {
    "locked": "is locked by another program; close that program, and try again",
    "readonly": "cannot be written; allow the studio's user to write there, or set STUDIO_HOME to another folder",
    "unable to open": "cannot be opened; check that its folder exists and can be read and written",
    "disk is full": "has no room left on its disk; delete something or free some space, and try again",
    "disk I/O": "cannot be read from its disk; check the disk, or restore a backup",
    "image is malformed": DAMAGED,
    "not a database": DAMAGED,
}
"""SQLite's messages, and their meaning for the library's owner."""
SYSTEM_TROUBLES = dict.fromkeys(NO_ROOM, "disk is full") | {
    errno.EACCES: "readonly",
    errno.EROFS: "readonly",
    errno.EIO: "disk I/O",
}
"""The system's errors with audio files, as SQLite's messages."""

_FILE_COLUMNS = {"samples": "clip", "takes": "audio", "consents": "recording"}
"""Tables and their columns with digests of audio files; files that none of them names are removed, and not copied."""
_REFERRED = " union all ".join(f"select 1 from {table} where {column} = :d" for table, column in _FILE_COLUMNS.items())
_REFERRED += " limit 1"


def named_files(connection: sqlite3.Connection) -> set[str]:
    """The digests of all audio files named in a library, or in a copy made by an earlier version."""
    is_old = connection.execute("select 1 from sqlite_master where name = 'part_takes'").fetchone()  # until m025
    columns = _FILE_COLUMNS | ({"part_takes": "audio"} if is_old else {})
    query = " union ".join(f"select {column} from {table}" for table, column in columns.items())
    return {row[0] for row in connection.execute(query) if row[0]}


_WRITING = "begin immediate"
"""Begins a transaction that has the write lock from its first statement."""
_VIEW: ContextVar[tuple[Store | None, Database | None]] = ContextVar("view", default=(None, None))
"""The store of which this context has a consistent view, and its connection."""


class _Connection(sqlite3.Connection):
    can_write = True
    """Whether the file was writable when it was opened; otherwise SQLite opens it for reading, permanently."""
    is_writing = False
    """Whether its transaction has the write lock."""


class Store:
    """Opens `home`, updates its schema and removes what a crash may have left."""

    def __init__(self, home: Path) -> None:
        make_private_folder(home)
        self.home = home
        self.path = home / DATABASE
        self.files = AudioFiles(home / "audio")
        self.make_room: Callable[[], bool] = lambda: False
        """Called when the disk is full: removes part of the trash; returns whether there was any."""
        self._reserve = DiskReserve(home / "reserve")
        self._idle: dict[bool, list[_Connection]] = {True: [], False: []}
        """By whether they wait for another program's lock. Views that never wait open no connection either."""
        self._writers = threading.Semaphore(MOST_WRITERS)
        with self._reserve.borrowed(), self.explain_errors():
            make_private_file(self.path)  # SQLite gives its log the permissions of the database
            make_library_private(home)
            self._stay_open()
            with self.writing() as db:  # the lock first: two starts at once must not both migrate
                _check_version(db)
                MIGRATIONS.apply(db)
                self._clear_orphans(db)

    @contextlib.contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Raise an error that says what is wrong and what to do, instead of SQLite's message; only the log has the
        path.

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
        """The meaning of an error for the library's owner; None if unknown."""
        if isinstance(error, OSError):
            return TROUBLES.get(SYSTEM_TROUBLES.get(error.errno or 0, ""))
        phrase = next((phrase for phrase in TROUBLES if phrase in str(error)), "")
        if phrase in ("unable to open", "disk I/O") and is_full(self.home):  # if it has no room from the start
            phrase = "disk is full"
        return TROUBLES.get(phrase)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """One consistent view of the library. Raises LibraryUnavailable."""
        store, view = _VIEW.get()
        if store is self and view is not None:
            yield view
            return
        with self.explain_errors(), self._connection("begin") as connection:
            yield Database(connection, recursive_triggers=False)

    @contextlib.contextmanager
    def one_view(self) -> Iterator[None]:
        """A consistent view in this block, which never waits for another program.

        Raises LibraryUnavailable, at once if another program has locked the library.
        """
        with self.explain_errors(), self._connection("begin", may_wait=False) as connection:
            token = _VIEW.set((self, Database(connection, recursive_triggers=False)))
            try:
                yield
            finally:
                _VIEW.reset(token)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """A transaction with the write lock from its first statement: all of it is stored, or nothing.

        Audio files put in the block are part of it. Raises LibraryUnavailable, LibraryFull.
        """
        with self._making_room(), self._transaction() as db:
            yield db

    @contextlib.contextmanager
    def adding(self, contents: Sequence[Sequence[bytes]]) -> Iterator[tuple[Database, list[str]]]:
        """Like `writing`, with new audio files, each given in pieces; returns their digests.

        They are written before the lock is taken, several at once. Raises LibraryUnavailable, LibraryFull.
        """
        with (
            self._making_room(),
            self.explain_errors(),
            self.files.drafted(contents) as drafts,
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
        """Like `writing`, for calls that free room: may use the disk reserve. Raises LibraryUnavailable."""
        with self._reserve.borrowed() as is_needed:
            with self._transaction() as db:
                yield db
            if is_needed:  # else every deletion would grow the log, until it fills the reserve
                with contextlib.suppress(sqlite3.OperationalError), self._connection() as connection:
                    connection.execute("pragma wal_checkpoint(passive)")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Database]:
        added: list[str] = []
        try:
            with self.explain_errors(), self._writer(), self._connection(_WRITING) as connection:
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
        """Become one of MOST_WRITERS. Raises sqlite3.OperationalError."""
        if not self._writers.acquire(timeout=WRITER_SECONDS):
            raise sqlite3.OperationalError("database is locked")
        try:
            yield
        finally:
            self._writers.release()

    def drop_unreferred(self, digests: Iterable[str]) -> None:
        """Remove the audio files that no row names now. Call it after the rows are gone for good."""
        with self.freeing() as db:
            for digest in digests:
                if not list(select(db, _REFERRED, {"d": digest})):
                    self.files.remove(digest)

    def close(self) -> None:
        """Merge the log into library.db, so that a copy of that file alone is complete, and close all connections.

        Readers may prevent the merge. A later call opens a connection again. Blocking.
        """
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect()) as connection:
            connection.execute(f"pragma busy_timeout = {int(1000 * CHECKPOINT_SECONDS)}")
            connection.execute("pragma wal_checkpoint(truncate)")
        _close_all(self._open_connections, *self._idle.values())

    def _clear_orphans(self, db: Database) -> None:
        digests = named_files(db.conn)
        for name, path in self.files.everything():
            if name not in digests:
                path.unlink()

    def _stay_open(self) -> None:
        """Keep one connection open until the store is closed.

        Closing the last one deletes the log and its index, which a full disk has no room to create again: then
        nothing could be read.
        """
        connection = self._connect()
        self._opened_file = self._file_identity()
        self._open_connections = [connection]
        weakref.finalize(self, _close_all, self._open_connections, *self._idle.values())
        connection.execute("pragma journal_mode = wal")
        connection.execute("select 1 from sqlite_master").fetchone()

    @contextlib.contextmanager
    def _connection(self, begin: str = "", may_wait: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection for exclusive use; ``begin`` starts a transaction, which ends with the context.

        ``may_wait``: for BUSY_SECONDS, if another program has locked the library.
        """
        if self._file_identity() != self._opened_file:  # writes to a deleted file would be lost silently
            raise sqlite3.OperationalError("unable to open database file: it was removed or replaced")
        idle = self._idle[may_wait]
        connection = self._idle_connection(begin, may_wait)
        connection.is_writing = begin == _WRITING
        is_usable = True
        try:
            connection.execute(begin)
            yield connection
        except (sqlite3.Error, OSError):
            is_usable = False
            raise
        finally:
            if is_usable:
                connection.rollback()
            if is_usable and len(idle) < IDLE_CONNECTIONS:
                idle.append(connection)
            else:
                connection.close()
            if may_wait and is_usable and not self._idle[False]:
                with contextlib.suppress(sqlite3.Error):
                    self._idle[False].append(self._connect(may_wait=False))

    def _idle_connection(self, begin: str, may_wait: bool) -> _Connection:
        """An idle connection if it is usable, else a new one."""
        while True:
            try:
                connection = self._idle[may_wait].pop()
            except IndexError:
                if not may_wait:
                    raise sqlite3.OperationalError("database is locked: no connection is open") from None
                return self._connect()
            if connection.can_write or begin != _WRITING:
                return connection
            connection.close()

    def _file_identity(self) -> tuple[int, int] | None:
        """Identifies the file independently of its name; None without a file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self, may_wait: bool = True) -> _Connection:
        seconds = BUSY_SECONDS if may_wait else 0.0
        connection = sqlite3.connect(self.path, timeout=seconds, check_same_thread=False, factory=_Connection)
        connection.can_write = os.access(self.path, os.W_OK)
        connection.execute(f"pragma synchronous = {SYNCHRONOUS}")
        connection.execute("pragma foreign_keys = on")
        connection.execute(f"pragma journal_size_limit = {LOG_BYTES}")
        return connection


def _check_version(db: Database) -> None:
    """Raises LibraryUnavailable for tables unknown to this version."""
    supported = {migration.name for migration in MIGRATIONS.pending(Database(memory=True))}
    if newer := {migration.name for migration in MIGRATIONS.applied(db)} - supported:
        log.warning("the library has tables of a newer version: %s", ", ".join(sorted(newer)))
        raise LibraryUnavailable(
            "the library was last used by a newer version of the studio; update the studio, or restore a backup that "
            "this version has made"
        )


def is_writing(db: Database) -> bool:
    """Whether this is a transaction that has the write lock."""
    return isinstance(db.conn, _Connection) and db.conn.is_writing


def once_more_with_room(method: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a method of a repository retry if the disk was full and deletions have freed room since."""

    @functools.wraps(method)
    def wrapper(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        while True:
            try:
                return method(*args, **kwargs)
            except LibraryFull as full:
                if not full.has_made_room:
                    raise

    return wrapper


def _close_all(*lists: list[_Connection]) -> None:
    for connections in lists:
        while connections:
            with contextlib.suppress(IndexError):  # another thread took the last one
                connections.pop().close()

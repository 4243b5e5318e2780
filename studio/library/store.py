"""The library's SQLite file and audio files: a connection per call, one writer at a time, help for a full disk."""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import sqlite3
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from studio.errors import LibraryBusy, LibraryFull, LibraryUnavailable
from studio.library.audio_files import DIGEST_LENGTH, UNNAMED_DAYS, AudioFiles, Piece
from studio.library.disk_reserve import NO_ROOM, DiskReserve, is_full
from studio.library.private_files import make_library_private, make_private_folder, open_privately
from studio.library.schema import BASELINE, FORMER_COMMIT, FORMER_MIGRATIONS, LAST_FORMER, MIGRATIONS, Database, select

log = logging.getLogger(__name__)

Given = ParamSpec("Given")
Result = TypeVar("Result")

SYNCHRONOUS = "full"
"""SQLite's `pragma synchronous`: a commit waits for the disk, so that it survives a loss of power."""
BUSY_SECONDS = 60
"""Seconds that a call waits for other writers."""
DATABASE = "library.db"
MOST_WRITERS = 16
"""Maximum calls that wait for another writer; each occupies a thread that readers need too."""
WRITER_SECONDS = 1.0
"""Seconds without a new writer after which further calls are refused: longer than the longest change takes."""
CHECKPOINT_SECONDS = 2.0
"""Seconds that a stop waits for other readers and writers."""
LOG_BYTES = 8 * 2**20
"""Bytes that the write-ahead log keeps, so that a full disk can still be written to; more is freed."""
TIDYING_SECONDS = 0.1
"""Seconds for which a start checks audio files in one transaction, and then lets other programs write: they look every
0.1 s whether they may."""
IDLE_CONNECTIONS = 8
"""Idle connections kept open for later calls: opening one takes longer than most queries."""
DAMAGED = (
    "is damaged; move library.db and the files named like it out of its folder, and put a backup in their place (with "
    "STUDIO_BACKUP_DIR the next start does that)"
)
_BY_STUDIO = "locked by this studio"
TROUBLES = {
    _BY_STUDIO: "is busy with other changes of this studio; try again in a minute",
    "locked": "is busy; try again in a minute. If this persists, another program has locked it",
    "readonly": "cannot be written; allow the studio's user to write there, or set STUDIO_HOME to another folder",
    "unable to open": "cannot be opened; check that its folder exists and can be read and written",
    "disk is full": "has no room left on its disk; delete something or free some space, and try again",
    "disk I/O": "cannot be read or written; check its disk, and how much of it its user may use, or restore a backup",
    "not a file": "cannot be opened: library.db, or its -wal or -shm file, is a folder, a pipe or a device; remove it",
    "image is malformed": DAMAGED,
    "not a database": DAMAGED,
}
"""SQLite's messages, and their meaning for the library's owner."""
_KINDS = {_BY_STUDIO: LibraryBusy, "locked": LibraryBusy, "disk is full": LibraryFull}
SYSTEM_TROUBLES = dict.fromkeys(NO_ROOM, "disk is full") | {
    errno.EACCES: "readonly",
    errno.EROFS: "readonly",
    errno.EIO: "disk I/O",
}
"""The system's errors with audio files, as SQLite's messages."""

_FILE_COLUMNS = {"samples": "clip", "takes": "audio", "consents": "recording"}
"""Tables and their columns with digests of audio files; files that none of them names are set aside, and not copied."""
_REFERRED = " union all ".join(f"select 1 from {table} where {column} = :d" for table, column in _FILE_COLUMNS.items())
_REFERRED += " limit 1"


def named_files(connection: sqlite3.Connection) -> set[str]:
    """The digests of all audio files named in a library."""
    query = " union ".join(f"select {column} from {table}" for table, column in _FILE_COLUMNS.items())
    return {row[0] for row in connection.execute(query) if row[0]}


_WRITING = "begin immediate"
"""Begins a transaction that has the write lock from its first statement."""
_VIEW: ContextVar[tuple[Store | None, Database | None]] = ContextVar("view", default=(None, None))
"""The store of which this context has a consistent view, and its connection."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A writer's place in the line of its studio."""

    deadline: float
    """When it gives up, by the monotonic clock."""
    has_come: threading.Event = field(default_factory=threading.Event)
    has_lock: bool = False


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
        self._line: deque[_Turn] = deque()
        """This studio's writers in the order of their arrival; the first one writes, or waits for another program."""
        self._line_lock = threading.Lock()
        self._moved = 0.0
        """When the line last moved, by the monotonic clock."""
        with self._reserve.borrowed(), self.explain_errors():
            with contextlib.suppress(FileExistsError):
                open(self.path, "xb", opener=open_privately).close()  # SQLite gives its log the same permissions
            make_library_private(home)
            self._stay_open()
            with self.writing() as db:  # the lock first: two starts at once must not both migrate
                _check_version(db)
                MIGRATIONS.apply(db)
            self._clear_orphans()

    @contextlib.contextmanager
    def explain_errors(self) -> Iterator[None]:
        """Raise an error that says what is wrong and what to do, instead of SQLite's message; only the log has the
        path.

        Raises LibraryUnavailable, LibraryBusy, LibraryFull.
        """
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            phrase = self._phrase(error)
            if phrase not in TROUBLES:
                raise
            log.warning("the library %s %s", self.path, TROUBLES[phrase])
            raise _KINDS.get(phrase, LibraryUnavailable)(f"the library {TROUBLES[phrase]}") from error

    def _phrase(self, error: sqlite3.DatabaseError | OSError) -> str:
        """The key of an error in TROUBLES; blank if unknown."""
        if isinstance(error, OSError):
            return SYSTEM_TROUBLES.get(error.errno or 0, "")
        phrase = next((phrase for phrase in TROUBLES if phrase in str(error)), "")
        if phrase in ("unable to open", "disk I/O"):
            paths = (self.path.with_name(DATABASE + end) for end in ("", "-wal", "-shm"))
            if is_full(self.home):  # from the start, or by a quota
                phrase = "disk is full"
            elif any(path.exists() and not path.is_file() for path in paths):
                phrase = "not a file"
        self._reserve.is_needed |= phrase == "disk is full"
        return phrase

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
        with self.explain_errors(), self._connection("begin", seconds=0) as connection:
            token = _VIEW.set((self, Database(connection, recursive_triggers=False)))
            try:
                yield
            finally:
                _VIEW.reset(token)

    @contextlib.contextmanager
    def writing(self, frees_room: bool = False) -> Iterator[Database]:
        """A transaction with the write lock from its first statement: all of it is stored, or nothing.

        Audio files put in the block are part of it. ``frees_room``: for calls that delete; may use the disk reserve.
        Raises LibraryUnavailable, LibraryFull.
        """
        with contextlib.nullcontext() if frees_room else self._making_room(), self._transaction(frees_room) as db:
            yield db

    @contextlib.contextmanager
    def adding(self, contents: Sequence[Sequence[Piece]]) -> Iterator[tuple[Database, list[str]]]:
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
    def _transaction(self, frees_room: bool = False) -> Iterator[Database]:
        added: list[str] = []
        try:
            with (
                self.explain_errors(),
                self._turn() as turn,  # before the reserve, for which nobody then waits
                self._borrowed() if frees_room else contextlib.nullcontext(),
                self._connection(_WRITING, max(turn.deadline - time.monotonic(), 0.001)) as connection,
            ):
                turn.has_lock = True
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
    def _borrowed(self) -> Iterator[None]:
        """Use the disk reserve, if it is needed, for a transaction in this block."""
        with self._reserve.borrowed() as is_needed:
            yield
            if is_needed:  # else every deletion would grow the log, until it fills the reserve
                with contextlib.suppress(sqlite3.OperationalError), self._connection() as connection:
                    connection.execute("pragma wal_checkpoint(passive)")

    @contextlib.contextmanager
    def _turn(self) -> Iterator[_Turn]:
        """Wait in line to write. SQLite itself serves waiting writers in no order, and those that write most, most.

        Raises sqlite3.OperationalError.
        """
        with self._line_lock:
            turn, is_one_more = _Turn(time.monotonic() + BUSY_SECONDS), len(self._line) >= MOST_WRITERS
            if not self._line:
                self._moved = time.monotonic()
            self._line.append(turn)
            first = self._line[0]
            first.has_come.set()
        try:
            while not turn.has_come.wait(self._patience(turn, is_one_more)):
                if self._patience(turn, is_one_more) > 0:  # another one has begun to write meanwhile
                    continue
                is_own = first.has_lock or self._line[0] is not first
                raise sqlite3.OperationalError(f"database is {_BY_STUDIO}" if is_own else "database is locked")
            yield turn
        finally:
            with self._line_lock:
                if self._line[0] is turn:
                    self._moved = time.monotonic()
                self._line.remove(turn)
                if self._line:
                    self._line[0].has_come.set()

    def _patience(self, turn: _Turn, is_one_more: bool) -> float:
        """Seconds for which a writer waits at least, unless its turn comes before."""
        end = min(turn.deadline, self._moved + WRITER_SECONDS) if is_one_more else turn.deadline
        return max(0.0, end - time.monotonic())

    def drop_unreferred(self, digests: Iterable[str]) -> None:
        """Remove the audio files that no row names now. Call it after the rows are gone for good."""
        if not (unnamed := list(digests)):
            return
        with self.writing(frees_room=True) as db:
            for digest in unnamed:
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

    def _clear_orphans(self) -> None:
        """Set aside the audio files that no row names, remove those set aside long ago, and put back those named again.

        The folder is read without the lock; then each file is checked under it, a few at a time.
        """
        found = list(self.files.everything())
        with self.reading() as db:
            digests = named_files(db.conn)
        suspects = [
            path
            for name, path in found
            if name not in digests and not (self.files.is_waiting(path) and name[:DIGEST_LENGTH] not in digests)
        ]
        outcomes = Counter[str]()
        while suspects:
            with self.writing() as db:
                end = time.monotonic() + TIDYING_SECONDS
                while True:
                    path = suspects.pop()
                    is_named = bool(list(select(db, _REFERRED, {"d": path.name[:DIGEST_LENGTH]})))
                    outcomes[self.files.tidy(path, is_named)] += 1
                    if not suspects or time.monotonic() > end:
                        break
            time.sleep(TIDYING_SECONDS if suspects else 0)
        if outcomes["set aside"] or outcomes["put back"]:
            message = "audio without an entry in %s: %d files set aside for %d days, %d put back"
            log.warning(message, self.path, outcomes["set aside"], UNNAMED_DAYS, outcomes["put back"])

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
    def _connection(self, begin: str = "", seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        """A connection for exclusive use; ``begin`` starts a transaction, which ends with the context.

        ``seconds``: how long it waits if another program has locked the library; BUSY_SECONDS if None.
        """
        if self._file_identity() != self._opened_file:  # writes to a deleted file would be lost silently
            raise sqlite3.OperationalError("unable to open database file: it was removed or replaced")
        may_wait = seconds != 0
        idle = self._idle[may_wait]
        connection = self._idle_connection(begin, may_wait)
        connection.is_writing = begin == _WRITING
        is_usable = True
        try:
            if may_wait:
                milliseconds = int(1000 * (BUSY_SECONDS if seconds is None else seconds))
                connection.execute(f"pragma busy_timeout = {milliseconds}")
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
        connection.execute("pragma temp_store = memory")  # the disk of temporary files may be full
        connection.execute(f"pragma journal_size_limit = {LOG_BYTES}")
        return connection


def _check_version(db: Database) -> None:
    """Raises LibraryUnavailable for tables of a newer version, or of one older than the baseline."""
    applied = {migration.name for migration in MIGRATIONS.applied(db)}
    if LAST_FORMER in applied and len(applied) == FORMER_MIGRATIONS:  # their result is the baseline
        db.execute("delete from _sqlite_migrations")
        return
    if applied and BASELINE not in applied:
        why = "the library was last used by an older version of the studio"
        how = f"open it once with the version of commit {FORMER_COMMIT}, which can still update its tables"
        raise LibraryUnavailable(f"{why}; {how}")
    supported = {migration.name for migration in MIGRATIONS.pending(Database(memory=True))}
    if newer := applied - supported:
        log.warning("the library has tables of a newer version: %s", ", ".join(sorted(newer)))
        why = "the library was last used by a newer version of the studio"
        raise LibraryUnavailable(f"{why}; update the studio, or restore a backup that this version has made")


def is_writing(db: Database) -> bool:
    """Whether this is a transaction that has the write lock."""
    return isinstance(db.conn, _Connection) and db.conn.is_writing


class _Outdated(Exception):
    """What a change has worked out before its transaction does not fit the library any more."""


_IS_LAST = ContextVar("is_last", default=True)
_TRIES = 5


def again_if_outdated(change: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorates a change that works something out and then has one transaction. If somebody has changed what it follows
    from in between, it is made again; only the last time it is worked out with the write lock, while others wait."""

    @functools.wraps(change)
    def tried(*values: Given.args, **named: Given.kwargs) -> Result:
        for _ in range(_TRIES - 1):
            token = _IS_LAST.set(False)
            try:
                return change(*values, **named)
            except _Outdated:
                pass
            finally:
                _IS_LAST.reset(token)
        return change(*values, **named)

    return tried


def check_current(is_current: bool) -> None:
    """Leave the transaction of a change `again_if_outdated`, unless it is the last try."""
    if not is_current and not _IS_LAST.get():
        raise _Outdated


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

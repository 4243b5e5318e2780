"""The library's SQLite file: a connection a call, write-ahead log, one writer at a time, and its audio files."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlite_utils import Database

from studio.errors import LibraryUnavailable
from studio.library.files import AudioFiles
from studio.schema import MIGRATIONS

BUSY_SECONDS = 60
TROUBLES = {
    "locked": "is locked by another program; close what has it open, and try again",
    "readonly": "cannot be written; let the studio's user write there, or set STUDIO_HOME to a folder of its own",
    "unable to open": "cannot be opened; see that its folder is there and may be read and written",
    "disk is full": "has no room left on its disk; free some, and try again",
    "disk I/O": "cannot be read from its disk; look at the disk, or go back to a backup",
}
"""What SQLite says, and what it means to the owner of the library."""
"""How long a call waits for another writer."""

_NAMING = (("samples", "clip"), ("takes", "audio"), ("consents", "recording"), ("part_takes", "audio"))
"""Tables and their columns with the digests of audio files; what none of them names is cleared away, and not copied."""
_NAMED = " union ".join(f"select {column} from {table}" for table, column in _NAMING)
_REFERRED = " union all ".join(f"select 1 from {table} where {column} = :d" for table, column in _NAMING) + " limit 1"


def named_files(connection: sqlite3.Connection) -> set[str]:
    """The digests of all audio files that a library names."""
    return {row[0] for row in connection.execute(_NAMED) if row[0]}


class Store:
    """Opens `home`, brings its schema up to date and clears away what a crash may have left."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.path = home / "library.db"
        self.files = AudioFiles(home / "audio")
        with contextlib.closing(self._connect()) as connection:
            connection.execute("pragma journal_mode = wal")
        with self.writing() as db:  # the lock first: two starts at once must not both migrate
            MIGRATIONS.apply(db)
            self._clear_orphans(db)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what is wrong with the file, and what to do, in the place of SQLite's words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            for words, meaning in TROUBLES.items():
                if words in str(error):
                    raise LibraryUnavailable(f"the library {self.path} {meaning}") from error
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[Database]:
        """One consistent view of the library. Raises LibraryUnavailable."""
        with self._explained(), contextlib.closing(self._connect()) as connection:
            connection.execute("begin")
            yield Database(connection, recursive_triggers=False)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Database]:
        """A transaction that has the write lock from its first statement: all of it is kept, or nothing.

        Raises LibraryUnavailable.
        """
        with self._explained(), contextlib.closing(self._connect()) as connection:
            connection.execute("begin immediate")
            try:
                yield Database(connection, recursive_triggers=False)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def drop_unreferred(self, digests: Iterable[str]) -> None:
        """Remove those audio files that no row names any more. Call it after the rows are gone for good."""
        with self.writing() as db:
            for digest in digests:
                if not list(db.query(_REFERRED, {"d": digest})):
                    self.files.remove(digest)

    def _clear_orphans(self, db: Database) -> None:
        known = named_files(db.conn)
        for name, path in self.files.everything():
            if name not in known:
                path.unlink()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS)
        connection.execute("pragma synchronous = full")
        connection.execute("pragma foreign_keys = on")
        return connection

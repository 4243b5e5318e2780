"""The parts of sqlite-utils that the library uses, imported without pandas, and a faster way to read rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def _without_pandas() -> Iterator[None]:
    """sqlite-utils (4.2, ``db.py``) imports pandas if it is installed, for columns of its times, which are not used.

    Without this, the first page and every other process wait 0.3 to 0.9 s for it, and it takes 35 MB.
    """
    is_imported = "pandas" in sys.modules
    if not is_imported:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # so that an import fails
    try:
        yield
    finally:
        if not is_imported:
            del sys.modules["pandas"]


with _without_pandas():
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

__all__ = ["Database", "Migrations", "select"]


def select(db: Database, sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a read-only statement within a transaction.

    ``Database.query`` sets a savepoint for each statement and releases it. Under load that is slow: every statement
    passes the interpreter's lock to another thread.
    """
    cursor = db.execute(sql, params)
    names = [name for name, *_ in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)

"""What the library uses of sqlite-utils, imported without pandas: 0.9 s of a core and 41 MB for each process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _without_pandas() -> Iterator[None]:
    """sqlite-utils (4.2, ``db.py``) imports it where it is installed, for columns of pandas' times; here are none.

    What Gradio wants of it, it imports itself, where there is a page.
    """
    is_here = "pandas" in sys.modules
    if not is_here:
        sys.modules["pandas"] = None  # type: ignore[assignment]  # so that an import fails
    try:
        yield
    finally:
        if not is_here:
            del sys.modules["pandas"]


with _without_pandas():
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

__all__ = ["Database", "Migrations"]

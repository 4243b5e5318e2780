"""A library that was temporarily read-only: later takes are kept."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest

from studio.library import Library
from studio.library.store import IDLE_CONNECTIONS
from tests.environment import unprivileged
from tests.studio.library.worker import stored_take


@pytest.mark.posix
def test_take_is_stored_once_the_library_is_writable_again() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        with unprivileged():
            library = Library(Path(folder) / "home")
            library.takes.add(stored_take("before", "words", "anna"))
            library.store.path.chmod(0o444)
            with contextlib.ExitStack() as stack:  # more at once than are kept open: so some are opened now
                for _ in range(IDLE_CONNECTIONS + 2):
                    stack.enter_context(library.store.reading())
            library.store.path.chmod(0o600)
            library.takes.add(stored_take("after", "words", "anna"))
            assert [take.id for take in library.takes.page()] == ["after", "before"]
            library.store.close()

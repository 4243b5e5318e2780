"""The library's threads and instruction set, which belong to the process, are restored after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.native import library


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    native = library.library()
    assert native is not None, library.problem()
    threads, isa = native.native_threads(), library.isa()
    yield
    library.set_threads(threads)
    library.use_isa(isa)

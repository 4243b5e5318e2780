"""Gives memory that is free again back to the system, where the C library would keep it."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


def release_free_memory() -> None:
    """Hand back every free page of all heaps; does nothing where the C library is not glibc. Blocking: tens of ms.

    glibc gives each thread a heap of its own and shrinks it from its end alone: one small block that lives on keeps
    all that was freed before it. Asking for as much again costs fresh pages, so call this rarely.
    """
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "malloc_trim") else None

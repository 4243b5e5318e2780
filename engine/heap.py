"""Gives memory that is free again back to the system, where the C library would keep it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def release_free_memory() -> None:
    """Hand back every free page of the heap; does nothing where the C library is not glibc. Blocking: tens of ms.

    glibc shrinks a thread's heap from its end alone, so one small block that lives on keeps all that was freed
    before it. The next one to ask for as much pays for fresh pages: call this after rare, large work.
    """
    if trim := _malloc_trim():
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)

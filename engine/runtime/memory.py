"""The process's memory: what is free goes back to the system, what stays is not looked through for garbage."""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache


def trim_heap() -> None:
    """Hand back every free page of all heaps; does nothing where the C library is not glibc. Blocking: tens of ms.

    glibc gives each thread a heap of its own and shrinks it from its end alone: one small block that lives on keeps
    all that was freed before it. Asking for as much again costs fresh pages, so call this rarely.
    """
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def freeze_heap() -> None:
    """Leave what there is now out of all garbage collections to come. Blocking: tenths of a second.

    For a process that serves, once all is loaded: a whole collection looks at the 300,000 objects of torch and the web
    layer while every thread stands still, for 0.2 to 0.5 s, and a crowd's objects set one off. What was frozen and
    becomes garbage later is never collected.
    """
    gc.collect()
    gc.freeze()


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "malloc_trim") else None

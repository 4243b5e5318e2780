"""The process's memory: measures it, returns free pages to the system, limits garbage collection."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import weakref
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

CONTAINER = Path("/sys/fs/cgroup")
"""The folder with the memory limit of a container."""
_MADV_DONTNEED = 4


def trim_heap() -> None:
    """Return every free page of all heaps to the system; does nothing without glibc. Blocking: tens of ms.

    glibc gives each thread its own heap and shrinks it only from its end: one small live block keeps everything freed
    before it. Later allocations need new pages, so call this rarely.
    """
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def drop_file_pages(tensors: Iterable[Tensor]) -> None:
    """Take the pages of all files that these tensors are views of out of this process; does nothing without glibc.

    The system still has them in its cache, unless it needs the memory, and they return as they are read. The tensors
    must never have been written to: the changes would be lost.
    """
    if (libc := _glibc()) is None:
        return
    lines = (line.split(None, 5) for line in Path("/proc/self/maps").read_text("utf-8").splitlines())
    areas = [tuple(int(end, 16) for end in line[0].split("-")) for line in lines if line[4] != "0"]  # 0: no file
    addresses = sorted(tensor.data_ptr() for tensor in tensors)
    for start, end in areas:
        at = bisect_left(addresses, start)
        if at < len(addresses) and addresses[at] < end:
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


def freeze_heap() -> None:
    """Exclude all present objects from future garbage collections. Blocking: tenths of a second.

    For a serving process, once everything is loaded: a full collection visits the 300,000 objects of torch and the web
    layer while all threads wait, for 0.2 to 0.5 s, and the objects of many requests trigger one. Frozen objects that
    become garbage later are never collected.
    """
    gc.collect()
    gc.freeze()


class _Cycle:
    """Freed only by the garbage collector."""

    def __init__(self) -> None:
        self.itself = self


def release_memory() -> None:
    """Free all memory of a stopped engine, including frozen objects. Blocking: tenths of a second.

    Nothing may still refer to the engine.
    """
    garbage = weakref.ref(_Cycle())
    while garbage() is not None:  # a collection does nothing while another thread is collecting
        gc.unfreeze()
        gc.collect()
        time.sleep(0.001)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    trim_heap()


def free_memory(device: torch.device, held_bytes: int = 0, group: Path = CONTAINER) -> int | None:
    """Bytes that an engine may use once this process's engine is stopped, which holds ``held_bytes`` on a CPU.

    ``group``: the folder with the limits of a container. Returns None if unknown.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    if device.type != "cpu":
        return None
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    with suppress(OSError, ValueError):  # no limit, or "max"
        free = min(free, _free_in_container(group))
    return max(0, free) + held_bytes


def _free_in_container(group: Path) -> int:
    """Bytes left by a container's limit; the page cache, such as of checkpoints, counts as free. Raises OSError,
    ValueError without a limit."""
    limit, used = (int((group / f"memory.{name}").read_text("utf-8")) for name in ("max", "current"))
    statistics = dict(line.split() for line in (group / "memory.stat").read_text("utf-8").splitlines())
    return limit - used + int(statistics.get("inactive_file", 0))


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "malloc_trim") else None

"""Makes a process resemble Windows, as far as Linux can: `pytest -p tests.windows_like`.

Modules and names of POSIX are missing, and an open file can be neither removed nor renamed. Paths, the console and
processes stay those of this system.
"""

from __future__ import annotations

import errno
import importlib.abc
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

PRODUCT = {"audio", "engine", "launch", "longform", "manuscript", "protocols", "speechtext", "studio", "tests"}
LACKING = {"fcntl", "grp", "pwd", "resource", "termios", "triton"}
NAMES: dict[ModuleType, tuple[str, ...]] = {
    os: ("geteuid", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "sched_getaffinity"),
    signal: ("SIGHUP", "SIGUSR1", "SIGXCPU"),
    socket: ("SO_REUSEPORT",),
}
"""Not all: packages use others, in code that differs on Windows. `make types` finds every name."""


class _Platform(str):
    """win32 for the product, and what it is for packages, which would call into Windows."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        caller = str(sys._getframe(1).f_globals.get("__name__")).partition(".")[0]
        return str.__eq__("win32" if caller in PRODUCT else str(self), str(other))

    def __ne__(self, other: object) -> bool:
        caller = str(sys._getframe(1).f_globals.get("__name__")).partition(".")[0]
        return str.__ne__("win32" if caller in PRODUCT else str(self), str(other))

    __hash__ = str.__hash__


class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _is_open(path: object) -> bool:
    try:
        wanted = os.stat(path)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return False
    for handle in os.listdir("/proc/self/fd"):
        try:
            if os.path.samestat(os.stat(int(handle)), wanted):
                return True
        except OSError:
            continue
    return False


def _refusing(change: Callable[..., None]) -> Callable[..., None]:
    def changed(*paths: Any, **options: Any) -> None:
        for path in paths:
            if not Path(os.fsdecode(path)).is_dir() and _is_open(path):
                raise PermissionError(errno.EACCES, "the file is used by another process", os.fsdecode(path))
        change(*paths, **options)

    return changed


def pretend() -> None:
    """Change this process. What comes from packages is imported first: theirs is another code on Windows."""
    import asyncio.unix_events  # noqa: F401
    import multiprocessing.connection  # noqa: F401
    import subprocess  # noqa: F401

    import av  # noqa: F401
    import gradio  # noqa: F401
    import torch  # noqa: F401
    import uvicorn  # noqa: F401

    for name in LACKING:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Absent())
    for module, names in NAMES.items():
        for name in names:
            vars(module).pop(name, None)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    os.unlink, os.remove = _refusing(os.unlink), _refusing(os.remove)
    os.rename, os.replace = _refusing(os.rename), _refusing(os.replace)
    sys.platform = _Platform(sys.platform)


def pytest_sessionstart() -> None:
    pretend()

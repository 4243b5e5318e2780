"""Permissions of the library: its folders 700, its files 600; those of older libraries are corrected when they open.

Windows has no such permissions; there a user's own folders are closed to other users already.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_OWN_NAMES = frozenset({"audio", "models", "reserve", "sessions.json", "sessions.part"})
_OWN_START = "library.db"
"""The names that the studio writes in its folder; SQLite's files begin as the database does."""
_NOBODYS_NAMES = frozenset({"lost+found", ".DS_Store"})
"""What systems put into a folder by themselves."""
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


def open_privately(path: str, flags: int) -> int:
    """The ``opener`` of a file that its owner alone may read. It changes no file that exists."""
    return os.open(path, flags, FILE_MODE)


def make_private_folder(folder: Path) -> None:
    """Make the folder, and its parents with their usual permissions, unless it exists. Raises OSError."""
    folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file unless it exists. Raises OSError."""
    try:
        os.close(open_privately(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return


def make_library_private(home: Path) -> None:
    """Correct the permissions of a library's folder and of what the studio keeps in it.

    A folder that others may need keeps its own; that, and a file system without permissions, is logged. Raises OSError.
    """
    if os.name != "posix":
        return
    permissions = _Permissions()
    if not _is_private(home):
        if reason := _why_left(home):
            log.warning("other users of this machine may see the names of files in %s: %s", home, reason)
        else:
            permissions.make_private(home.resolve())  # STUDIO_HOME may be a link
    for path in [*home.glob(f"{_OWN_START}*"), home / "reserve", home / "sessions.json", home / "sessions.part"]:
        permissions.make_private(path)
    _make_audio_private(home / "audio", permissions)
    permissions.log(home)


def make_copies_private(folder: Path, snapshots: list[Path]) -> None:
    """Correct the permissions of a backup's files, not of the folder, which its owner has chosen. Raises OSError."""
    if os.name != "posix":
        return
    permissions = _Permissions()
    for path in snapshots:
        permissions.make_private(path)
    _make_audio_private(folder / "audio", permissions)
    permissions.log(folder)


class _Permissions:
    """Changes permissions, and counts how often the system refused that."""

    def __init__(self) -> None:
        self._count = 0
        self._first = ""

    def make_private(self, path: Path) -> None:
        """Restrict a folder or file to its owner. Missing paths and links are skipped, and refusals are only counted.

        Raises OSError.
        """
        try:
            before = path.lstat().st_mode
            mode = FOLDER_MODE if stat.S_ISDIR(before) else FILE_MODE
            if (stat.S_ISDIR(before) or stat.S_ISREG(before)) and before & 0o777 != mode:
                path.chmod(stat.S_IMODE(before) & ~0o777 | mode)
        except FileNotFoundError:
            return
        except OSError as error:
            self.note(error)

    def entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except FileNotFoundError:
            return
        except OSError as error:
            self.note(error)

    def note(self, error: OSError) -> None:
        if error.errno not in _REFUSALS:
            raise error
        self._count += 1
        self._first = self._first or str(error)

    def log(self, folder: Path) -> None:
        if self._count:
            log.warning(
                "other users of this machine may read %d files and folders of %s, whose permissions stay: %s",
                self._count,
                folder,
                self._first,
            )


def _make_audio_private(audio: Path, permissions: _Permissions) -> None:
    permissions.make_private(audio)
    for folder in permissions.entries(audio):
        if folder.is_dir(follow_symlinks=False):
            permissions.make_private(Path(folder.path))
            for file in permissions.entries(Path(folder.path)):
                permissions.make_private(Path(file.path))


def _is_private(folder: Path) -> bool:
    return not stat.S_IMODE(folder.stat().st_mode) & 0o077


def _why_left(home: Path) -> str:
    """The reason for leaving the permissions of the folder unchanged; empty if there is none."""
    status = home.stat()
    if status.st_mode & stat.S_ISVTX:
        return "it is a shared folder (sticky bit), so its permissions stay; set STUDIO_HOME to a folder of its own"
    if status.st_uid != os.geteuid():
        return "it belongs to another user, so its permissions stay; set STUDIO_HOME to a folder of its own"
    foreign = sorted(name for name in os.listdir(home) if not _is_own(name))
    if foreign:
        return f"it also holds {foreign[0]!r}, so its permissions stay; set STUDIO_HOME to a folder of its own"
    return ""


def _is_own(name: str) -> bool:
    return name in _OWN_NAMES or name in _NOBODYS_NAMES or name.startswith(_OWN_START)

"""Files that are replaced as a whole, and the library's permissions: its folders 700, its files 600; those of older
libraries are corrected when they open.

Windows has no such permissions; there a user's own folders are closed to other users already.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import logging
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger(__name__)

FOLDER_MODE = 0o700
FILE_MODE = 0o600
ABANDONED_SECONDS = 3600.0
"""An unfinished file to which nothing was written for so long belongs to no running program."""

_OWN_NAMES = frozenset({"audio", "episodes", "model.json", "models", "reserve", "sessions", "update.json"})
_OWN_START = "library.db"
"""The names that the studio writes in its folder; SQLite's files begin as the database does."""
_NOBODYS_NAMES = frozenset({"lost+found", ".DS_Store"})
"""Files that systems put into folders by themselves."""
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


def open_privately(path: str, flags: int) -> int:
    """The ``opener`` of a file that only its owner may read. It does not change the permissions of an existing file."""
    handle = os.open(path, flags, FILE_MODE)
    if flags & os.O_EXCL:  # not a link of somebody's to another file
        _give_away(handle, Path(path).parent)
    return handle


def _give_away(made: int | Path, parent: Path) -> None:
    """Give what root has made in somebody's folder to its owner, as SQLite does: a command that root runs must not make
    files that the studio's user cannot open. ``made``: an open file, or a folder."""
    if sys.platform != "win32" and os.geteuid() == 0 and (owner := parent.stat()).st_uid:
        with contextlib.suppress(OSError):  # a network disk, or a container, where root may not
            os.chown(made, owner.st_uid, owner.st_gid, follow_symlinks=isinstance(made, int))


def unfinished(path: Path) -> Path:
    """A new name in the same folder for a file that will be renamed to ``path``: no other writer uses it."""
    return path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")


def write_whole(path: Path, content: BinaryIO, is_private: bool = True) -> None:
    """Write a file atomically, as `whole_file` does. Raises OSError."""
    with whole_file(path, is_private) as file:
        shutil.copyfileobj(content, file, 1 << 20)


@contextlib.contextmanager
def whole_file(path: Path, is_private: bool = True) -> Iterator[BinaryIO]:
    """A file to be written: complete under its name, or not at all. Of several writers the last one wins.

    ``is_private``: only its owner may read it; otherwise the umask applies. Also removes what a crash during an earlier
    write has left. Raises OSError.
    """
    remove_abandoned(path.parent.glob(f"{glob.escape(path.name)}.{'[0-9a-f]' * 8}.part"))
    part = unfinished(path)
    try:
        with open(part, "xb", opener=open_privately if is_private else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno and str(error.filename or part) == str(part):
            raise OSError(error.errno, error.strerror, str(path)) from error  # nobody knows the temporary name
        raise


def remove_abandoned(paths: Iterable[Path]) -> None:
    """Remove those of these files that no running program can be about to complete."""
    for path in paths:
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                path.unlink()


def remove_file(path: Path) -> None:
    """Remove a file if it exists; Windows keeps one that is open, until a later start of the studio. Raises OSError."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        if sys.platform != "win32":
            raise


def make_private_folder(folder: Path) -> None:
    """Make the folder, and its parents with their usual permissions, unless it exists. Raises OSError."""
    try:
        missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        for made in reversed(missing):
            _give_away(made, made.parent)
    except (FileExistsError, NotADirectoryError) as error:
        reason = "a folder is needed here, but this name or one above it is a file; move that file away"
        for link in (folder, *folder.parents):
            if link.is_symlink() and not link.exists():
                reason = f"{link} is a link to {os.readlink(link)}, which is missing; is its disk connected?"
        raise NotADirectoryError(errno.ENOTDIR, reason, str(folder)) from error


def make_library_private(home: Path) -> None:
    """Correct the permissions of a library's folder and of the studio's files in it.

    A folder that others may need keeps its permissions; this, and a file system without permissions, is logged. Raises
    OSError.
    """
    if sys.platform == "win32":
        return
    paths = [*home.glob(f"{_OWN_START}*"), home / "reserve", *_with_contents(home / "sessions")]
    if reason := _reason_to_keep(home):
        log.warning("other users of this machine may see the names of files in %s: %s", home, reason)
    else:
        paths.append(home.resolve())  # STUDIO_HOME may be a link
    _restrict(home, [*paths, *_with_contents(home / "audio")])


def make_copies_private(folder: Path, snapshots: list[Path]) -> None:
    """Correct the permissions of a backup's files, not of the folder, which its owner has chosen. Raises OSError."""
    if sys.platform != "win32":
        _restrict(folder, [*snapshots, *_with_contents(folder / "audio")])


def _with_contents(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def _restrict(folder: Path, paths: Iterable[Path]) -> None:
    """Restrict files and folders to their owner. Missing paths and links are skipped, refusals of the system are logged
    together. Raises OSError."""
    refusals = []
    for path in paths:
        try:
            current_mode = path.lstat().st_mode
            mode = FOLDER_MODE if stat.S_ISDIR(current_mode) else FILE_MODE
            if (stat.S_ISDIR(current_mode) or stat.S_ISREG(current_mode)) and current_mode & 0o777 != mode:
                path.chmod(stat.S_IMODE(current_mode) & ~0o777 | mode)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            refusals.append(error)
    if refusals:
        message = "other users of this machine may read %d files and folders of %s, whose permissions stay: %s"
        log.warning(message, len(refusals), folder, refusals[0])


def _reason_to_keep(home: Path) -> str:
    """The reason for leaving the permissions of the folder unchanged; empty if there is none, or they are right."""
    status, advice = home.stat(), "so its permissions stay; set STUDIO_HOME to a separate folder"
    if not stat.S_IMODE(status.st_mode) & 0o077:
        return ""
    if status.st_mode & stat.S_ISVTX:
        return f"it is a shared folder (sticky bit), {advice}"
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return f"it belongs to another user, {advice}"
    allowed = _OWN_NAMES | _NOBODYS_NAMES
    foreign = sorted(name for name in os.listdir(home) if not (name in allowed or name.startswith(_OWN_START)))
    return f"it also holds {foreign[0]!r}, {advice}" if foreign else ""

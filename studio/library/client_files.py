"""Files that gradio_client's users upload or receive: identified by a reference, never by a path."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from anyio import to_thread

from studio.errors import InvalidRequest, NoTemporaryRoom, NotFound, TooManyRequests
from studio.library.private_files import open_privately, remove_file
from studio.unicode_text import safe_file_name

log = logging.getLogger(__name__)

UPLOAD_SECONDS = 3600  # seconds for which an upload is kept
RESULT_SECONDS = 600
"""Seconds for which a file made for a client is kept; the client downloads it at once."""
MAX_UPLOAD = 25 * 2**20  # maximum bytes of one upload
MAX_FILES = 100  # maximum number of files of one caller
MAX_CALLER_BYTES = 256 * 2**20  # maximum bytes of one caller's files
MAX_BYTES = 2**30  # maximum bytes of all callers' files

PREFIX, OWNER = "studio-files-", ".owner"
"""The prefix of the folder's name, and the file in it that is locked as long as its studio runs."""

Identity = tuple[int, int]
"""Device and inode of the entry at a path."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file's name, as its sender calls it, and its content."""

    name: str
    data: bytes = field(repr=False)


@dataclass(eq=False, slots=True)
class ClientFile:
    """One file. ``owner``: the only caller who may use it; None without keys: anyone with the reference.

    ``caller``: counts for this caller's limits. ``size`` is in bytes. ``is_spare``: may be removed when its caller
    needs the room, such as a result, or an upload that a call has used.
    """

    reference: str
    name: str
    owner: str | None
    caller: str
    size: int
    is_spare: bool
    path: Path | None = field(default=None, repr=False)
    identity: Identity | None = None
    """None before it is written."""
    expiry: asyncio.TimerHandle | None = field(default=None, repr=False)

    def open(self) -> BinaryIO:
        """Open the written file, but no other that has replaced it. Blocking. Raises NotFound."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            stream = open(os.open(self.path or "", flags), "rb")  # noqa: SIM115  (the caller closes it)
        except OSError as error:
            raise NotFound(f"the file {self.name} is gone; upload it again", "file") from error
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or _identity(status) != self.identity or status.st_size != self.size:
            stream.close()
            raise NotFound(f"the file {self.name} was replaced; upload it again", "file")
        return stream

    def read(self) -> Upload:
        """The file's content. Blocking. Raises NotFound."""
        with self.open() as stream:
            return Upload(self.name, stream.read(self.size))


class ClientFiles:
    """Files in a private temporary folder of one studio. All methods but `close` belong to one event loop.

    On the disk a file has a random name. A client's path is only looked up in a table, so it cannot lead to another
    file of the machine or of another caller.
    """

    def __init__(self) -> None:
        self._folder = TemporaryFolder()
        self._files: dict[str, ClientFile] = {}

    async def add_upload(self, upload: Upload, owner: str | None, caller: str) -> ClientFile:
        """Store an upload. Raises InvalidRequest, TooManyRequests, NoTemporaryRoom."""
        size = len(upload.data)
        if size > MAX_UPLOAD:
            raise InvalidRequest(f"{upload.name} is too large; at most {MAX_UPLOAD >> 20} MiB are allowed", "files")
        self._make_room(caller, size)
        if self._exceeds_limits(caller, size):
            most = f"at most {MAX_FILES} and {MAX_CALLER_BYTES >> 20} MiB of one caller"
            how = f"use them in calls, or wait until they expire, {UPLOAD_SECONDS // 60} minutes after their upload"
            raise TooManyRequests(f"too many uploaded files are waiting to be used: {most}; {how}", retry_after=60)
        file = ClientFile("", _file_name(upload.name), owner, caller, size, is_spare=False)
        return await self._keep(file, [upload.data], UPLOAD_SECONDS)

    async def add_result(self, name: str, pieces: Iterable[bytes], owner: str | None, caller: str) -> ClientFile:
        """Write a file for a client; leaves nothing behind on failure. Raises the errors of ``pieces``,
        NoTemporaryRoom."""
        file = await self._keep(ClientFile("", name, owner, caller, 0, is_spare=True), pieces, RESULT_SECONDS)
        self._make_room(caller, 0, file)
        return file

    def find(self, reference: object, owner: str | None) -> ClientFile:
        """Find a file by its reference. Raises NotFound, with the same message for other owners' files."""
        file = self._files.get(reference) if isinstance(reference, str) else None
        if file is None or file.identity is None or file.owner != owner:
            raise NotFound("the file does not exist or has expired", "file")
        return file

    def remove(self, file: ClientFile) -> None:
        """Remove a file before it expires. Does nothing if it is already gone."""
        if file.expiry is not None:
            file.expiry.cancel()
        self._files.pop(file.reference, None)
        if file.path is not None:
            remove_file(file.path)

    def close(self) -> None:
        """Remove all files. Blocking."""
        self._files.clear()
        self._folder.close()

    def _exceeds_limits(self, caller: str, size: int) -> bool:
        """Whether a caller exceeds its limits with another file of ``size`` bytes, or with none if that is 0."""
        caller_files = [file for file in self._files.values() if file.caller == caller]
        return (
            len(caller_files) + bool(size) > MAX_FILES
            or sum(file.size for file in caller_files) + size > MAX_CALLER_BYTES
        )

    def _make_room(self, caller: str, size: int, new_file: ClientFile | None = None) -> None:
        """Remove the caller's spare files, oldest first; then, while the total is too large, files of the caller with
        the most bytes. ``new_file`` stays."""
        while self._exceeds_limits(caller, size):
            caller_files = (file for file in self._files.values() if file.caller == caller and file is not new_file)
            oldest = next((file for file in caller_files if file.is_spare and file.identity is not None), None)
            if oldest is None:
                break
            self.remove(oldest)
        while sum(file.size for file in self._files.values()) + size > MAX_BYTES:
            candidates = [file for file in self._files.values() if file.identity is not None and file is not new_file]
            caller_bytes: Counter[str] = Counter()
            for file in candidates:
                caller_bytes[file.caller] += file.size
            if not candidates:
                break
            largest = caller_bytes.most_common(1)[0][0]
            self.remove(next(file for file in candidates if file.caller == largest))

    async def _keep(self, file: ClientFile, pieces: Iterable[bytes], seconds: float) -> ClientFile:
        key = secrets.token_urlsafe(24)
        file.reference = f"{key}/{file.name}"
        self._files[file.reference] = file  # before writing, so that files that arrive at once are all counted
        write_task = asyncio.ensure_future(to_thread.run_sync(self._write, file, key, pieces))
        try:
            await asyncio.shield(write_task)
        except BaseException:  # the thread continues after a cancellation: its file is removed when it ends
            write_task.add_done_callback(lambda task: self._give_up(task, file))
            raise
        file.expiry = asyncio.get_running_loop().call_later(seconds, self.remove, file)
        return file

    def _give_up(self, write_task: asyncio.Future[None], file: ClientFile) -> None:
        """Remove the file of a write that failed, or whose caller was cancelled."""
        if not write_task.cancelled() and (error := write_task.exception()) is not None:
            log.debug("%s was not written: %s", file.name, error)
        self.remove(file)

    def _write(self, file: ClientFile, key: str, pieces: Iterable[bytes]) -> None:
        """Raises the errors of ``pieces``, NoTemporaryRoom."""
        try:
            file.path = self._folder.path() / key
            with open(file.path, "xb", opener=open_privately) as stream:
                stream.writelines(pieces)
                file.size = stream.tell()
                file.identity = _identity(os.fstat(stream.fileno()))
        except OSError as error:
            log.warning("a file for a client was not stored: %s", error)
            problem = "the file could not be stored: the studio's temporary folder is full or cannot be written"
            raise NoTemporaryRoom(problem) from error


class TemporaryFolder:
    """A folder that only this user can read, created on first use, when folders of killed studios are removed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._identity: Identity | None = None
        self._lock_stack = contextlib.ExitStack()
        self._is_closed = False

    def path(self) -> Path:
        """The folder's path, with a new folder if the one at that path is no longer ours: systems delete old
        temporary folders, and another user can then take the name. Blocking. Raises OSError."""
        with self._lock:
            if self._is_closed:
                raise OSError("the studio has stopped")
            if self._path is None or not self._is_there(self._path):
                self._create()
            assert self._path is not None
            return self._path

    def close(self) -> None:
        """Remove the folder with its contents. Blocking."""
        with self._lock:
            self._lock_stack.close()  # first, because Windows removes no open file
            if self._path is not None and self._is_there(self._path):
                shutil.rmtree(self._path, ignore_errors=True)
            self._is_closed = True

    def _is_there(self, path: Path) -> bool:
        try:
            status = path.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and _identity(status) == self._identity

    def _create(self) -> None:
        self._lock_stack.close()
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        if sys.platform == "win32":
            self._lock_stack.enter_context(open(path / OWNER, "wb"))  # noqa: SIM115  (being open is its lock)
        else:
            import fcntl

            lock_path = path / ".new"
            lock = self._lock_stack.enter_context(open(lock_path, "wb", opener=open_privately))  # noqa: SIM115
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock_path.rename(path / OWNER)  # so that others never see it without its lock
        for folder in path.parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):  # another studio may sweep at the same time
                _remove_if_abandoned(folder)
        self._path, self._identity = path, _identity(path.lstat())


def _remove_if_abandoned(folder: Path) -> None:
    """Remove the folder of a killed studio. Raises OSError if that studio runs, or if the folder is not ours."""
    if sys.platform == "win32":  # which removes no open file
        (folder / OWNER).unlink()
        shutil.rmtree(folder, ignore_errors=True)
        return
    import fcntl

    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    with open(os.open(folder / OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as owner:
        if stat.S_ISREG(os.fstat(owner.fileno()).st_mode):
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _file_name(name: str) -> str:
    """The name of an upload: the last part of its sender's name for it, if that is a path."""
    base_name = name.replace("\\", "/").rpartition("/")[2]
    stem, _, extension = base_name.rpartition(".")
    if not stem or not re.fullmatch("[A-Za-z0-9]{1,16}", extension):
        stem, extension = base_name, ""
    return safe_file_name(stem, extension, "file")

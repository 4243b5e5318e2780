"""Files that gradio_client's users upload and are given: known to them by a reference, never by a path."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from anyio import to_thread

from studio.errors import InvalidRequest, NotFound, TooManyRequests
from studio.strings import safe_file_name

UPLOAD_SECONDS = 3600
"""How long an upload is kept …"""
RESULT_SECONDS = 600
"""… and a file that was made for a client, which fetches it at once."""
MAX_UPLOAD = 25 * 2**20
"""Bytes of one upload."""
MAX_UPLOADS = 100
"""Uploads of one caller at a time …"""
MAX_CALLER_BYTES = 256 * 2**20
"""… and their bytes …"""
MAX_BYTES = 2**30
"""… and those of all callers. To stay below, uploads that a call has used already are given up first."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as its sender calls it, and its content."""

    name: str
    data: bytes = field(repr=False)


@dataclass(eq=False, slots=True)
class ClientFile:
    """One file. ``owner``: the only caller who may use it; None, where no keys are set: anyone with the reference.

    ``caller``: the uploader, by whom uploads are counted; None for a file that the studio made. ``size`` is in bytes.
    """

    reference: str
    name: str
    owner: str | None
    caller: str | None
    size: int
    path: Path | None = field(default=None, repr=False)
    is_used: bool = False
    expiry: asyncio.TimerHandle | None = field(default=None, repr=False)

    def open(self) -> BinaryIO:
        """What was written, and nothing that stands in its place by now. Blocking. Raises NotFound."""
        if self.path is None:
            raise NotFound(f"the file {self.name} is gone; upload it again", "file")
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            opened = open(os.open(self.path, flags), "rb")  # noqa: SIM115  (the caller closes it)
        except OSError as error:
            raise NotFound(f"the file {self.name} is gone; upload it again", "file") from error
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size != self.size:
            opened.close()
            raise NotFound(f"the file {self.name} was replaced; upload it again", "file")
        return opened

    def read(self) -> Upload:
        """Its content. Blocking. Raises NotFound."""
        with self.open() as opened:
            return Upload(self.name, opened.read(self.size))


class ClientFiles:
    """A private temporary folder of one studio. All methods but `close` belong to one event loop.

    On the disk a file has a random name. What a client sends as a path is only ever looked up in a table, so it cannot
    lead anywhere else: not to another file of the machine, nor to another caller's.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._making = threading.Lock()
        self._files: dict[str, ClientFile] = {}

    async def add_upload(self, upload: Upload, owner: str | None, caller: str) -> ClientFile:
        """Keep an upload. Raises InvalidRequest, TooManyRequests, OSError."""
        size = len(upload.data)
        if size > MAX_UPLOAD:
            raise InvalidRequest(f"{upload.name} is too large; at most {MAX_UPLOAD >> 20} MiB are allowed", "files")
        self._make_room(size, caller)
        return await self._add(_file_name(upload.name), [upload.data], size, owner, caller)

    async def add_result(self, name: str, pieces: Iterable[bytes], owner: str | None) -> ClientFile:
        """Write a file for a client. Nothing stays when that fails. Raises what ``pieces`` raise, OSError."""
        return await self._add(name, pieces, 0, owner, None)

    def find(self, reference: object, owner: str | None) -> ClientFile:
        """The file of a reference, for its owner alone. Raises NotFound, in the same words for other callers' files."""
        file = self._files.get(reference) if isinstance(reference, str) else None
        if file is None or file.path is None or file.owner != owner:
            raise NotFound("there is no such file, or it has expired", "file")
        return file

    def close(self) -> None:
        """Remove all of them. Blocking."""
        self._files.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _make_room(self, size: int, caller: str) -> None:
        """Give up uploads that were used already, oldest first. Raises TooManyRequests."""

        def excess() -> Literal["", "own", "all"]:
            uploads = [file for file in self._files.values() if file.caller is not None]
            own = [file for file in uploads if file.caller == caller]
            if len(own) >= MAX_UPLOADS or sum(file.size for file in own) + size > MAX_CALLER_BYTES:
                return "own"
            return "all" if sum(file.size for file in uploads) + size > MAX_BYTES else ""

        while scope := excess():
            used = (file for file in self._files.values() if file.is_used and (scope == "all" or file.caller == caller))
            if (oldest := next(used, None)) is None:
                raise TooManyRequests(
                    f"too many uploaded files are waiting to be used: at most {MAX_UPLOADS} and "
                    f"{MAX_CALLER_BYTES >> 20} MiB of one caller, and {MAX_BYTES >> 20} MiB of all; use them in calls, "
                    f"or wait until they expire, {UPLOAD_SECONDS // 60} minutes after their upload",
                    retry_after=60,
                )
            self.remove(oldest)

    async def _add(
        self, name: str, pieces: Iterable[bytes], size: int, owner: str | None, caller: str | None
    ) -> ClientFile:
        key = secrets.token_urlsafe(24)
        file = ClientFile(f"{key}/{name}", name, owner, caller, size)
        self._files[file.reference] = file  # before it is written: several that arrive at once are all counted
        try:
            file.path, file.size = await to_thread.run_sync(self._write, key, pieces)
        except BaseException:
            self.remove(file)
            raise
        seconds = RESULT_SECONDS if caller is None else UPLOAD_SECONDS
        file.expiry = asyncio.get_running_loop().call_later(seconds, self.remove, file)
        return file

    def _write(self, key: str, pieces: Iterable[bytes]) -> tuple[Path, int]:
        with self._making:
            if self._folder is None or not self._folder.is_dir():  # systems clear old temporary folders away
                self._folder = Path(tempfile.mkdtemp(prefix="studio-files-"))  # readable by this user alone
            path = self._folder / key
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.writelines(pieces)
                return path, file.tell()
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def remove(self, file: ClientFile) -> None:
        """Before its time; nothing where that has happened already."""
        if file.expiry is not None:
            file.expiry.cancel()
        self._files.pop(file.reference, None)
        if file.path is not None:
            file.path.unlink(missing_ok=True)


def _file_name(name: str) -> str:
    """What an upload is called: the last part of its sender's name for it, where that is a path."""
    whole = name.replace("\\", "/").rpartition("/")[2]
    stem, _, extension = whole.rpartition(".")
    if not stem or not re.fullmatch("[A-Za-z0-9]{1,16}", extension):
        stem, extension = whole, ""
    return safe_file_name(stem, extension, "file")

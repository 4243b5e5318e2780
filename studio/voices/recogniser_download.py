"""Downloads a recogniser's model from the Hugging Face Hub at the owner's request: completely or not at all.

Whisper base for faster-whisper: stored in the library's folder, used at once and found at every later start.
"""

from __future__ import annotations

import re
import shutil
import time
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path

from anyio import to_thread

from studio.errors import NotOffered
from studio.library.private_files import ABANDONED_SECONDS
from studio.models.catalogue import HubFiles
from studio.models.hub_download import DownloadStatus, HubDownload
from studio.unicode_text import pip_install
from studio.voices.recogniser import Recogniser, Transcriber, is_installed

MODEL = "Systran/faster-whisper-base"
LICENCE = "MIT"
ABOUT = 148_000_000
"""Approximate download size in bytes."""
COMMAND = pip_install("faster-whisper")
_FILES = HubFiles(
    repo=MODEL,
    names=re.compile(r"model\.bin|config\.json|preprocessor_config\.json|tokenizer\.json|vocabulary\.(txt|json)"),
    needed=frozenset({"model.bin", "config.json", "tokenizer.json"}),
    last="config.json",
    max_bytes=2**30,
    without=("Without the internet, put a model into a folder and set STUDIO_TRANSCRIBER=faster-whisper:/that/folder"),
    resumes=False,
)


class RecogniserDownload:
    """Downloads the model for this transcriber. Used from one event loop."""

    def __init__(self, home: Path, transcriber: Transcriber) -> None:
        """Use an earlier download, and remove the rest of one after a crash. Blocking: milliseconds."""
        self._models = home / "models"
        self._folder = self._models / MODEL.partition("/")[2]
        self._transcriber = transcriber
        self._part = self._models / f".{self._folder.name}-{uuid.uuid4().hex}"
        remove = partial(shutil.rmtree, self._part, ignore_errors=True)
        self._download = HubDownload(_FILES, lambda commit: self._part, self._use, remove)
        for leftover in self._models.glob(f".{self._folder.name}-*"):
            with suppress(OSError):  # another studio on this library ends its download
                modified = max(path.stat().st_mtime for path in (leftover, *leftover.iterdir()))
                if modified < time.time() - ABANDONED_SECONDS:
                    shutil.rmtree(leftover, ignore_errors=True)
        if any(self._models.glob(self._folder.name)) and not transcriber.is_there and is_installed():
            transcriber.use(self._name)

    @property
    def status(self) -> DownloadStatus:
        return self._download.status

    @property
    def _name(self) -> str:
        return f"faster-whisper:{self._folder}"

    async def begin(self) -> None:
        """Download in the background, unless a download is running or a recogniser exists. Raises NotOffered."""
        if not await to_thread.run_sync(is_installed):
            raise NotOffered(f"the package faster-whisper is not installed here: {COMMAND}")
        if not self._transcriber.is_there:
            self._download.begin()

    async def cancel(self) -> None:
        """Cancel the download and remove its files."""
        await self._download.cancel()

    async def _use(self, commit: str, part: Path) -> None:
        await to_thread.run_sync(Recogniser(str(part)).load)  # before it is used
        await to_thread.run_sync(self._keep, part)
        self._transcriber.use(self._name)

    def _keep(self, part: Path) -> None:
        try:
            part.rename(self._folder)
        except OSError:
            if not self._folder.is_dir():  # otherwise another studio on this library was faster
                raise
            shutil.rmtree(part, ignore_errors=True)

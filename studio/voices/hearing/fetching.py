"""Downloads a recogniser's model from the Hugging Face Hub at the owner's request: completely or not at all.

Whisper base for faster-whisper: stored in the library's folder, used at once and found at every later start.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
import time
import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from anyio import CancelScope, to_thread

from studio.errors import NotOffered
from studio.unicode_text import pip_install
from studio.voices.hearing.recogniser import FasterWhisper, Transcriber, is_installed

log = logging.getLogger(__name__)

MODEL = "Systran/faster-whisper-base"
LICENCE = "MIT"
ABOUT = 148_000_000
"""Approximate bytes, shown before the download."""
COMMAND = pip_install("faster-whisper")
MOST = 2**30
"""Maximum bytes to download, whatever the hub reports."""
_WANTED = re.compile(r"model\.bin|config\.json|preprocessor_config\.json|tokenizer\.json|vocabulary\.(txt|json)")
_NEEDED = {"model.bin", "config.json", "tokenizer.json"}
_NO_LISTING = (json.JSONDecodeError, KeyError, TypeError, AttributeError)
"""Errors from reading something else, such as a hotel network's login page."""
_PIECE = 2**20
_PATIENCE = 30.0
"""Seconds without a byte before the connection counts as lost."""
_ABANDONED = 3600.0
"""Seconds without a write after which a folder counts as left over from a crash."""


@dataclass(frozen=True, slots=True)
class FetchStatus:
    """Progress in bytes. ``total`` is 0 until the hub reports it; ``error``: why the last attempt failed."""

    is_fetching: bool = False
    done: int = 0
    total: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size: int
    sha256: str | None


class RecogniserFetch:
    """Downloads the model for this transcriber. Used from one event loop."""

    def __init__(self, home: Path, transcriber: Transcriber) -> None:
        """Use an earlier download, and remove what a crash left of one. Blocking: milliseconds."""
        self._models = home / "models"
        self._folder = self._models / MODEL.partition("/")[2]
        self._transcriber = transcriber
        self._task: asyncio.Task[None] | None = None
        self.status = FetchStatus()
        for left in self._models.glob(f".{self._folder.name}-*"):
            written = max(path.stat().st_mtime for path in (left, *left.iterdir()))
            if written < time.time() - _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        if not transcriber.is_there and is_installed() and self._folder.is_dir():
            transcriber.use(self._name)

    @property
    def _name(self) -> str:
        return f"faster-whisper:{self._folder}"

    async def begin(self) -> None:
        """Download in the background, unless a download is running or a recogniser exists. Raises NotOffered."""
        if not await to_thread.run_sync(is_installed):
            raise NotOffered(f"the package faster-whisper is not installed here: {COMMAND}")
        if self._transcriber.is_there or self.status.is_fetching:
            return
        self.status = FetchStatus(is_fetching=True)
        self._task = asyncio.create_task(self._fetch())
        self._task.add_done_callback(self._ended)

    async def cancel(self) -> None:
        """Cancel the download and delete what was written."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Put any error into the status, so that the page can show it."""
        problem = None if task.cancelled() else task.exception()
        self.status = FetchStatus(error=None if problem is None else _why(problem))
        if problem is not None:
            log.warning("the recogniser could not be set up: %s", self.status.error)

    async def _fetch(self) -> None:
        part = self._models / f".{self._folder.name}-{uuid.uuid4().hex}"
        try:
            await to_thread.run_sync(partial(part.mkdir, parents=True))
            if os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
                raise ValueError("HF_HUB_OFFLINE is set, so nothing is downloaded from the hub")
            make = partial(httpx.AsyncClient, base_url=_endpoint(), follow_redirects=True, timeout=_PATIENCE)
            async with await to_thread.run_sync(make) as client:  # reads the machine's certificates
                commit, files = await self._listing(client)
                self.status = replace(self.status, total=sum(file.size for file in files))
                for file in files:
                    await self._fetch_file(client, f"/{MODEL}/resolve/{commit}/{file.name}", file, part)
            await to_thread.run_sync(FasterWhisper(str(part)).load)  # check the model before announcing it
            await to_thread.run_sync(self._keep, part)
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(partial(shutil.rmtree, part, ignore_errors=True))
        self._transcriber.use(self._name)

    async def _listing(self, client: httpx.AsyncClient) -> tuple[str, list[_File]]:
        """The newest commit, and the files needed from it."""
        answer = await client.get(f"/api/models/{MODEL}", params={"blobs": "true"})
        answer.raise_for_status()
        try:
            commit, files = _listed(answer.json())
        except _NO_LISTING as problem:
            raise ValueError(f"{client.base_url.host} answered with something that is not a list of files") from problem
        if not re.fullmatch(r"[0-9a-f]{40}", commit) or not {file.name for file in files} >= _NEEDED:
            raise ValueError(f"{MODEL} has changed on the hub and cannot be used")
        if sum(file.size for file in files) > MOST:
            raise ValueError(f"{MODEL} is now larger than {MOST // 2**20} MiB")
        return commit, files

    async def _fetch_file(self, client: httpx.AsyncClient, path: str, file: _File, part: Path) -> None:
        digest, read = hashlib.sha256(), 0
        async with client.stream("GET", path) as answer:
            answer.raise_for_status()
            with await to_thread.run_sync((part / file.name).open, "wb") as sink:
                async for piece in answer.aiter_bytes(_PIECE):
                    read += len(piece)
                    if read > file.size:
                        break
                    await to_thread.run_sync(sink.write, piece)
                    await to_thread.run_sync(digest.update, piece)
                    self.status = replace(self.status, done=self.status.done + len(piece))
                await to_thread.run_sync(os.fsync, sink.fileno())
        if read != file.size or file.sha256 not in (None, digest.hexdigest()):
            raise ValueError(f"{file.name} differs from the hub's file; try again")

    def _keep(self, part: Path) -> None:
        if not self._folder.is_dir():  # else another studio on this library was faster
            part.rename(self._folder)


def _listed(answer: dict[str, Any]) -> tuple[str, list[_File]]:
    """Raises _NO_LISTING."""
    files = [
        _File(sibling["rfilename"], int(sibling["size"]), (sibling.get("lfs") or {}).get("sha256"))
        for sibling in answer["siblings"]
        if _WANTED.fullmatch(sibling["rfilename"])
    ]
    return str(answer["sha"]), files


def _endpoint() -> str:
    """The hub, or the mirror set for the Hub's own tools."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"


def _why(problem: BaseException) -> str:
    if isinstance(problem, MemoryError):
        return "it was downloaded, but there is not enough memory to load it: free some and try again"
    if isinstance(problem, ImportError):
        return f"it was downloaded, but a library it needs cannot be loaded here: {problem}"
    host = httpx.URL(_endpoint()).host
    if isinstance(problem, httpx.HTTPStatusError):
        return f"{host} answered {problem.response.status_code} for {problem.request.url.path}"
    if isinstance(problem, httpx.HTTPError):
        return (
            f"{host} cannot be reached, or the connection broke off ({problem or type(problem).__name__}). Without the "
            "internet, put a model into a folder and set STUDIO_TRANSCRIBER=faster-whisper:/that/folder"
        )
    if isinstance(problem, OSError):
        return f"the model cannot be written: {problem.strerror or problem}"
    if isinstance(problem, ValueError):
        return str(problem)
    return f"it cannot be loaded here: {str(problem) or type(problem).__name__}"

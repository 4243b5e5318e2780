"""Files from clients and for them, and nothing left of those: what they fetch is gone soon after, or at the stop."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import gradio as gr
from anyio import to_thread
from gradio.data_classes import FileData, ListFiles
from gradio.utils import get_upload_folder

KEPT_SECONDS = 600
"""A client fetches its file at once; so long it may take."""


class Handout:
    """A folder of one studio inside Gradio's cache, where Gradio makes no copy of its own. Used from one event loop."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    async def write(self, name: str, pieces: Iterable[bytes]) -> str:
        """Write a file of that name; where it is. Nothing of it stays when that fails. Raises what ``pieces`` raise."""
        path = await to_thread.run_sync(self._write, name, pieces)
        asyncio.get_running_loop().call_later(KEPT_SECONDS, _remove, path.parent)
        return str(path)

    def close(self) -> None:
        """Remove all of them. Blocking."""
        if self._folder is not None:
            _remove(self._folder)

    def _write(self, name: str, pieces: Iterable[bytes]) -> Path:
        if self._folder is None:
            cache = Path(get_upload_folder())
            cache.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="studio-", dir=cache))
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            with (folder / name).open("wb") as file:
                file.writelines(pieces)
        except BaseException:
            _remove(folder)
            raise
        return folder / name


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def sent_file(label: str) -> gr.File:
    """A file that a client sends, by its path. Gradio itself would leave an empty file beside each.

    Also for sound: for gr.Audio, hidden or not, every visitor's browser would fetch a player and a recorder, 200 kB.
    """
    file = gr.File(label=label)
    file.preprocess = _path_of  # type: ignore[method-assign]
    return file


def _path_of(payload: ListFiles | FileData | None) -> str | None:
    return payload.path if isinstance(payload, FileData) else None

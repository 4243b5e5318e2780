"""The endpoints for the history: a list of takes, and one take with its audio; names and arguments are frozen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import gradio as gr

from studio.errors import InvalidRequest
from studio.history.history import History
from studio.history.take_export import STORED, encoded
from studio.library import TakeFilter
from studio.library.client_files import ClientFile, ClientFiles
from studio.ui.endpoints.add_endpoints import add_endpoints
from studio.ui.file_fields import file_field
from studio.work.work_queue import WorkQueue

MAX_LIST = 200
PIECE = 1 << 20
"""Bytes copied at a time."""


class TakeEndpoints:
    """The endpoints' methods. Clients get every error as gradio_client's AppError with its message."""

    def __init__(self, history: History, files: ClientFiles, exports: WorkQueue) -> None:
        self._history = history
        self._files = files
        self._exports = exports

    async def history_list(
        self, caller: gr.Request, *, query: str, voice: str, starred: bool, limit: int, after: str
    ) -> dict[str, object]:
        """Takes, newest first, filtered by a part of the text, by voice, or to starred ones; paged by `after`."""
        if not 1 <= limit <= MAX_LIST:
            raise InvalidRequest(f"limit must be from 1 to {MAX_LIST}", "limit")
        takes = TakeFilter(query, voice or None, starred or None, caller=caller.state.owner_filter)
        page = await self._history.page(await self._history.with_voice_id(takes), limit, after or None)
        return {"data": page.data, "last_id": page.last_id, "has_more": page.has_more}

    async def take_get(self, caller: gr.Request, *, take_id: str) -> tuple[ClientFile | None, dict[str, object]]:
        """One take by its id: its audio as a WAV file, if there is any, and its text, parameters and figures."""
        take_id, owner_filter, name = take_id.strip(), caller.state.owner_filter, caller.state.caller
        facts = await self._history.get(take_id, owner_filter)
        if not facts["audio"]:
            return None, facts
        take, path = await self._history.sound(take_id, owner_filter)
        pieces: Iterable[bytes] = _chunks(path)
        if take.media_type != "audio/wav":
            pieces = await self._exports.run(name, list, encoded(path, take.media_type, STORED))
        return await self._files.add_result(f"{take.id}.{STORED}", pieces, owner_filter, name), facts


def add_take_endpoints(history: History, files: ClientFiles, exports: WorkQueue) -> None:
    """Add the endpoints to the Blocks being built."""
    endpoints = TakeEndpoints(history, files, exports)
    with gr.Column(visible=False):
        fields = [
            gr.Textbox("", label="query"),
            gr.Textbox("", label="voice"),
            gr.Checkbox(False, label="starred"),
            gr.Number(50, label="limit", precision=0),
            gr.Textbox("", label="after"),
        ]
        file, take = file_field("file"), gr.JSON(label="take")
        add_endpoints(
            {
                endpoints.history_list: (fields, take),
                endpoints.take_get: ([gr.Textbox("", label="take_id")], [file, take]),
            }
        )


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece

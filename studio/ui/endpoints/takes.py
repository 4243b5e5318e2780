"""The named endpoints of the history for gradio_client: a list of takes, and one take with its sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import gradio as gr

from studio.errors import StudioError
from studio.history.history import History
from studio.history.take_export import STORED, encoded
from studio.library import TakeFilter
from studio.library.client_files import ClientFile, ClientFiles
from studio.ui.file_fields import file_field
from studio.work.work_queue import WorkQueue

MAX_LIST = 200
PIECE = 1 << 20
"""Bytes copied at a time."""


class TakeEndpoints:
    """What the endpoints do. Every refusal reaches the client as gradio_client's AppError with its message."""

    def __init__(self, history: History, files: ClientFiles, exports: WorkQueue) -> None:
        self._history = history
        self._files = files
        self._exports = exports

    async def history_list(
        self,
        request: gr.Request,
        query: str = "",
        voice: str = "",
        starred: bool = False,
        limit: float = 50,
        after: str = "",
    ) -> dict[str, object]:
        """Takes, newest first, as GET /v1/takes lists them; starred: those alone."""
        if not 1 <= limit <= MAX_LIST:
            raise _refusal(f"limit must be from 1 to {MAX_LIST}")
        wanted = TakeFilter(query, voice or None, starred or None, caller=request.state.sees)
        try:
            page = await self._history.page(await self._history.by_id(wanted), int(limit), after or None)
        except StudioError as error:
            raise _refusal(str(error)) from error
        return {"data": page.data, "last_id": page.last_id, "has_more": page.has_more}

    async def take_get(self, request: gr.Request, take_id: str = "") -> tuple[ClientFile | None, dict[str, object]]:
        """A take's WAV file, if it has one, and all that is known of it."""
        sees = request.state.sees
        try:
            facts = await self._history.get(take_id.strip(), sees)
            if not facts["audio"]:
                return None, facts
            take, path = await self._history.sound(take_id.strip(), sees)
            caller = request.state.caller
            pieces: Iterable[bytes] = _copied(path)
            if take.media_type != "audio/wav":
                pieces = await self._exports.run(caller, list, encoded(path, take.media_type, STORED))
            return await self._files.add_result(f"{take.id}.{STORED}", pieces, sees, caller), facts
        except (StudioError, FileNotFoundError) as error:
            raise _refusal(str(error)) from error


def add_take_endpoints(history: History, files: ClientFiles, exports: WorkQueue) -> None:
    """Add the endpoints to the Blocks being built; their components are never shown."""
    endpoints = TakeEndpoints(history, files, exports)
    with gr.Column(visible=False):
        question = [
            gr.Textbox("", label="query"),
            gr.Textbox("", label="voice"),
            gr.Checkbox(False, label="starred"),
            gr.Number(50, label="limit", precision=0),
            gr.Textbox("", label="after"),
        ]
        take_id = gr.Textbox("", label="take_id")
        file, facts = file_field("file"), gr.JSON(label="take")
        trigger = gr.Button()
    trigger.click(
        endpoints.history_list,
        question,
        facts,
        api_name="history_list",
        api_description="Takes, newest first: by a part of the text, a voice, or starred ones alone; paged by `after`.",
    )
    trigger.click(
        endpoints.take_get,
        take_id,
        [file, facts],
        api_name="take_get",
        api_description="One take by its id: its sound as a WAV file, and its text, parameters and figures.",
    )


def _copied(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _refusal(words: str) -> gr.Error:
    return gr.Error(words, title="The studio could not give this", print_exception=False)

"""Files of the named endpoints: what crosses Gradio is a reference of `ClientFiles`, never a path of this machine."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import gradio as gr
from gradio.data_classes import FileData

from studio.errors import InvalidRequest, NotFound
from studio.library.client_files import ClientFile, ClientFiles, Upload

UPLOAD_ROUTE = "/gradio_api/upload"
FILE_ROUTE = "/gradio_api/file="


def file_field(label: str | None = None) -> gr.File:
    """Of an endpoint, which gets an `Upload` from it, or returns a `ClientFile` for it; None where there is none.

    Also for sound: for gr.Audio, hidden or not, every visitor's browser would fetch a player and a recorder, 200 kB.
    Not a class: Gradio writes a stub beside the source of each that is derived from a component.
    """
    field = gr.File(label=label)
    field.api_info()  # it is cached: clients still see a file …
    field.data_model = None  # … but Gradio does not look for a path in the value
    field.preprocess = _content  # type: ignore[method-assign, assignment]
    field.postprocess = _description  # type: ignore[method-assign, assignment]
    return field


def uploaded(files: ClientFiles, value: object, name: str, owner: str | None) -> ClientFile | None:
    """The upload that a client's value for the field ``name`` means; used now, it may go when its caller needs room.

    Raises InvalidRequest; its message has no path.
    """
    if value is None:
        return None
    reference = value.get("path") if isinstance(value, dict) else None
    try:
        file = files.find(reference, owner)
    except NotFound as error:
        raise InvalidRequest(
            f"{name} is not a file that you have uploaded here, or it has expired: upload it to {UPLOAD_ROUTE} first, "
            "as gradio_client's handle_file does for a file of yours, and send the answer as its path",
            name,
        ) from error
    file.is_spare = True
    return file


def carries_file(value: object) -> bool:
    """Whether Gradio would take some part of a parsed value for a file, and copy what lies at its path."""
    waiting = [value]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            if "meta" in entry and "path" in entry:
                return True
            waiting += entry.values()
        elif isinstance(entry, list | tuple):
            waiting += entry
    return False


def _content(file: ClientFile | None) -> Upload | None:
    """Gradio calls it in a thread. Raises NotFound."""
    return None if file is None else file.read()


def _description(file: ClientFile | None) -> dict[str, Any] | None:
    """As Gradio's clients expect a file, which they then fetch."""
    if file is None:
        return None
    url = FILE_ROUTE + quote(file.reference)
    return FileData(path=file.reference, url=url, size=file.size, orig_name=file.name).model_dump()

"""Files of the named endpoints: Gradio passes on references of `ClientFiles`, never paths of this machine."""

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
    """A field from which an endpoint gets an `Upload`, or for which it returns a `ClientFile`; None without a file.

    It is used for audio too: for gr.Audio, even hidden, every browser would load a player and a recorder, 200 kB.
    It is not a class, because Gradio writes a stub beside the source of each subclass of a component.
    """
    field = gr.File(label=label)
    field.api_info()  # cached, so that clients still see a file
    field.data_model = None  # Gradio does not look for a path in the value
    field.preprocess = _content  # type: ignore[method-assign, assignment]
    field.postprocess = _description  # type: ignore[method-assign, assignment]
    return field


def uploaded(files: ClientFiles, value: object, name: str, owner: str | None) -> ClientFile | None:
    """The upload that a client's value for the field ``name`` refers to. It may be removed when its caller needs space.

    Raises InvalidRequest; the message has no path.
    """
    if value is None:
        return None
    reference = value.get("path") if isinstance(value, dict) else None
    try:
        file = files.find(reference, owner)
    except NotFound as error:
        why = f"{name} is not a file that you have uploaded here, or it has expired"
        how = "and send the answer as its path; gradio_client's handle_file does both"
        raise InvalidRequest(f"{why}: upload it to {UPLOAD_ROUTE} first {how}", name) from error
    file.is_spare = True
    return file


def carries_file(value: object) -> bool:
    """Whether Gradio would treat a part of a parsed value as a file and copy it from its path."""
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
    """Called by Gradio in a thread. Raises NotFound."""
    return None if file is None else file.read()


def _description(file: ClientFile | None) -> dict[str, Any] | None:
    """A file in the form that Gradio's clients expect; they then download it."""
    if file is None:
        return None
    url = FILE_ROUTE + quote(file.reference)
    return FileData(path=file.reference, url=url, size=file.size, orig_name=file.name).model_dump()

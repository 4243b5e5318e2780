"""Gradio's Blocks with checked inputs and a limited number of calls. Files are references of `ClientFiles`, never paths
of this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable
from copy import copy
from enum import Enum
from typing import Any, cast
from urllib.parse import quote

import gradio as gr
from anyio import to_thread
from gradio.data_classes import BlocksConfigDict, FileData, GradioModel, GradioRootModel
from gradio.exceptions import ComponentProcessingError
from gradio.state_holder import SessionState

from engine import EngineError
from studio.errors import BAD_INPUT, REFUSALS, InvalidRequest, NotAllowed, NotFound
from studio.library.client_files import ClientFile, ClientFiles, Upload
from studio.ui.call_queue import CallQueue
from studio.unicode_text import check_strings

log = logging.getLogger(__name__)

LARGEST = 2**64
"""Largest number that a field accepts: above every limit of the endpoints, but neither infinity nor NaN."""
KINDS: dict[type, tuple[Callable[[Any], bool], str]] = {
    gr.Textbox: (lambda value: isinstance(value, str), "a text"),
    gr.Checkbox: (lambda value: isinstance(value, bool), "true or false"),
    gr.Dropdown: (lambda value: isinstance(value, bool) or value == [], "true or false"),  # an empty one, by Gradio
    gr.Number: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST,
        f"a number of at most {LARGEST:g}",
    ),
}
"""Checks of field values, which Gradio does not make."""
CALLERS = (ComponentProcessingError, *BAD_INPUT, NotAllowed, NotFound)
"""Errors that the caller can correct."""
MAX_MESSAGE = 1000
"""Characters of an error message."""
UPLOAD_ROUTE, FILE_ROUTE = "/gradio_api/upload", "/gradio_api/file="
MAX_SESSIONS = 100
"""Gradio's default is 10,000; each call of a program creates a session."""


class NoSession(SessionState):
    """Stores nothing. Gradio's own would describe every field of the page for each call, which takes longer than most
    calls, and store its inputs."""

    def __init__(self, blocks: gr.Blocks) -> None:
        self.blocks_config = copy(blocks.default_config)
        self.config_values, self.state_data, self._state_ttl, self.is_closed = {}, {}, {}, False

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


for module in (gr.blocks, gr.route_utils, gr.state_holder):
    module.SessionState = NoSession  # type: ignore[attr-defined]


class StudioBlocks(gr.Blocks):
    """The endpoints for programs; the page itself uses the studio's own API."""

    def __init__(self, files: ClientFiles, **named: Any) -> None:
        super().__init__(**named)
        self._client_files = files
        self.is_complete = False  # Gradio describes it after each of its parts, and again when it is mounted
        self.state_session_capacity = MAX_SESSIONS

    def queue(self, *args: Any, **kwargs: Any) -> StudioBlocks:
        super().queue(*args, **kwargs)
        self._queue = self.calls = CallQueue(self)
        return self

    def get_config_file(self) -> BlocksConfigDict:
        """Gradio's configuration with only the first page: for others, Gradio would show a bar with links."""
        config = super().get_config_file() if self.is_complete else cast(BlocksConfigDict, {"pages": []})
        config["pages"] = config["pages"][:1]
        return config

    async def process_api(
        self,
        block_fn: Any,
        inputs: list[Any],
        state: Any = None,
        request: Any = None,
        iterator: Any = None,
        *more: Any,
        **named: Any,
    ) -> dict[str, Any]:
        """Process one call, or the next item of one; its inputs are checked before Gradio reads them.

        Raises only gr.Error, because Python's own messages can contain paths of this machine.
        """
        function = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        try:
            if iterator is None:
                inputs = self._checked(function, inputs, request)
            return await super().process_api(function, inputs, state, request, iterator, *more, **named)
        except gr.Error as error:  # some errors of Gradio contain a whole value and would print it
            _mark_refused(request)
            error.message, error.print_exception = str(error.message)[:MAX_MESSAGE], False
            raise
        except (*REFUSALS, EngineError, ComponentProcessingError) as error:  # the last: a value of a wrong type
            if isinstance(error, CALLERS):
                _mark_refused(request)
            raise _refusal(str(error)) from error
        except Exception as error:
            log.exception("the endpoint %s failed", function.api_name)
            raise _refusal("The server had an error; its log has the details.") from error

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any) -> list[Any]:
        """Return the endpoint's results unchanged. Gradio would treat an object with a path as a file, copy it and
        serve it."""
        is_one = len(block_fn.outputs) == 1
        values = [predictions] if is_one else list(predictions)
        # Gradio gets blanks. A member of an enumeration is Gradio's own marker for the end of an iteration.
        blank: list[Any] = [value if isinstance(value, Enum) else None for value in values]
        outputs = await super().postprocess_data(block_fn, blank[0] if is_one else blank, state)
        for position, (field, value) in enumerate(zip(block_fn.outputs, values, strict=True)):
            if value is not None and not isinstance(value, Enum):
                outputs[position] = await to_thread.run_sync(_output, field, value)
        return outputs

    def _checked(self, function: Any, inputs: list[Any], request: gr.Request | None) -> list[Any]:
        """The inputs, with uploads in place of references to them. Raises gr.Error, InvalidRequest."""
        if function.fn is None or isinstance(request, list):
            raise _refusal("this endpoint cannot be called this way; GET /gradio_api/info describes all endpoints")
        if len(inputs) != (count := len(function.inputs)):
            raise _refusal(f"{count} values are needed, not {len(inputs)}; GET /gradio_api/info describes them")
        owner = request.state.owner_filter if request else None
        return [self._checked_value(*pair, owner) for pair in zip(function.inputs, inputs, strict=True)]

    def _checked_value(self, field: Any, value: Any, owner: str | None) -> Any:
        """Check a value, because Gradio parses bodies without checking strings or paths. Raises InvalidRequest."""
        label = str(getattr(field, "label", None) or "a value")
        check_strings(value, label)
        if isinstance(field, gr.File):
            return uploaded(self._client_files, value, label, owner)
        if carries_file(value):
            raise InvalidRequest(f"{label} cannot carry a file: an object in it has a path and meta", label)
        if value is None:
            return field.value
        for kind, (is_right, name) in KINDS.items():
            if isinstance(field, kind) and not is_right(value):
                raise InvalidRequest(f"{label} must be {name}", label)
        return value


def _output(field: Any, value: Any) -> Any:
    """Blocking, for a large value."""
    output = field.postprocess(value)
    return output.model_dump() if isinstance(output, GradioModel | GradioRootModel) else output


def _mark_refused(request: Any) -> None:
    """Note for `OfferedRoutes` that the caller has to change something: Gradio answers each error with a 500."""
    for one in request if isinstance(request, list) else (request,):
        if one is not None:
            one.state.is_refused = True


def _refusal(message: str) -> gr.Error:
    return gr.Error(message, title="The studio could not do this", print_exception=False)


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


def _content(file: ClientFile | None) -> Upload | None:  # called by Gradio in a thread
    return None if file is None else file.read()


def _description(file: ClientFile | None) -> dict[str, Any] | None:
    """A file in the form that Gradio's clients expect; they then download it."""
    if file is None:
        return None
    url = FILE_ROUTE + quote(file.reference)
    return FileData(path=file.reference, url=url, size=file.size, orig_name=file.name).model_dump()

"""Adds methods as named endpoints to the Blocks being built; their signatures say which fields they have."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import gradio as gr
from gradio.components import Component

from studio.library.client_files import ClientFile, Upload
from studio.ui.blocks import file_field

Take = Annotated[dict[str, object], "take"]
TakeFile = Annotated[ClientFile, "file"]
"""Results are annotated with their names."""


def add_endpoints(*subjects: object) -> None:
    """Add the public methods of objects, named after the methods and described by their docstrings.

    Keyword arguments with their defaults are the fields, or, with ``**fields: Annotated[Any, A, B]``, the fields of the
    dataclasses A and B. The components are never shown.
    """
    with gr.Column(visible=False):
        trigger = gr.Button(visible=False)
        for subject in subjects:
            for name in vars(type(subject)):
                if not name.startswith("_"):
                    _add(trigger, getattr(subject, name))


def _add(trigger: gr.Button, method: Callable[..., Any]) -> None:
    hints = get_type_hints(method, include_extras=True)
    answer = hints["return"]
    if get_origin(answer) is AsyncIterator:
        [answer] = get_args(answer)
    answers = [_answer(part) for part in get_args(answer)] if get_origin(answer) is tuple else _answer(answer)
    trigger.click(
        method,
        None,
        answers,
        inputs_kwargs={field[0]: _field(*field) for field in _fields(method, hints)},
        api_name=method.__name__,
        api_description=" ".join((method.__doc__ or "").split()),
        concurrency_limit=None,  # the engine and the library have their own queues
    )


def _fields(method: Callable[..., Any], hints: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of each field."""
    parameters = inspect.signature(method).parameters.values()
    records = [record for each in parameters if each.kind is each.VAR_KEYWORD for record in get_args(hints[each.name])]
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not records:
            yield parameter.name, hints[parameter.name], parameter.default
    for record in records[1:]:
        types = get_type_hints(record)
        for field in dataclasses.fields(record):
            made = field.default_factory
            yield field.name, types[field.name], field.default if made is dataclasses.MISSING else made()


def _field(label: str, kind: Any, default: Any) -> Component:
    """A field without a value needs a default of None in the method's signature; otherwise clients must send it."""
    kinds = get_args(kind) or (kind,)
    if Upload in kinds:
        return file_field(label)
    if bool in kinds:
        if default is None:
            return gr.Dropdown([True, False], value=None, label=label)
        return gr.Checkbox(default, label=label)
    if str in kinds:
        return gr.Textbox(default, label=label)
    if int in kinds:
        return gr.Number(default, label=label, precision=0)
    if float in kinds:
        return gr.Number(default, label=label)
    return gr.JSON([*default] if default == () else default, label=label)


def _answer(kind: Any) -> Component:
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    name = next((part for part in get_args(kind)[1:] if isinstance(part, str)), None)
    return file_field(name) if ClientFile in (kind, *get_args(kind)) else gr.JSON(label=name)

"""Adds methods as named endpoints to the Blocks being built; field labels are the names of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

Endpoints = Mapping[Callable[..., Any], tuple[Sequence[Component], Component | Sequence[Component]]]
"""Methods, with the fields of their arguments and of their results. A field without a value needs a default of None in
the method's signature; otherwise clients must send it."""


def add_endpoints(endpoints: Endpoints) -> None:
    """Add endpoints, named after the methods and described by their docstrings. The components are never shown."""
    trigger = gr.Button(visible=False)
    for method, (fields, answers) in endpoints.items():
        trigger.click(
            method,
            None,
            list(answers) if isinstance(answers, Sequence) else answers,
            inputs_kwargs={str(field.label): field for field in fields},
            api_name=method.__name__,
            api_description=" ".join((method.__doc__ or "").split()),
            concurrency_limit=None,  # the engine and the library have their own queues
        )

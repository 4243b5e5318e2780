"""Gradio's Blocks with the studio's own check of strings, before any of its endpoints."""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.errors import InvalidRequest
from studio.strings import check_strings


class CheckedBlocks(gr.Blocks):
    """Gradio parses the bodies of its endpoints itself, and lets every string through."""

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *more: Any, **named: Any) -> Any:
        for block, value in zip(block_fn.inputs, inputs, strict=False):
            try:
                check_strings(value, getattr(block, "label", None))
            except InvalidRequest as error:
                raise gr.Error(str(error), title="The studio cannot read this", print_exception=False) from error
        return await super().preprocess_data(block_fn, inputs, *more, **named)

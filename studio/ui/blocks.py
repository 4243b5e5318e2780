"""Gradio's Blocks as the studio needs them: strings are checked, and a queue with nothing to do hardly wakes."""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.data_classes import BlocksConfigDict

from studio.errors import InvalidRequest
from studio.strings import check_strings

QUEUE_LOOKS_EVERY = 0.02
PROGRESS_LOOKS_EVERY = 0.1
"""Seconds. Gradio's own (6.31: 0.001 and 0.01) take a twelfth of a slow core from the server's loop at rest."""


class StudioBlocks(gr.Blocks):
    """A call through Gradio may wait ``QUEUE_LOOKS_EVERY`` until it is seen; the page calls the studio's own API."""

    def queue(self, *given: Any, **named: Any) -> StudioBlocks:
        super().queue(*given, **named)
        self._queue.sleep_when_free = QUEUE_LOOKS_EVERY
        self._queue.progress_update_sleep_when_free = PROGRESS_LOOKS_EVERY
        return self

    def get_config_file(self) -> BlocksConfigDict:
        """Of the pages of ours only the first is to be seen: told of others, Gradio puts a bar with links above it."""
        config = super().get_config_file()
        config["pages"] = config["pages"][:1]
        return config

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *more: Any, **named: Any) -> Any:
        """Gradio parses the bodies of its endpoints itself, and lets every string through."""
        for block, value in zip(block_fn.inputs, inputs, strict=False):
            try:
                check_strings(value, getattr(block, "label", None))
            except InvalidRequest as error:
                raise gr.Error(str(error), title="The studio cannot read this", print_exception=False) from error
        return await super().preprocess_data(block_fn, inputs, *more, **named)

"""Aligns spoken text with its frames, on a separate thread beside those that generate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from engine.checkpoint import Checkpoint
from engine.engine_errors import STOPPED, EngineStopped, PromptTooLong
from engine.model.alignment import AttentionPath, character_times, token_starts
from engine.model.prompt import build_prompt
from engine.transfer import keep_stream
from engine.types import MAX_FRAMES, EngineInfo, Utterance


class Aligner:
    """Aligns one text at a time, in one pass of the slow AR over text and frames: no voice, no cache, no rows."""

    def __init__(self, checkpoint: Checkpoint, info: EngineInfo, stop_reason: Callable[[], str | None]) -> None:
        """``stop_reason``: why the engine accepts no more work; None while it runs."""
        self._checkpoint, self._info, self._stop_reason = checkpoint, info, stop_reason
        self._device = checkpoint.model.slow.norm.weight.device
        self._thread = ThreadPoolExecutor(1, "aligner", keep_stream, (self._device,))

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Like `Engine.align`."""
        try:
            future = self._thread.submit(self.now, text, codes)
        except RuntimeError as error:  # the thread has ended
            raise EngineStopped(self._stop_reason() or STOPPED) from error
        return await asyncio.wrap_future(future)

    @torch.inference_mode()
    def now(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Align in the calling thread."""
        if stop_reason := self._stop_reason():
            raise EngineStopped(stop_reason)
        utterance = Utterance(text, max_frames=MAX_FRAMES, so_far=codes)
        frames = utterance.frames_so_far
        if not frames:
            return np.zeros(len(text) + 1)
        model, tokenizer = self._checkpoint.model, self._checkpoint.tokenizer
        prompt = build_prompt(utterance, tokenizer, self._checkpoint.config)
        steps = len(prompt)
        if steps > self._checkpoint.config.max_context:
            raise PromptTooLong(
                f"text and frames take {steps} positions together, but the model has only "
                f"{self._checkpoint.config.max_context}; they cannot be aligned"
            )
        spans = tokenizer.spans(text)
        frame_steps = slice(steps - frames - 1, steps - 1)  # a frame is sampled at the step before it
        alignment = AttentionPath(frame_steps, slice(prompt.prefix, prompt.prefix + len(spans)))
        model.slow(model.embed_prompt(prompt), torch.arange(steps, device=self._device)[None], alignment)
        starts = token_starts(alignment.path, len(spans))
        return character_times(text, spans, starts / self._info.frame_rate)

    def stop(self) -> None:
        """End the thread; waiting callers get EngineStopped."""
        self._thread.shutdown()

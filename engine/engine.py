"""The engine's facade: start, speak, encode_reference, stats, stop. It knows no voices' names, no formats, no web."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np

from engine.config import EngineConfig
from engine.types import AudioChunk, EngineInfo, EngineStats, Reference, Utterance

Progress = Callable[[str, float], None]
"""Called with what is being done and how far it is, 0 to 1, while the engine starts."""


class Engine:
    """One model on one device, speaking many utterances at once.

    Any number of tasks, on any event loops, may call `speak` and `encode_reference`;
    one thread of the engine's own does all the work.
    """

    info: EngineInfo

    @classmethod
    def start(cls, config: EngineConfig, progress: Progress | None = None) -> Engine:
        """Load the checkpoint, warm up and return a ready engine. Blocking: seconds.

        Raises CheckpointError, ConfigError.
        """
        raise NotImplementedError

    def speak(self, utterance: Utterance) -> AsyncIterator[AudioChunk]:
        """The take, chunk by chunk, while it is made.

        Nothing happens before the first iteration. Leaving the iteration (break, aclose, cancel)
        **is** cancelling: the row is free within one frame. The last chunk has a finish_reason.

        Raises at the first iteration: PromptTooLong and other InvalidUtterance, EngineFull, EngineStopped;
        later: EngineStopped.
        """
        raise NotImplementedError

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """Encode a clip: float32 (samples,) or (channels, samples) at sample_rate Hz, with the words spoken in it.

        Raises InvalidReference (empty, not finite, too short or long), EngineStopped.
        """
        raise NotImplementedError

    def stats(self) -> EngineStats:
        """A snapshot, cheap enough for every health check."""
        raise NotImplementedError

    def stop(self) -> None:
        """End every take with EngineStopped, free the device, join the thread. Calling it again does nothing."""
        raise NotImplementedError

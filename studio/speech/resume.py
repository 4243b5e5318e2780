"""Continuing a take that a limit cut: what it has so far, and its sound before what comes now, as one take."""

from __future__ import annotations

import wave
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine import EngineInfo
from studio.audio.encode import floats
from studio.errors import CannotContinue, InvalidRequest, StudioError
from studio.library import Library
from studio.library.takes.take import SpokenPart, Take
from studio.speech.script_stream import Sound, next_sound
from studio.threads import in_threads


def made_by(info: EngineInfo) -> str:
    """Tells one model and codec from another, wherever their files lie."""
    return f"{info.model.rstrip('/').rpartition('/')[2]} {info.codec_fingerprint}"


@dataclass(frozen=True, eq=False, slots=True)
class Beginning:
    """What a continued take begins with: the parts of the one before, of which the last may end in its middle, and
    its sound, at the engine's rate."""

    take: Take
    sound: Path
    parts: tuple[SpokenPart, ...]

    @property
    def frames(self) -> int:
        return sum(part.codes.shape[1] for part in self.parts)

    async def followed_by(self, new: AsyncGenerator[Sound, None]) -> AsyncGenerator[Sound, None]:
        """Its sound and then the new one, whose first piece is there before anything is given out.

        So a refusal of the engine comes before the first byte.
        """
        async with aclosing(new):
            first = await next_sound(new)
            if first is None:
                raise CannotContinue("it is already complete", "take_id")
            frames = self.frames
            resumed_at = frames if self.take.resumed_at is None else self.take.resumed_at
            ended = len(self.parts) - sum(not part.is_whole for part in self.parts[-1:])  # that one ends in what comes
            parts = self.parts[:ended]
            async with aclosing(in_threads(_seconds(self.sound))) as pieces:
                async for pcm in pieces:
                    yield Sound(
                        pcm,
                        frames,
                        first.waited,
                        first.worked,
                        parts=parts,
                        resumed_at=resumed_at,
                        continues=self.take.id,
                    )
                    frames, parts = 0, ()
            yield first
            async for sound in new:
                yield sound


def beginning_of(take: Take, sound: Path, library: Library, info: EngineInfo, limit: int | None) -> Beginning:
    """What it takes to continue a kept take up to ``limit`` frames in all. Blocking.

    Raises CannotContinue, which says why not, and InvalidRequest for a limit that is reached already.
    """
    codes = library.takes.codes(take.id)
    if codes is None or not take.can_continue:
        why = {
            "length": "dialogues cannot, nor takes at another speed or with an uploaded clip",
            "stop": "it is already complete",
        }.get(take.finish_reason or "", "it was not ended by a limit")
        raise CannotContinue(f"the take {take.id} cannot be continued: {why}", "take_id")
    if codes.made_by != made_by(info):
        raise CannotContinue(
            f"the take {take.id} was spoken by another model or codec than the one that is loaded "
            f"({codes.made_by}, not {made_by(info)}); speak it again",
            "take_id",
        )
    if take.voice_id is not None and not library.voices.exists(take.voice_id):
        raise CannotContinue(
            f"the voice {take.label}, in which the take {take.id} was spoken, is no longer in the library; restore "
            "the voice, or generate the take in another one",
            "take_id",
        )
    beginning = Beginning(take, sound, codes.parts)
    if limit is not None and limit <= beginning.frames:
        raise InvalidRequest(
            f"max_new_tokens includes the {beginning.frames} frames already generated; raise it or leave it out",
            "max_new_tokens",
        )
    return beginning


def _seconds(sound: Path) -> Generator[np.ndarray, None, None]:
    """A kept WAV, a second at a time: float32 (samples,). Blocking. Raises StudioError when it is damaged or gone."""
    try:
        with wave.open(str(sound), "rb") as file:
            while data := file.readframes(file.getframerate()):
                yield floats(data)
    except (OSError, EOFError, wave.Error) as error:
        raise StudioError(f"the audio file {sound.name[:12]}… in the library cannot be read: {error}") from error

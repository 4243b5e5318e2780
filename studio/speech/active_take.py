"""An active take: everything known about it from its plan to its end, its audio for the library, its cancellation."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from shutil import disk_usage
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from audio.encode import pcm16, wav_header
from engine import EngineError
from studio.errors import REFUSALS, Cancelled
from studio.library.audio_files import Piece
from studio.library.records import OWN_CLIP, RANDOM
from studio.library.take import NewTake, SpokenPart, Take, TakeCodes
from studio.speech.plan import Plan
from studio.speech.recorder import MAX_FILES, SPILL, SPILL_SPARES, Recorder
from studio.speech.register import Register
from studio.speech.request import Origin, SpeechRequest
from studio.speech.script_stream import Sound, next_sound
from studio.work import CancelToken, run_uninterrupted

CANCELLED = "the request was cancelled"
SILENCE_SECONDS = 0.1
"""The audio for a text without any sound, such as a single full stop: players, and programs that expect a file, cannot
handle an empty one."""


class ActiveTake(CancelToken):
    """One take: get its audio with `next`, `begin` it with its first bytes, `finish` it when complete, `end` it in any
    case."""

    def __init__(
        self,
        draft: Take,
        made_by: str,
        sample_rate: int,
        register: Register,
        recorder: Recorder | None = None,
        speed: float = 1.0,
        is_background: bool = False,
    ) -> None:
        """``draft``: its record at the start. ``made_by`` identifies the model, as in TakeCodes.

        ``sample_rate``: of its audio in Hz, which is delivered at ``speed``. ``recorder`` stores it at the end; None
        stores nothing. ``is_background``: as in `Origin.background`.
        """
        super().__init__(lambda: Cancelled(self._reason))
        self._start_time = time.perf_counter()
        self.record = draft
        """The take so far with its text, as stored in a library."""
        self._made_by = made_by
        self._sample_rate = sample_rate
        self._speed = speed
        self._register = register
        self._recorder = recorder
        self.is_background = is_background
        self._reason = CANCELLED
        self.on_cancel: Callable[[], None] = lambda: None
        """Called by `cancel`, which alone ends only work that is being awaited."""
        self._samples = 0
        self._parts: list[SpokenPart] = []
        """The parts that are complete."""
        self._is_unfinished = False
        self._sound: list[Piece] = []
        """The audio for the library: 16-bit mono."""
        self._held = 0  # bytes of it in memory
        self._file: IO[bytes] | None = None
        self._spills_at = SPILL  # of these bytes, it is moved to a file
        self._has_room = True
        register.add(self)
        if recorder is not None:
            recorder.open(self)

    @property
    def take(self) -> Take:
        """The take so far without its text, for lists."""
        return self.record.without_words()

    @property
    def codes(self) -> TakeCodes:
        """The codes of the parts that are complete."""
        return TakeCodes(self._made_by, tuple(self._parts))

    @property
    def seconds_of_file(self) -> float:
        """Seconds of audio so far, as delivered."""
        return self._samples / self._sample_rate / self._speed

    def cancel(self, reason: str = CANCELLED) -> None:
        """Cancel the take from outside: its listener gets Cancelled, with the reason."""
        self._reason = reason
        super().cancel()
        self.on_cancel()

    async def next(self, sounds: AsyncGenerator[Sound, None]) -> Sound | None:
        """Return the next piece and count it; None at the end. Raises Cancelled after `cancel`."""
        sound = await self.run(next_sound(sounds))
        if sound is not None and sound.finish_reason and not self._samples + len(sound.pcm):
            silence = np.zeros(round(SILENCE_SECONDS * self._speed * self._sample_rate), np.float32)
            sound = replace(sound, pcm=silence)
        if sound is not None:
            self._add(sound)
        return sound

    def forget(self) -> None:
        """Store nothing of this take in the library."""
        if self._recorder is not None:
            self._drop_sound(self._recorder)
            self._recorder.close(self, None)
        self._recorder = None

    def write(self, pcm: np.ndarray) -> None:
        """Add (samples,) float32 to the audio for the library. Any thread may call it."""
        if self._recorder is None or not self._has_room or not (piece := pcm16(pcm)):
            return
        if self._recorder.reserve(len(piece)):
            self._sound.append(piece)
            self._held += len(piece)
        else:  # half a take would sound like a fault of the model, so drop the audio
            self._drop_sound(self._recorder)
            self._has_room = False

    async def spill(self) -> None:
        """Move the audio for the library from memory to a temporary file, if there is much of it."""
        if self._recorder is not None and self._held >= self._spills_at:
            await run_uninterrupted(self._spill, self._recorder)
            self._spills_at = SPILL + self._held  # without room on the disk, try again later

    def _spill(self, recorder: Recorder) -> None:
        """Blocking."""
        size = sum(map(len, self._sound))
        files = sum(isinstance(piece, mmap) for waiting in recorder.waiting() for piece in waiting.audio[1:2])
        with suppress(OSError):
            if disk_usage(recorder.folder).free < SPILL_SPARES or (self._file is None and files >= MAX_FILES):
                return
            self._file = self._file or TemporaryFile(dir=recorder.folder)  # noqa: SIM115  # `end` closes it
            self._file.seek(size - self._held)
            self._file.writelines(piece for piece in self._sound if isinstance(piece, bytes))
            self._file.flush()
            self._sound[:] = [mmap(self._file.fileno(), size, access=ACCESS_READ)]
            recorder.release(self._held)
            self._held = 0

    def begin(self) -> None:
        """Mark the first bytes as ready."""
        self._change(state="speaking", first_audio_ms=(time.perf_counter() - self._start_time) * 1000)

    def _add(self, sound: Sound) -> None:
        self._samples += len(sound.pcm)
        seconds, speed = self._samples / self._sample_rate, self._speed
        self._change(
            queue_ms=sound.waited * 1000,
            generation_s=sound.worked,
            audio_s=seconds,
            seconds=seconds,
            frames=self.record.frames + sound.frames,
            finish_reason=sound.finish_reason,
            turns=tuple(replace(turn, start_s=turn.start_s / speed, end_s=turn.end_s / speed) for turn in sound.turns),
            resumed_at=sound.resumed_at if self.record.resumed_at is None else self.record.resumed_at,
            continues=self.record.continues or sound.continues,
        )
        end = seconds / speed
        self._parts += [part if part.end is not None else replace(part, end=end) for part in sound.parts]
        self._is_unfinished |= sound.is_unfinished

    def finish(self) -> None:
        """Mark the take as completely generated and encoded."""
        self._change(state="finished")

    def end(self, error: BaseException | None = None) -> None:
        """Complete the record, with ``error`` if that ended the take, and pass the take to the library."""
        if isinstance(error, (EngineError, *REFUSALS)) and not isinstance(error, Cancelled):
            self._change(state="failed", error=str(error))
        elif not self.record.ended:
            self._change(state="cancelled")
        self._register.leave(self.take)
        if self._recorder is not None:
            # Callers who left before the first sound would fill the history with takes that nobody can hear.
            self._recorder.close(self, self._new_take if self._sound or not self._has_room else None)
            self._sound = []
            self._close_file()

    @property
    def _new_take(self) -> NewTake:
        """The take to store. Takes at another tempo, or with an uploaded clip, cannot be continued."""
        take, size = self.record, sum(map(len, self._sound))
        if not size:
            return NewTake(take)
        is_resumable = take.parameters.get("speed", 1) == 1 and take.voice != OWN_CLIP
        take = replace(
            take,
            media_type="audio/wav",
            sample_rate=self._sample_rate,
            seconds=size / 2 / self._sample_rate,
            can_continue=self._is_unfinished and bool(self._parts) and take.state == "finished" and is_resumable,
        )
        audio = [wav_header(self._sample_rate, size // 2), *self._sound]
        return NewTake(take, audio, self.codes if self._parts else None)

    def _drop_sound(self, recorder: Recorder) -> None:
        recorder.release(self._held)
        self._held = 0
        self._sound.clear()
        self._close_file()  # the take may go on for long

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # what a full disk did not take
                self._file.close()

    def _change(self, **figures: Any) -> None:
        self.record = replace(self.record, **figures)


def draft_of(request: SpeechRequest, plan: Plan, origin: Origin) -> Take:
    """The record of a new take, with everything needed to generate it again, except uploaded clips."""
    voice = OWN_CLIP if request.clips else plan.voice.address if plan.voice else RANDOM
    return Take(
        id=origin.request_id,
        created=time.time(),
        caller=origin.caller,
        live=origin.live,
        text=request.text,
        voice_id=plan.voice.id if plan.voice and not plan.voice.speaker and not plan.is_dialogue else None,
        voice=plan.label if plan.is_dialogue else voice,
        seed=plan.seed,
        parameters={
            "temperature": plan.sampling.temperature,
            "top_p": plan.sampling.top_p,
            "top_k": plan.sampling.top_k,
            "max_new_tokens": plan.budget,
            "speed": request.speed,
            "chunk_length": request.chunk_length,
            "response_format": request.format,
            "sample_rate": request.sample_rate,
            "read_as": plan.read_as,
            "normalize": request.normalize,
            "dictionary": request.dictionary,
            "language": request.language,
            "instructions": request.instructions or None,
        }
        | (_dialogue(request, plan, voice) if plan.is_dialogue else {}),
    )


def _dialogue(request: SpeechRequest, plan: Plan, voice: str) -> dict[str, object]:
    """Every speaker's voice in its revision; ``voice`` is for text before the first name, if any.

    The sampling stays as requested: each voice has its own defaults. ``voice_ids``: the voices to which the names
    referred.
    """
    cast = {part.speaker: part.voice.address if part.voice else RANDOM for part in plan.parts if part.speaker}
    is_named = all(part.speaker for part in plan.parts)
    sampling = {name: value for name, value in request.requested_sampling.items() if name != "seed"}
    ids = {part.voice.address: part.voice.id for part in plan.parts if part.voice and not part.voice.speaker}
    return sampling | {"cast": cast, "turn_gap": plan.gap, "voice": None if is_named else voice, "voice_ids": ids}

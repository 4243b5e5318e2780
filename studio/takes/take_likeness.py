"""Compares a stored take with the clip of its voice, or with another clip, and finds reasons for a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from audio import Cut
from audio.advisor import Finding, advise
from audio.voiceprint import NO_SPANS, mean_print, percent_alike
from studio.errors import NoLikeness, NotOffered
from studio.library import Library, Sample, Voice
from studio.library.take import Take
from studio.takes.take_export import decoded
from studio.voices.clip_service import ClipService, ClosestVoice, LibraryPrints
from studio.voices.intake import sound_of
from studio.work import WorkQueue, read

HEARD_SECONDS = 20.0
"""Seconds of a take that are compared."""
CLOSE, NEAR = 70, 40
"""Minimum per cent for a take that sounds like the person, and for one that resembles them."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """``percent``: 100 as for two recordings of one person, 0 as for two people."""

    percent: int
    closest: ClosestVoice | None
    """None where the take's own voice is a bundled one, or no bundled one is near."""
    findings: tuple[Finding, ...]
    """Faults of the clip that may be the reason, if a take is not close."""

    def as_json(self) -> dict[str, Any]:
        grade = "close" if self.percent >= CLOSE else "near" if self.percent >= NEAR else "far"
        return {"grade": grade} | asdict(self)


class TakeLikeness:
    """Compares the takes of a library. Used from one event loop."""

    def __init__(self, library: Library, library_prints: LibraryPrints, clips: ClipService, queue: WorkQueue) -> None:
        """``queue``: for decoding takes and clips and computing their prints."""
        self._library, self._library_prints, self._clips, self._queue = library, library_prints, clips, queue

    async def to_voice(self, take: Take, path: Path, caller: str) -> Likeness:
        """The likeness of a take, by its audio file, to the clips of its voice.

        Raises NotOffered, NoLikeness, NotFound (its voice is gone), QueueFull, TooManyRequests, DamagedAudio.
        """
        self._check()
        if take.voice_id is None or take.turns:
            why = f"the take {take.id} is not in one voice of the library"
            raise NoLikeness(f"{why}; to compare it with a clip, POST the clip")
        revision = "" if take.revision is None else f"@{take.revision}"
        voice = await read(self._library.seen_by(caller).voices.get, f"{take.voice_id}{revision}")
        return await self._queue.run(caller, self._to_voice, take, path, caller, voice)

    async def to_clip(self, take: Take, path: Path, caller: str, data: bytes, cut: Cut, param: str) -> Likeness:
        """The likeness of a take, by its audio file, to a clip.

        Raises NotOffered, NoLikeness, InvalidClip, QueueFull, TooManyRequests, DamagedAudio.
        """
        self._check()
        intake = await self._clips.suggest(caller, data, "", cut, param)
        given = take, path, caller, intake.spans, lambda: intake.advice.findings
        return await self._queue.run(caller, self._compare, *given)

    def _check(self) -> None:
        if not self._library_prints.prints.is_there:
            raise NotOffered("this studio cannot identify voices: assets/fry/voiceprint.npz is missing", "take_id")

    def _to_voice(self, take: Take, path: Path, caller: str, voice: Voice) -> Likeness:
        """Blocking: about 40 ms for the take, and as much for each clip not read before."""
        sample_spans = [self._library_prints.spans(sample) for sample in voice.samples]
        voice_spans = np.concatenate([NO_SPANS, *sample_spans])
        likeness = self._compare(take, path, caller, voice_spans, lambda: self._advice(voice.samples, sample_spans))
        return replace(likeness, closest=None) if voice.bundled else likeness

    def _compare(
        self, take: Take, path: Path, caller: str, clip_spans: np.ndarray, findings: Callable[[], Iterable[Finding]]
    ) -> Likeness:
        """``clip_spans``: the clip's prints (spans, 256). Blocking."""
        prints = self._library_prints.prints.spans(*_beginning(take, path))
        if not len(prints) or not len(clip_spans):
            raise NoLikeness(f"the take {take.id} or the clip has less than a second of speech")
        percent = percent_alike(mean_print(prints), mean_print(clip_spans))
        closest = self._library_prints.closest(prints, caller)
        reasons = () if percent >= CLOSE else tuple(finding for finding in findings() if finding.severity != "hint")
        return Likeness(percent, closest if closest and closest.percent >= NEAR else None, reasons)

    def _advice(self, samples: Sequence[Sample], prints: Sequence[np.ndarray]) -> Iterator[Finding]:
        for sample, spans in zip(samples, prints, strict=True):
            clip = sound_of(self._library.voices.clip(sample), sample.cut)
            yield from advise(clip, sample.text, sample.cut, spans).findings


def _beginning(take: Take, path: Path) -> tuple[np.ndarray, int]:
    """Float32 mono samples (samples,) of a take's first seconds, and their rate."""
    pieces, remaining = [], round(HEARD_SECONDS * take.sample_rate)
    for piece in decoded(path, take.sample_rate):
        pieces.append(piece[:remaining])
        remaining -= len(piece)
        if remaining <= 0:
            break
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32), take.sample_rate

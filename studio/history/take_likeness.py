"""How much a kept take sounds like the clip of its voice, and why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from anyio import to_thread

from studio.errors import NoLikeness, NotOffered
from studio.history.take_export import decoded
from studio.library import Library, Sample, Voice
from studio.library.takes.take import Take
from studio.voices.advisor import Finding, advise
from studio.voices.hearing.voiceprint import Voiceprints, is_one_person, mean_print, percent_alike
from studio.voices.intake import sound_of
from studio.work.work_queue import WorkQueue

HEARD_SECONDS = 20.0
"""Of a take."""
CLOSE, NEAR = 70, 40
"""Per cent from which a take sounds like the person, and from which it resembles them."""
REMEMBERED = 200
"""Clips whose prints are kept in memory, 8 kB each."""
_SPANS = 8
"""Of a clip: enough to tell that two people speak."""
_TWO_PEOPLE = Finding("people", "bad", "Two people seem to speak in the clip; use a part where only one does.")


@dataclass(frozen=True, slots=True)
class Closest:
    """The bundled voice that a take sounds most like."""

    id: str
    name: str
    percent: int


@dataclass(frozen=True, slots=True)
class Likeness:
    """100 per cent: as alike as two recordings of one person; 0: as two people are."""

    percent: int
    closest: Closest | None
    """None where the take's own voice is a bundled one, or no bundled one is near."""
    findings: tuple[Finding, ...]
    """What in the clip may be the reason, where a take is not close."""

    def as_json(self) -> dict[str, Any]:
        grade = "close" if self.percent >= CLOSE else "near" if self.percent >= NEAR else "far"
        return {"grade": grade} | asdict(self)


class TakeLikeness:
    """Of the takes of a library. Used from one event loop."""

    def __init__(self, library: Library, prints: Voiceprints, queue: WorkQueue) -> None:
        """``queue``: in which takes and clips are decoded and read."""
        self._library, self._prints, self._queue = library, prints, queue
        self._known: dict[str, np.ndarray] = {}

    async def get(self, take: Take, path: Path, caller: str) -> Likeness:
        """Of a take and its audio file.

        Raises NotOffered, NoLikeness, NotFound (its voice is gone), QueueFull, TooManyRequests, StudioError (damaged).
        """
        if not self._prints.is_there:
            raise NotOffered("this studio cannot tell voices: assets/fry/voiceprint.npz is missing", "take_id")
        if take.voice_id is None or take.turns:
            raise NoLikeness(f"the take {take.id} is not in one voice of the library, so there is no clip to compare")
        revision = "" if take.revision is None else f"@{take.revision}"
        voice = await to_thread.run_sync(self._library.voices.get, f"{take.voice_id}{revision}")
        return await self._queue.run(caller, self._compare, take, path, voice)

    def _compare(self, take: Take, path: Path, voice: Voice) -> Likeness:
        """Blocking: some 40 ms for the take, and as much for each clip not yet read."""
        heard = self._prints.spans(*_beginning(take, path))
        own = [self._spans(sample) for sample in voice.samples]
        if not len(heard) or not any(map(len, own)):
            raise NoLikeness(f"the take {take.id} or its clip has less than a second of speech")
        print_of_take = mean_print(heard)
        percent = percent_alike(print_of_take, mean_print(np.concatenate(own)))
        closest = None if voice.bundled else self._closest(print_of_take)
        findings = () if percent >= CLOSE else tuple(self._reasons(voice.samples, own))
        return Likeness(percent, closest, findings)

    def _closest(self, print_of_take: np.ndarray) -> Closest | None:
        found = [
            Closest(voice.id, voice.name, percent_alike(print_of_take, mean_print(spans)))
            for voice in self._library.voices.page(bundled=True)
            if voice.samples and len(spans := self._spans(voice.samples[0]))
        ]
        nearest = max(found, key=lambda closest: closest.percent, default=None)
        return nearest if nearest and nearest.percent >= NEAR else None

    def _reasons(self, samples: Sequence[Sample], prints: Sequence[np.ndarray]) -> Iterator[Finding]:
        for sample, spans in zip(samples, prints, strict=True):
            if not is_one_person(spans):
                yield _TWO_PEOPLE
            clip = sound_of(self._library.voices.clip(sample), sample.cut)
            yield from (each for each in advise(clip, sample.text, sample.cut).findings if each.severity != "hint")

    def _spans(self, sample: Sample) -> np.ndarray:
        spans = self._known.get(sample.cut_key)
        if spans is None:
            clip = sound_of(self._library.voices.clip(sample), sample.cut)
            spans = self._known[sample.cut_key] = self._prints.spans(clip.pcm, clip.sample_rate, _SPANS)
            while len(self._known) > REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
        return spans


def _beginning(take: Take, path: Path) -> tuple[np.ndarray, int]:
    """Float32 mono samples (samples,) of a take's first seconds, and their rate."""
    pieces, left = [], round(HEARD_SECONDS * take.sample_rate)
    for piece in decoded(path, take.media_type, take.sample_rate):
        pieces.append(piece[:left])
        left -= len(piece)
        if left <= 0:
            break
    return np.concatenate(pieces) if pieces else np.zeros(0, np.float32), take.sample_rate

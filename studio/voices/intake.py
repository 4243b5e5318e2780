"""Accepts reference clips: judges a cut of untrusted bytes, or refuses them with the reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from audio import Cut, InvalidClip
from audio.advisor import Advice, advise
from audio.loudness import amplitude
from audio.read import GRACE_SECONDS, MAX_SECONDS, MEDIA_TYPES, STEP, Clip, container_of, read_clip, read_levels
from audio.voiceprint import NO_SPANS, Voiceprints
from studio.library.records import NewSample

MAX_GAIN_DB = 40.0  # in either direction; a clip that needs more is mostly noise
_SUGGESTED = 15.0
"""Seconds of the span suggested for a longer file."""


@dataclass(frozen=True, eq=False, slots=True)
class Intake:
    """An accepted clip: its unchanged file, the audio of its cut, and the advice."""

    data: bytes = field(repr=False)
    media_type: str
    cut: Cut
    clip: Clip
    advice: Advice
    spans: np.ndarray = field(repr=False)
    """Its voiceprints (spans, 256); empty if they were not computed."""

    def as_json(self) -> dict[str, Any]:
        """The judged cut and its advice."""
        return {"seconds": self.clip.seconds, "cut": asdict(self.cut)} | asdict(self.advice)

    def sample(self, text: str, speaker: int = 0) -> NewSample:
        """The sample to store in the library, with the transcript of the cut."""
        return NewSample(
            data=self.data,
            media_type=self.media_type,
            clip_seconds=round(self.cut.start + self.clip.seconds, 4),
            text=text.strip(),
            cut=self.cut,
            seconds=round(self.clip.seconds, 4),
            score=self.advice.score,
            quality=self.advice.figures,
            speaker=speaker,
        )


def take_in(
    data: bytes, text: str = "", cut: Cut | None = None, param: str | None = None, prints: Voiceprints | None = None
) -> Intake:
    """Read, check and judge a clip. Blocking: a tenth of a second for a long one.

    With ``prints`` it also checks whether one person speaks.
    Raises InvalidClip for a file that is not audio, broken, silent, not finite, or not 1 to 30 s long as cut.
    """
    cut = cut or Cut()
    clip = sound_of(data, cut, param)
    spans = prints.of_clip(clip) if prints else NO_SPANS
    return Intake(data, MEDIA_TYPES[container_of(data, param)], cut, clip, advise(clip, text, cut, spans), spans)


def take_in_best(
    data: bytes, text: str, cut: Cut, param: str | None = None, prints: Voiceprints | None = None
) -> Intake:
    """Like `take_in`, but picks the best span of a file that is too long and not cut. Blocking."""
    if not cut.start and cut.end is None:
        span = suggest_span(data, param)
        cut = replace(cut, start=span.start, end=span.end)
    return take_in(data, text, cut, param, prints)


def sound_of(data: bytes, cut: Cut, param: str | None = None) -> Clip:
    """The audio of a clip's cut, as encoded and previewed. Blocking.

    Raises InvalidClip, which names the field of the cut if that is wrong, and ``param`` for the file.
    """
    if not -MAX_GAIN_DB <= cut.gain_db <= MAX_GAIN_DB:
        raise InvalidClip(f"the gain must be from {-MAX_GAIN_DB:g} to {MAX_GAIN_DB:g} dB", "gain_db")
    clip = read_clip(data, param, cut.start, cut.end, cut.channel)
    if not cut.gain_db:
        return clip
    amplified = np.clip(clip.pcm * np.float32(amplitude(cut.gain_db)), -1, 1)
    return replace(clip, pcm=amplified)


def suggest_span(data: bytes, param: str | None = None) -> Cut:
    """Find a cut of a file that is too long: the span with the most speech that begins and ends in pauses. Blocking.

    A file of up to 30 s is not cut. Raises InvalidClip.
    """
    levels, seconds = read_levels(data, param)
    if seconds <= MAX_SECONDS + GRACE_SECONDS:
        return Cut()
    levels = np.nan_to_num(levels)
    window = round(0.2 / STEP)
    smoothed = np.convolve(levels, np.ones(window) / window, mode="same")
    is_quiet = smoothed < np.percentile(smoothed, 95) * 0.1
    pauses = np.flatnonzero(is_quiet[1:-1] & ~is_quiet[2:]) + 1  # the last quiet step before each stretch of speech
    length = round(_SUGGESTED / STEP)
    cumulative = np.concatenate([[0], np.cumsum(~is_quiet)])
    best = (-1, 0, length)
    for start in [0, *pauses.tolist()]:
        ends = pauses[(pauses > start + length // 2) & (pauses <= start + length)]
        end = int(ends[-1]) if len(ends) else min(start + length, len(levels))
        best = max(best, (int(cumulative[end] - cumulative[start]), -start, end))
    return Cut(start=round(-best[1] * STEP, 3), end=round(best[2] * STEP, 3))

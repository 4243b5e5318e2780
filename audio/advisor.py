"""The advisor: describes strengths and faults of a reference clip, with a fix if possible."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from audio import Cut
from audio.measure import QUIET_DB, SPEECH_DB, Figures, gain_to_usual, measure, to_decibels
from audio.read import Clip
from audio.voiceprint import NO_SPANS, is_one_person

Severity = Literal["bad", "poor", "hint"]

PENALTIES: dict[Severity, int] = {"bad": 35, "poor": 15, "hint": 5}
TAIL = 0.4
"""Seconds of silence to keep around speech: less makes words bleed into the speech, more teaches pauses."""

_WIDE_FROM = "\u2e80"
"""Caseless letters from this code point on are ideographs, kana and hangul, each about as long as 2.5 other letters."""
SLOW, FAST = 5.0, 27.0
"""Plausible letters per second of speech; outside this range the transcript hardly belongs to the clip."""
WHISPER = 0.3  # minimum share of speech with a pitch; less is a whisper, or noise


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation about a clip."""

    code: str
    severity: Severity
    message: str
    fix: str | None = None  # the effect of the fix, in words, if there is one
    cut: Cut | None = None  # the cut that applies the fix
    values: dict[str, float] = field(default_factory=dict)
    """The numbers in message and fix, by name, for translations."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A score from 0 to 100, the reasons for it, the measurements, and the cut with every fix applied."""

    score: int
    findings: tuple[Finding, ...]
    figures: dict[str, float]
    fixed: Cut


def advise(clip: Clip, text: str, cut: Cut, spans: np.ndarray = NO_SPANS) -> Advice:
    """Judge a clip as cut, and its transcript (blank: unknown). ``spans``: its voiceprints (spans, 256), if known."""
    figures = measure(clip.pcm, clip.sample_rate)
    findings = (*_people(spans), *_findings(clip, figures, text, cut))
    fixed = cut
    for finding in findings:
        if finding.cut is not None:
            fixed = _merge(fixed, finding.cut, cut)
    score = max(0, 100 - sum(PENALTIES[finding.severity] for finding in findings))
    return Advice(score, findings, figures.as_dict() | _rate_figure(text, figures), fixed)


def letters_per_second(text: str, seconds: float) -> float:
    """Letters and digits per second; an ideograph, kana or hangul counts as 2.5."""
    weight = 0.0
    for sign in text:
        if unicodedata.category(sign)[0] in "LN":
            weight += 2.5 if sign >= _WIDE_FROM and unicodedata.category(sign) == "Lo" else 1
    return weight / max(seconds, 0.1)


def _findings(clip: Clip, figures: Figures, text: str, cut: Cut) -> Iterator[Finding]:
    yield from _length(figures)
    yield from _channels(clip, cut)
    yield from _level(figures, cut)
    yield from _voicing(figures)
    yield from _noise(figures)
    yield from _ends(figures, cut, clip)
    yield from _words(figures, text)


def _people(spans: np.ndarray) -> Iterator[Finding]:
    if not is_one_person(spans):
        yield Finding("people", "bad", "Two people seem to speak in the clip; use a part where only one does.")


def _length(figures: Figures) -> Iterator[Finding]:
    speech = figures.seconds - figures.head - figures.tail
    if speech < 3:
        message = f"Only {speech:.1f} s of speech; 5 to 20 s sound closer to the person."
        yield Finding("short", "poor", message, values={"seconds": round(speech, 1)})
    elif speech < 5:
        message = f"{speech:.1f} s of speech is enough; 5 to 20 s are better."
        yield Finding("short", "hint", message, values={"seconds": round(speech, 1)})


def _channels(clip: Clip, cut: Cut) -> Iterator[Finding]:
    if cut.channel is None and clip.channel is not None:
        message = f"The channels cancel each other out; channel {clip.channel + 1} alone is used."
        yield Finding("channels", "hint", message, values={"channel": clip.channel + 1})


def _level(figures: Figures, cut: Cut) -> Iterator[Finding]:
    if figures.clipped > 2e-4:
        severity: Severity = "bad" if figures.clipped > 2e-3 else "poor"
        message = f"{figures.clipped:.2%} of it is clipped: record again with a lower input level."
        yield Finding("clipping", severity, message, values={"percent": round(100 * figures.clipped, 2)})
    gain = gain_to_usual(figures.speech_db, figures.peak_db)
    if figures.speech_db < QUIET_DB and gain > 1:
        raised = replace(cut, gain_db=round(cut.gain_db + gain, 1))
        values: dict[str, float] = {"level": round(figures.speech_db), "gain": round(gain)}
        message = f"Speech is quiet: {figures.speech_db:.0f} dB."
        yield Finding("quiet", "poor", message, f"raise by {gain:.0f} dB", raised, values)
    elif figures.speech_db > -10:
        lower = SPEECH_DB - figures.speech_db
        lowered = replace(cut, gain_db=round(cut.gain_db + lower, 1))
        message = f"Speech is very loud: {figures.speech_db:.0f} dB."
        values = {"level": round(figures.speech_db), "gain": round(-lower)}
        yield Finding("loud", "hint", message, f"lower by {-lower:.0f} dB", lowered, values)


def _voicing(figures: Figures) -> Iterator[Finding]:
    if figures.voiced < WHISPER:
        message = "It is whispered, or not speech: hardly any of it has a pitch. Speak in your usual voice."
        yield Finding("whisper", "bad", message)


def _noise(figures: Figures) -> Iterator[Finding]:
    if figures.snr_db < 15:
        message = f"Noise or music is only {figures.snr_db:.0f} dB below the voice; record in a quieter place."
        severity: Severity = "bad" if figures.snr_db < 8 else "poor"
        yield Finding("noise", severity, message, values={"below": round(figures.snr_db)})
    elif figures.snr_db < 25:
        message = f"Some noise can be heard, {figures.snr_db:.0f} dB below the voice."
        yield Finding("noise", "hint", message, values={"below": round(figures.snr_db)})
    if figures.hum:
        message = f"There is a {figures.hum} Hz mains hum; move the microphone away from power supplies."
        yield Finding("hum", "poor", message, values={"hertz": figures.hum})
    if figures.bandwidth < 5000:
        message = f"It sounds like a telephone: nothing above {figures.bandwidth / 1000:.1f} kHz."
        yield Finding("bandwidth", "poor", message, values={"kilohertz": round(figures.bandwidth / 1000, 1)})
    elif figures.bandwidth < 7000:
        message = f"It is a little dull: nothing above {figures.bandwidth / 1000:.1f} kHz."
        yield Finding("bandwidth", "hint", message, values={"kilohertz": round(figures.bandwidth / 1000, 1)})


def _ends(figures: Figures, cut: Cut, clip: Clip) -> Iterator[Finding]:
    if figures.head > 1:
        trimmed = replace(cut, start=round(cut.start + figures.head - TAIL / 2, 3))
        message = f"{figures.head:.1f} s of silence at the beginning."
        values = {"seconds": round(figures.head, 1)}
        yield Finding("head_silence", "hint", message, "trim the beginning", trimmed, values)
    if figures.tail > 1:
        end = round(cut.start + clip.seconds - figures.tail + TAIL, 3)
        message = f"{figures.tail:.1f} s of silence at the end."
        values = {"seconds": round(figures.tail, 1)}
        yield Finding("tail_silence", "hint", message, "trim the end", replace(cut, end=end), values)
    if figures.head == 0 and _cut_off(clip, is_start=True):
        yield Finding("cut_start", "poor", "The clip starts mid-word; the first word is cut off.")
    if figures.tail < 0.05 and _cut_off(clip, is_start=False):
        yield Finding("cut_end", "poor", "It ends in the middle of a sound: the last word is cut off.")


def _words(figures: Figures, text: str) -> Iterator[Finding]:
    if not text.strip():
        return
    rate = _rate_figure(text, figures)["letters_per_second"]
    if rate > FAST:
        message = (
            f"The transcript is too long for the clip: {rate:.0f} letters a second. Does it contain more than is said?"
        )
        yield Finding("transcript_long", "bad", message, values={"rate": round(rate)})
    elif rate < SLOW:
        message = f"The transcript is too short for the clip: {rate:.1f} letters a second. Are words missing?"
        yield Finding("transcript_short", "bad", message, values={"rate": round(rate, 1)})
    last = text.rstrip()[-1]
    if unicodedata.category(last)[0] in "LN":
        yield Finding("punctuation", "hint", "The transcript ends without a full stop; what follows may run on.")


def _rate_figure(text: str, figures: Figures) -> dict[str, float]:
    if not text.strip():
        return {}
    speech = figures.seconds - figures.head - figures.tail
    return {"letters_per_second": round(letters_per_second(text, speech), 2)}


def _cut_off(clip: Clip, is_start: bool) -> bool:
    """Whether the very edge is about as loud as the speech on average."""
    edge = max(clip.sample_rate // 200, 1)  # 5 ms
    pcm = clip.pcm[:edge] if is_start else clip.pcm[-edge:]
    rms = float((clip.pcm.astype("float64") ** 2).mean()) ** 0.5
    return to_decibels(float((pcm.astype("float64") ** 2).mean()) ** 0.5) > to_decibels(rms) - 15


def _merge(fixed: Cut, requested: Cut, before: Cut) -> Cut:
    """Apply to ``fixed`` the fields in which ``requested`` differs from ``before``."""
    changes = {
        name: getattr(requested, name)
        for name in ("start", "end", "gain_db", "channel")
        if getattr(requested, name) != getattr(before, name)
    }
    return replace(fixed, **changes)

"""The voices of the corpus and the tags that change how a sentence is said, as synthesiser controls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Voice:
    """One speaker: a synthesiser's own voice, optionally played at another rate (pitch and formants move)."""

    name: str
    synthesiser: str
    """flite or espeak-ng"""
    source: str
    """The synthesiser's name for it."""
    rate: float = 1.0
    """Playback rate; the synthesiser speaks slower by the same factor, so that the tempo stays."""
    share: float = 0.05
    """Of the corpus."""
    pitch: int = 50
    """espeak-ng only, 0–99."""


DEFAULT_VOICE = 0
"""Index of the voice that a prompt without a reference gets."""

VOICES = (
    Voice("Clara", "flite", "slt", share=0.42),
    Voice("Ross", "flite", "rms", share=0.09),
    Voice("Alan", "flite", "awb", share=0.09),
    Voice("Pippa", "flite", "slt", rate=1.14),
    Voice("Greta", "flite", "slt", rate=0.87),
    Voice("Boris", "flite", "rms", rate=0.86),
    Voice("Theo", "flite", "rms", rate=1.14),
    Voice("Angus", "flite", "awb", rate=0.87),
    Voice("Rory", "flite", "awb", rate=1.15),
    Voice("Vera", "espeak-ng", "en-us+f2", pitch=55),
    Voice("Otto", "espeak-ng", "en-us+m3", pitch=40),
)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a tag changes the speaking: factors on duration and on pitch, and breath instead of voice."""

    tag: str
    share: float
    """Of the sentences."""
    duration: float = 1.0
    rate: float = 1.0
    whispered: bool = False


PLAIN = Manner("", 0.86)
MANNERS = (
    PLAIN,
    Manner("[whisper]", 0.04, duration=1.1, whispered=True),
    Manner("[fast]", 0.025, duration=0.72),
    Manner("[slow]", 0.025, duration=1.4),
    Manner("[high]", 0.025, rate=1.13),
    Manner("[low]", 0.025, rate=0.89),
)

PAUSE_TAG, PAUSE_SECONDS, PAUSE_SHARE = "[pause]", 0.7, 0.02
"""[pause] between two sentences is this much silence."""

UNKNOWN_TAGS = (
    "[laugh]", "[excited]", "[sad]", "[angry]", "[sigh]", "[happy]", "[surprised]", "[soft voice]", "[shouting]",
    "[chuckle]", "[emphasis]", "[professional broadcast tone]", "[clear throat]", "[in a hurry]", "[calm]",
    "[singing]", "[delight]", "[echo]", "[inhale]", "[exhale]", "[nervous]", "[tired]", "[gentle]", "[serious]",
)  # fmt: skip
"""Tags that these synthesisers cannot act: the sentence is said as without them, so the model skips them."""

UNKNOWN_SHARE = 0.03

# The phones that flite prints; index 0 is silence.
PHONES = (
    "pau", "aa", "ae", "ah", "ao", "aw", "ax", "ay", "b", "ch", "d", "dh", "eh", "er", "ey", "f", "g", "hh", "ih", "iy",
    "jh", "k", "l", "m", "n", "ng", "ow", "oy", "p", "r", "s", "sh", "t", "th", "uh", "uw", "v", "w", "y", "z", "zh",
)  # fmt: skip
UNKNOWN_PHONE = -1
SLOT_SAMPLES = 512
"""Samples a phone label stands for: a quarter of a frame."""

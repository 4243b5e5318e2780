"""The speakers of the corpus: the teacher's voices, mixtures of them, four held out; and the tags for manners."""

from __future__ import annotations

import random
from dataclasses import dataclass

from training.teacher.rooms import TONE_OCTAVES

TEACHER_VOICES = (
    "af_alloy", "af_aoede", "af_bella", "af_heart", "af_jessica", "af_kore", "af_nicole", "af_nova", "af_river",
    "af_sarah", "af_sky", "am_adam", "am_echo", "am_eric", "am_fenrir", "am_liam", "am_michael", "am_onyx", "am_puck",
    "am_santa", "bf_alice", "bf_emma", "bf_isabella", "bf_lily", "bm_daniel", "bm_fable", "bm_george", "bm_lewis",
)  # fmt: skip
"""Kokoro's English voices: a or b for American or British, f or m for women and men."""

HELD_OUT = ("af_aoede", "am_onyx", "bf_lily", "bm_lewis")
"""Voices held out of all stages, even of mixtures: for testing clones of unknown speakers."""

TIMBRES = (
    "ef_dora", "em_alex", "ff_siwis", "hf_alpha", "hf_beta", "hm_omega", "hm_psi", "if_sara", "im_nicola", "jf_alpha",
    "jf_gongitsune", "jm_kumo", "pf_dora", "pm_alex", "zf_xiaobei", "zf_xiaoxiao", "zm_yunjian", "zm_yunxi",
)  # fmt: skip
"""Kokoro's voices of other languages, which give mixtures their timbre but not their prosody."""

Style = tuple[tuple[str, float], ...]
"""Voices of the teacher and their weights, which add up to one."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The sound of one speaker. The teacher's style has two halves: the timbre of a voice, and its melody and pace."""

    name: str
    timbre: Style
    prosody: Style
    british: bool
    rate: float = 1.0
    """Playback rate: changes pitch and formants; the tempo is kept."""
    pitch: float = 1.0
    """Factor on the melody alone, beside `rate`."""
    tone: tuple[float, ...] = ()
    """Decibels at the knots of `rooms.TONE_OCTAVES`, or none: the resonance of a head and a chest."""


@dataclass(frozen=True, slots=True)
class Named:
    """A bundled voice: its name, its composition, and a description."""

    name: str
    style: Style
    description: str


def _one(voice: str) -> Style:
    return ((voice, 1.0),)


NAMED = (
    Named("Clara", _one("af_heart"), "American woman, warm and clear"),
    Named("Vera", _one("af_bella"), "American woman, lively"),
    Named("Greta", _one("af_kore"), "American woman, calm and low"),
    Named("Nora", _one("af_nicole"), "American woman, soft and close"),
    Named("Pippa", _one("bf_emma"), "British woman, bright"),
    Named("Iris", _one("bf_isabella"), "British woman, composed"),
    Named("Maya", _one("bf_alice"), "British woman, light"),
    Named("Ross", _one("am_michael"), "American man, steady"),
    Named("Boris", _one("am_fenrir"), "American man, deep and firm"),
    Named("Otto", _one("am_puck"), "American man, young"),
    Named("Theo", _one("am_liam"), "American man, friendly"),
    Named("Alan", _one("bm_george"), "British man, measured"),
    Named("Rory", _one("bm_fable"), "British man, storyteller"),
    Named("Angus", _one("bm_daniel"), "British man, grave"),
)
"""The first is the voice of a prompt without a reference."""


def is_british(style: Style) -> bool:
    """Whether a style's heaviest voice speaks British English."""
    return max(style, key=lambda part: part[1])[0].startswith("b")


def _in_style(name: str, style: Style) -> Speaker:
    return Speaker(name, style, style, is_british(style))


SPEAKERS = tuple(_in_style(named.name, named.style) for named in NAMED)
DEFAULT = SPEAKERS[0]
STRANGERS = tuple(_in_style(voice, _one(voice)) for voice in HELD_OUT)
DEFAULT_SHARE, NAMED_SHARE = 0.1, 0.45
"""Share of the sentences by named voices; the rest is spoken by mixtures, each used for a few sentences only.

The default voice's student speaks in addition, more than all others together.
"""


def mixture(name: str, rng: random.Random) -> Speaker:
    """A new speaker: the timbre of two to four voices, the manner of one or two English ones.

    A mixture lies between voices, but an unknown speaker may not: half of them are moved away from the mean, and most
    are changed in formants, in pitch, in tone, each independently.
    """
    english = [voice for voice in TEACHER_VOICES if voice not in HELD_OUT]
    sounds = rng.sample([*english, *english, *TIMBRES], rng.randint(2, 4))
    manners = rng.sample(english, rng.randint(1, 2))
    timbre, prosody = _weighted(sounds, rng), _weighted(manners, rng)
    if rng.random() < 0.5:
        timbre = _exaggerated(timbre, rng.uniform(0.1, 1.0), english)
    rate = 2 ** (rng.uniform(-3, 3) / 12) if rng.random() < 0.6 else 1.0
    pitch = 2 ** (rng.uniform(-3, 3) / 12) if rng.random() < 0.5 else 1.0
    tone = tuple(rng.uniform(-4, 4) for _ in TONE_OCTAVES) if rng.random() < 0.5 else ()
    return Speaker(name, timbre, prosody, is_british(prosody), rate, pitch, tone)


def _exaggerated(style: Style, share: float, voices: list[str]) -> Style:
    """A style moved away from the mean of all voices by this share of its distance."""
    mean = tuple((voice, -share / len(voices)) for voice in voices)
    return tuple((voice, (1 + share) * weight) for voice, weight in style) + mean


def _weighted(voices: list[str], rng: random.Random) -> Style:
    """Weights uniform over all mixtures (a flat Dirichlet), or half of the time with one dominant voice."""
    concentration = rng.choice((1.0, 0.35))
    drawn = [rng.gammavariate(concentration, 1.0) + 1e-9 for _ in voices]
    return tuple((voice, weight / sum(drawn)) for voice, weight in zip(voices, drawn, strict=True))


@dataclass(frozen=True, slots=True)
class Manner:
    """The effect of a tag on speech: factors on duration and pitch, and breath instead of voice."""

    tag: str
    share: float
    """Share of the sentences with each tag."""
    duration: float = 1.0
    rate: float = 1.0
    whispered: bool = False


PLAIN = Manner("", 0.89)
MANNERS = (
    PLAIN,
    Manner("[whisper]", 0.03, duration=1.1, whispered=True),
    Manner("[fast]", 0.02, duration=0.74),
    Manner("[slow]", 0.02, duration=1.4),
    Manner("[high]", 0.02, rate=1.13),
    Manner("[low]", 0.02, rate=0.89),
)

WHISPERING: Style = _one("af_nicole")
"""The voice whose breathy manner is used for whispered sentences."""

PAUSE_TAG, PAUSE_SECONDS, PAUSE_SHARE = "[pause]", 0.7, 0.02
"""[pause] between two sentences is this much silence."""

UNKNOWN_TAGS = (
    "[laugh]", "[excited]", "[sad]", "[angry]", "[sigh]", "[happy]", "[surprised]", "[soft voice]", "[shouting]",
    "[chuckle]", "[emphasis]", "[professional broadcast tone]", "[clear throat]", "[in a hurry]", "[calm]",
    "[singing]", "[delight]", "[echo]", "[inhale]", "[exhale]", "[nervous]", "[tired]", "[gentle]", "[serious]",
)  # fmt: skip
"""Tags that the teacher cannot act: the sentence is spoken without them, so the model learns to skip them."""

UNKNOWN_SHARE = 0.03

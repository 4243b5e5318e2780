"""ElevenLabs' names: its well-known voices, output formats, and its stability as a temperature."""

from __future__ import annotations

import re
from typing import Any

from audio.formats import SAMPLE_RATES
from protocols import constants_of
from studio.errors import InvalidRequest
from studio.speech.request import DEFAULT_SAMPLING
from studio.voices.resolver import DEFAULT

PREFIX = "/elevenlabs"  # the path below which the protocol is

CONSTANTS = constants_of("elevenlabs")
WELL_KNOWN = frozenset(CONSTANTS["built_in_voices"])
"""Hosted voices that programs have built in; they mean the default voice."""

_MP3 = ((22_050, 32), (24_000, 48), *((44_100, kbit) for kbit in (32, 64, 96, 128, 192)))
FORMATS: dict[str, tuple[str, int, int | None]] = {
    **{f"mp3_{rate}_{kbit}": ("mp3", rate, kbit * 1000) for rate, kbit in _MP3},
    **{f"{name}_{rate}": (name, rate, None) for name in ("pcm", "wav") for rate in SAMPLE_RATES},
    **{f"opus_48000_{kbit}": ("opus", 48_000, kbit * 1000) for kbit in (32, 64, 96, 128, 192)},
    **{f"{name}_8000": (name, 8_000, None) for name in ("ulaw", "alaw")},
}
"""Format, sample rate and bit rate of each output_format."""
DEFAULT_FORMAT = "mp3_44100_128"

_OURS = "voice_"
_DIGITS = re.compile("[0-9a-f]{24}")
"""An id without this prefix: some clients refuse ids with other signs than letters and digits."""

LIVELIEST, SPREAD = 1.1, 0.6
"""The temperature at stability 0, and how much lower it is at 1. A judgement: the defaults of both are the same (0.5
means 0.8), 1 is steady but not greedy, and 0 is lively but still intelligible."""


def eleven_id(voice_id: str) -> str:
    """The id of a voice for clients."""
    return voice_id.removeprefix(_OURS)


def reference_of(voice_id: str) -> str:
    """The library's reference for a client's id; slugs and names stay."""
    return _OURS + voice_id if _DIGITS.fullmatch(voice_id) else voice_id


def voice_of(voice_id: str) -> str:
    """The same for a voice to hear: a well-known id means the default voice."""
    return DEFAULT if voice_id in WELL_KNOWN else reference_of(voice_id)


def for_eleven_client(message: str) -> str:
    """An error message with the header of ElevenLabs' clients."""
    return message.replace("as Authorization: Bearer", "as the header xi-api-key")


def file_of(output_format: str | None) -> dict[str, Any]:
    """The fields of a speech request for this format. Raises InvalidRequest."""
    name = output_format or DEFAULT_FORMAT
    if name not in FORMATS:
        allowed = ", ".join(FORMATS)
        raise InvalidRequest(f"{name[:80]!r} is not an output_format; use one of {allowed}", "output_format")
    return dict(zip(("format", "sample_rate", "bit_rate"), FORMATS[name], strict=True))


def temperature_of(stability: float) -> float:
    return round(LIVELIEST - SPREAD * stability, 3)


def stability_of(temperature: float | None) -> float:
    """The inverse, within the range that clients can show; None: the default."""
    value = DEFAULT_SAMPLING.temperature if temperature is None else temperature
    return round(min(max((LIVELIEST - value) / SPREAD, 0.0), 1.0), 3)

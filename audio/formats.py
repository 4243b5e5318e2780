"""The output formats of speech: their media types, their sample rates, and the encoder of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from audio import AudioError
from audio.compress import COMPRESSIONS, CompressedEncoder
from audio.encode import PCM_RATE, PcmEncoder, WavEncoder

MEDIA_TYPES = {name: compression.media_type for name, compression in COMPRESSIONS.items()} | {
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
FORMATS = tuple(MEDIA_TYPES)
DEFAULT_FORMAT = "mp3"

SAMPLE_RATES = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
OPUS_RATES = (8_000, 16_000, 24_000, 48_000)
TELEPHONE_RATE = 8_000
MP3_BIT_RATES = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # kbit/s, constant
_LOW_MP3_RATE, _LOW_MP3_BITS = 24_000, 160_000
"""Up to this sample rate MP3 is MPEG-2, whose encoders silently limit the bit rate to these bits per second."""


def check_format(name: str, sample_rate: int | None, param: str = "response_format") -> None:
    """Raises AudioError, naming the field ``param``, for an unknown format or an unsupported rate."""
    if name not in MEDIA_TYPES:
        raise AudioError(f"{name[:80]!r} is not a {param}; use one of {', '.join(FORMATS)}", param)
    rates = {"opus": OPUS_RATES, "ulaw": (TELEPHONE_RATE,), "alaw": (TELEPHONE_RATE,)}.get(name, SAMPLE_RATES)
    if sample_rate is not None and sample_rate not in rates:
        allowed = ", ".join(map(str, rates))
        raise AudioError(f"{name} cannot have a sample_rate of {sample_rate} Hz; allowed are {allowed}", "sample_rate")


def check_bit_rate(bit_rate: int | None, name: str) -> None:
    """Raises AudioError for another bit rate (kbit/s) than MP3_BIT_RATES, or for one of another format."""
    if bit_rate is None:
        return
    if bit_rate not in MP3_BIT_RATES:
        allowed = ", ".join(map(str, MP3_BIT_RATES))
        raise AudioError(f"bitrate must be one of {allowed} (kbit/s), not {bit_rate}", "bitrate")
    if name != "mp3":
        raise AudioError(f"bitrate applies to mp3, not to {name}; leave it out", "bitrate")


def open_encoder(
    name: str,
    source_rate: int,
    sample_rate: int | None = None,
    samples: int | None = None,
    metadata: Mapping[str, str] | None = None,
    bit_rate: int | None = None,
) -> PcmEncoder | CompressedEncoder:
    """The encoder of a format.

    ``sample_rate=None``: 24 kHz for pcm, 48 for opus, 8 for G.711, else the source's rate, or 44.1 for an unusual one,
    and for an MP3 whose ``bit_rate`` needs more than the source's.
    ``samples``: the total length at the source rate if known. ``metadata``, by FFmpeg's names: for flac and opus.
    ``bit_rate``: bits per second instead of the format's default. Raises AudioError.
    """
    check_format(name, sample_rate)
    needs_more = name == "mp3" and source_rate <= _LOW_MP3_RATE and (bit_rate or 0) > _LOW_MP3_BITS
    default_rate = source_rate if source_rate in SAMPLE_RATES and not needs_more else 44_100
    usual = {"pcm": PCM_RATE, "opus": 48_000, "ulaw": TELEPHONE_RATE, "alaw": TELEPHONE_RATE}
    rate = sample_rate or usual.get(name, default_rate)
    if name == "pcm":
        return PcmEncoder(source_rate, rate)
    if name == "wav":
        return WavEncoder(source_rate, rate, samples)
    compression = COMPRESSIONS[name]
    if bit_rate is not None:
        compression = replace(compression, bit_rate=bit_rate)
    return CompressedEncoder(compression, source_rate, rate, metadata, samples)

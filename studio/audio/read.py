"""Reading a clip that a stranger sent: told apart by its first bytes, decoded up to the limits."""

from __future__ import annotations

import io
from dataclasses import dataclass

import av
import numpy as np
from av.error import FFmpegError

from studio.errors import InvalidClip

MAX_BYTES = 10 * 1024 * 1024
MIN_SECONDS = 1.0
MAX_SECONDS = 30.0
MIN_RATE, MAX_RATE = 8_000, 192_000
MAX_CHANNELS = 8
SILENCE = 1e-3
"""A clip whose peak stays under -60 dB carries no voice."""

CONTAINERS = "WAV, FLAC, MP3, Ogg, AAC, M4A/MP4, WebM, AIFF or CAF"


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """Decoded sound: float32 mono (samples,) in [-1, 1] at ``sample_rate`` Hz."""

    pcm: np.ndarray
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.sample_rate


def read_clip(data: bytes, param: str | None = None) -> Clip:
    """Decode a reference clip of 1 to 30 seconds. Blocking.

    Raises InvalidClip, which says what is wrong and what is allowed; ``param`` is the field it names.
    """
    if not data:
        raise InvalidClip("the clip is empty", param)
    if len(data) > MAX_BYTES:
        raise InvalidClip(f"the clip has {len(data)} bytes; at most {MAX_BYTES} are allowed", param)
    container = _container(data)
    if container is None:
        raise InvalidClip(f"this is no audio file that can be read; send {CONTAINERS}", param)
    try:
        clip = _decode(data, container, param)
    except (FFmpegError, ValueError) as error:
        raise InvalidClip(f"the clip cannot be decoded as {container}: {_reason(error)}", param) from error
    if clip.seconds < MIN_SECONDS:
        raise InvalidClip(f"the clip lasts {clip.seconds:.2f} s; at least {MIN_SECONDS:g} s are needed", param)
    if not np.isfinite(clip.pcm).all():
        raise InvalidClip("the clip has samples that are not numbers", param)
    if float(np.abs(clip.pcm).max()) < SILENCE:
        raise InvalidClip("the clip is silent", param)
    return clip


def _container(data: bytes) -> str | None:
    """FFmpeg's name of the container; never FFmpeg's own guess, as playlists make it open other files."""
    head = data[:12]
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return "wav"
    if head[:4] == b"fLaC":
        return "flac"
    if head[:4] == b"OggS":
        return "ogg"
    if head[:4] == b"\x1aE\xdf\xa3":
        return "matroska"
    if head[4:8] == b"ftyp":
        return "mov"
    if head[:4] == b"FORM" and head[8:11] == b"AIF":
        return "aiff"
    if head[:4] == b"caff":
        return "caf"
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "aac"
    if head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0):
        return "mp3"
    return None


def _decode(data: bytes, container: str, param: str | None) -> Clip:
    with av.open(io.BytesIO(data), "r", format=container) as source:
        if not source.streams.audio:
            raise InvalidClip("the file has no audio track", param)
        rate, pieces, samples = 0, list[np.ndarray](), 0
        resampler = av.AudioResampler(format="fltp")
        for frame in source.decode(audio=0):
            rate = rate or frame.sample_rate
            channels = frame.layout.nb_channels
            if not MIN_RATE <= rate <= MAX_RATE or frame.sample_rate != rate:
                raise InvalidClip(
                    f"the clip's sample rate is {frame.sample_rate} Hz; allowed is {MIN_RATE} to {MAX_RATE} Hz",
                    param,
                )
            if channels > MAX_CHANNELS:
                raise InvalidClip(f"the clip has {channels} channels; at most {MAX_CHANNELS} are allowed", param)
            samples += frame.samples
            if samples > MAX_SECONDS * rate:
                raise InvalidClip(f"the clip is longer than {MAX_SECONDS:g} s; cut it shorter", param)
            pieces += [part.to_ndarray().mean(axis=0) for part in resampler.resample(frame)]
    if not pieces:
        raise InvalidClip("the file has no sound in it", param)
    return Clip(np.concatenate(pieces).astype(np.float32, copy=False), rate)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__

"""Reads an uploaded clip: recognises its container by the first bytes, and decodes its audio within limits."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import av
import numpy as np
from av.error import FFmpegError, PatchWelcomeError

from audio import InvalidClip, SilentClip
from speechtext.errors import check_job

MAX_BYTES = 10 * 1024 * 1024
MIN_SECONDS = 1.0
MAX_SECONDS = 30.0
GRACE_SECONDS = 0.5
"""A clip or span that is too long by no more than this loses its end: encoders pad clips by a few hundredths."""
MIN_RATE, MAX_RATE = 8_000, 192_000
USUAL_RATES = frozenset(
    (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000)
)
OTHER_RATE = 44_100
"""Clips of unusual rates are resampled to this one: a filter from 44,101 to 44,100 Hz would fill gigabytes."""
MAX_CHANNELS = 8
SILENCE = 1e-3  # a clip that varies by less than this, -60 dB, has no voice, whatever its offset
LOUDEST = 16.0
"""Maximum magnitude, 24 dB above full scale, as in loud floating-point recordings; more is not a recording."""

MAX_START = 1800.0  # maximum seconds at which a span may begin; later audio is not read
STEP = 0.02  # seconds per level of `read_levels`

PROBE = {"probesize": str(32 * 1024)}
"""Maximum bytes that FFmpeg reads to detect a track. By default it reads up to five million, which takes ten of the
twelve milliseconds for a ten-second WAV."""

MAX_CHUNKS = 1000
"""Maximum chunks of a WAV file; recorders write a dozen, and FFmpeg takes seconds for the possible 65,535."""

PART = 2**15  # samples examined together

CANCELLED = 0.6
"""Channels whose mean has less than this share of the level of unrelated channels cancel each other out."""

CONTAINERS = "WAV, FLAC, MP3, Ogg, AAC, M4A/MP4, WebM, AIFF, CAF, WMA or AMR"
MEDIA_TYPES = {
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "matroska": "audio/webm",
    "mov": "audio/mp4",
    "aiff": "audio/aiff",
    "caf": "audio/x-caf",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "asf": "audio/x-ms-wma",
    "amr": "audio/amr",
}
_BEGINNINGS = {b"fLaC": "flac", b"OggS": "ogg", b"\x1aE\xdf\xa3": "matroska", b"caff": "caf", b"#!AMR": "amr"}
_WMA = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
"""The beginning of an ASF file, the container of WMA."""

_LAYOUT = struct.Struct("<4sI4s4sIHHIIHH4sI")
"""The header up to the samples: RIFF, a format chunk of 16 bytes, then the data chunk."""
_PCM = 1
_DISGUISED = (b"\x72\xf8\x1f\x4e", b"\x7f\xfe\x80\x01", b"\xfe\x7f\x01\x80", b"\x1f\xff\xe8\x00", b"\xff\x1f\x00\xe8")
"""The first bytes of S/PDIF and DTS data stored as samples."""
_LOOKED_AT = 2**16 + 2**10  # FFmpeg searches the first 64 KiB for such data, and decodes it
MOST_CHANNELS = 2


@dataclass(frozen=True, eq=False, slots=True)
class Clip:
    """Decoded audio: float32 mono (samples,) in [-1, 1] at ``sample_rate`` Hz, one of USUAL_RATES."""

    pcm: np.ndarray
    sample_rate: int
    channel: int | None = None  # the one channel that was used, from 0; None: the mean of all

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.sample_rate


def read_clip(
    data: bytes, param: str | None = None, start: float = 0.0, end: float | None = None, channel: int | None = None
) -> Clip:
    """Decode 1 to 30 seconds of a file: all of it, or the span from ``start`` to ``end``. Blocking.

    Up to GRACE_SECONDS more are allowed, and cut off.

    ``channel`` selects one channel (from 0) instead of the mean of all. Channels in antiphase would have a silent mean:
    the loudest of them is used instead. Nothing outside the span is kept in memory.

    Raises InvalidClip with the fault and the limit; it names start, end or channel if one of these is
    wrong, and ``param`` for the file.
    """
    if not 0 <= start <= MAX_START or (end is not None and not start < end):
        field = "end" if 0 <= start <= MAX_START else "start"
        raise InvalidClip(f"the span must begin between 0 and {MAX_START:g} s and end later than that", field)
    longest = MAX_SECONDS + GRACE_SECONDS
    if end is not None and end - start > longest:
        raise InvalidClip(f"the span is {end - start:.2f} s long; at most {MAX_SECONDS:g} s are allowed", "end")
    pieces, squares, position, rate = list[np.ndarray](), np.zeros(1), 0, 0
    for sound, rate in _sounds(data, param):
        check_job()
        first, last = round(start * rate), round(min(end or math.inf, start + MAX_SECONDS) * rate)
        part = sound[:, max(first - position, 0) : max(last - position, 0)]
        position += sound.shape[1]
        if part.shape[1]:
            if channel is not None and not 0 <= channel < len(part):
                allowed = f"from 0 to {len(part) - 1}" if len(part) > 1 else "0 or absent"
                raise InvalidClip(f"channel must be {allowed} for this clip", "channel")
            squares = squares + np.square(part, dtype=np.float64).sum(axis=1)
            pieces.append(part.mean(axis=0) if channel is None and len(part) > 1 else part[channel or 0])
        if end is None and position - first > longest * rate:
            raise InvalidClip(f"the clip is longer than {MAX_SECONDS:g} s; choose a span of it", param)
        if end is not None and position >= last:
            break
    if not pieces:
        if position:
            raise InvalidClip("the span is beyond the end of the file", "start")
        raise InvalidClip("the file has no audio", param)
    pcm = np.concatenate(pieces).astype(np.float32, copy=False)
    levels = np.sqrt(squares / len(pcm))
    mix_level = float(np.sqrt(np.mean(np.square(pcm, dtype=np.float64))))
    if channel is None and mix_level < CANCELLED * float(np.linalg.norm(levels)) / len(levels):
        return read_clip(data, param, start, end, int(levels.argmax()))
    clip = Clip(pcm, rate, channel)
    _check(clip, param)
    return clip


def read_levels(data: bytes, param: str | None = None) -> tuple[np.ndarray, float]:
    """RMS over all channels for each whole STEP of a file of up to MAX_START + MAX_SECONDS, float32 (steps,), and the
    exact duration in seconds. Blocking.

    Uses 200 bytes per second, regardless of the unpacked size. Raises InvalidClip.
    """
    levels, remainder, length, seconds = list[np.ndarray](), np.zeros(0, np.float32), 0, 0.0
    for sound, rate in _sounds(data, param):
        check_job()
        length += sound.shape[1]
        seconds = length / rate
        size = round(STEP * rate)
        remainder = np.concatenate([remainder, np.square(sound).mean(axis=0)])
        count = len(remainder) // size
        levels.append(np.sqrt(remainder[: count * size].reshape(count, size).mean(axis=1)))
        remainder = remainder[count * size :]
        if seconds > MAX_START + MAX_SECONDS:
            break
    return np.concatenate(levels) if levels else np.zeros(0, np.float32), seconds


def container_of(data: bytes, param: str | None = None) -> str:
    """FFmpeg's name of a file's container; not FFmpeg's own guess, because it opens other files for playlists.

    Raises InvalidClip for a file that is empty, too large or not one of CONTAINERS.
    """
    if not data:
        raise InvalidClip("the clip is empty", param)
    if len(data) > MAX_BYTES:
        raise InvalidClip(f"the clip has {len(data)} bytes; at most {MAX_BYTES} are allowed", param)
    container = _container(data[:12])
    if container == "mp3" and data[:3] == b"ID3" and (behind := _container(_behind_tag(data))) in ("flac", "aac"):
        container = behind
    if container is None:
        raise InvalidClip(f"this file is not readable audio; send {CONTAINERS}", param)
    return container


def _check(clip: Clip, param: str | None) -> None:
    if clip.seconds < MIN_SECONDS - 1e-6:
        shown = int(clip.seconds * 100) / 100  # never rounded up to the limit
        raise InvalidClip(f"the clip is {shown:.2f} s long; at least {MIN_SECONDS:g} s are needed", param)
    if not np.isfinite(clip.pcm).all():
        raise InvalidClip("the clip contains samples that are not finite numbers", param)
    low, high = float(clip.pcm.min()), float(clip.pcm.max())
    if max(-low, high) > LOUDEST:
        raise InvalidClip(f"the clip has samples of up to {max(-low, high):.3g}; full scale is 1", param)
    if high - low < SILENCE:
        raise SilentClip("the clip is silent", param)


def _behind_tag(data: bytes) -> bytes:
    """The first bytes after an ID3 tag, with which some programs begin other files than MP3 too."""
    flags, *size = data[5:10].ljust(5, bytes(1))
    at = sum(part << shift for part, shift in zip(size, (21, 14, 7, 0), strict=True)) + (20 if flags & 0x10 else 10)
    return data[at : at + 12]


def _container(head: bytes) -> str | None:
    if head[:4] in (b"RIFF", b"RF64") and head[8:12] == b"WAVE":
        return "wav"
    if head[4:8] == b"ftyp":
        return "mov"
    if head[:4] == b"FORM" and head[8:11] == b"AIF":
        return "aiff"
    if head == _WMA[: len(head)] and len(head) > 4:
        return "asf"
    for beginning, container in _BEGINNINGS.items():
        if head.startswith(beginning):
            return container
    if len(head) > 1 and head[0] == 0xFF and head[1] & 0xF6 == 0xF0:
        return "aac"
    if head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0):
        return "mp3"
    return None


def _sounds(data: bytes, param: str | None) -> Iterator[tuple[np.ndarray, int]]:
    """The file's audio frame by frame: float32 (channels, samples) and the rate, which stays the same."""
    container = container_of(data, param)
    if (plain := samples_of(data)) and plain[1] in USUAL_RATES:  # a tenth of FFmpeg's time, the same bits
        yield from ((part, plain[1]) for part in in_parts(plain[0], PART))
        return
    if container == "wav" and _has_many_chunks(data):
        raise InvalidClip(f"the WAV file has more than {MAX_CHUNKS} chunks; save it again as a plain WAV file", param)
    try:
        with av.open(io.BytesIO(data), "r", format=container, options=PROBE) as source:
            if not source.streams.audio:
                raise InvalidClip("the file has no audio track", param)
            yield from _resampled(_frames(source), param)
    except PatchWelcomeError as error:
        problem = f"the clip changes its format in the middle, which cannot be read in {container}"
        raise InvalidClip(f"{problem}; convert it to WAV or FLAC", param) from error
    except (FFmpegError, ValueError) as error:
        raise InvalidClip(f"the clip cannot be decoded as {container}: {_reason(error)}", param) from error


def _has_many_chunks(data: bytes) -> bool:
    at = len(b"RIFF....WAVE")
    for _ in range(MAX_CHUNKS):
        if at + 8 > len(data):
            return False
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return at + 8 <= len(data)


def _frames(source: av.container.InputContainer) -> Iterator[av.AudioFrame]:
    """The first audio track's frames. Like players, it skips packets that cannot be decoded: the last one of a
    truncated download, half a sample at the end. Raises FFmpegError if it skips most of them.
    """
    decoded, damaged, error = 0, 0, None
    for packet in source.demux(audio=0):
        check_job()
        try:
            frames = packet.decode()
        except FFmpegError as reason:
            damaged, error = damaged + 1, reason
            continue
        decoded += len(frames)
        yield from frames
    if error is not None and damaged > decoded:
        raise error


def _resampled(frames: Iterator[av.AudioFrame], param: str | None) -> Iterator[tuple[np.ndarray, int]]:
    """The frames at one of USUAL_RATES and in the first frame's layout, even if the file changes these later."""
    # Interleaved: PyAV counts the planes of a planar frame of 8 channels wrongly, and reads beyond the buffer.
    resampler, first, before = None, None, None
    for frame in frames:
        _check_frame(frame, param)
        first = first or frame
        target = first.sample_rate if first.sample_rate in USUAL_RATES else OTHER_RATE
        form = (frame.sample_rate, frame.layout.name, frame.format.name)
        if resampler is None or form != before:
            yield from _converted(resampler, None, target)
            resampler = av.AudioResampler(format="flt", layout=first.layout, rate=target, frame_size=PART)
            before = form
        yield from _converted(resampler, frame, target)
    if first is not None:
        yield from _converted(resampler, None, target)


def _converted(
    resampler: av.AudioResampler | None, frame: av.AudioFrame | None, rate: int
) -> Iterator[tuple[np.ndarray, int]]:
    """A resampler's output for a frame, or, for None, its remaining output."""
    for part in resampler.resample(frame) if resampler else ():
        yield part.to_ndarray().reshape(part.samples, -1).T, rate


def _check_frame(frame: av.AudioFrame, param: str | None) -> None:
    if not MIN_RATE <= frame.sample_rate <= MAX_RATE:
        raise InvalidClip(
            f"the clip's sample rate is {frame.sample_rate} Hz; allowed is {MIN_RATE} to {MAX_RATE} Hz", param
        )
    channels = frame.layout.nb_channels
    if channels > MAX_CHANNELS:
        raise InvalidClip(f"the clip has {channels} channels; at most {MAX_CHANNELS} are allowed", param)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def samples_of(data: bytes) -> tuple[np.ndarray, int] | None:
    """The samples int16 (samples, channels) without a copy, and the file's rate; None: ask FFmpeg."""
    if len(data) < _LAYOUT.size:
        return None
    riff, _, wave, fmt, size, kind, channels, rate, speed, block, bits, name, length = _LAYOUT.unpack_from(data)
    if (riff, wave, fmt, size, kind, bits, name) != (b"RIFF", b"WAVE", b"fmt ", 16, _PCM, 16, b"data"):
        return None
    if not 1 <= channels <= MOST_CHANNELS or block != 2 * channels or speed != rate * block:
        return None
    if not 0 < length <= len(data) - _LAYOUT.size or length % block:  # from a live stream, or truncated
        return None
    if any(sign in data[:_LOOKED_AT] for sign in _DISGUISED):
        return None
    samples = np.frombuffer(data, "<i2", length // 2, _LAYOUT.size)
    return samples.reshape(-1, channels), rate


def in_parts(samples: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Blocks of ``size`` samples as float32 (channels, samples), full scale 1, as FFmpeg converts 16 bits."""
    for at in range(0, len(samples), size):
        yield (samples[at : at + size] * np.float32(1 / 32768)).T

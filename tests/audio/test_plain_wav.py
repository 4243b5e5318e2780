"""WAV files read without FFmpeg give the same samples bit for bit; files that only look like plain WAV go to FFmpeg."""

from __future__ import annotations

import io
import struct

import av
import numpy as np
import pytest

from audio import InvalidClip
from audio.read import Clip, read_clip, read_levels
from tests.studio.clips import file_of
from tests.studio.sounds import tone

NOTE = b"LIST" + struct.pack("<I", 4) + b"INFO"


def by_ffmpeg(wav: bytes) -> bytes:
    """The same file with a chunk before its data, so that FFmpeg reads it."""
    at = wav.index(b"data")
    return wav[:at] + NOTE + wav[at:]


def same(one: Clip, other: Clip) -> bool:
    return (
        one.pcm.tobytes() == other.pcm.tobytes()
        and one.pcm.dtype == other.pcm.dtype == np.float32
        and one.sample_rate == other.sample_rate
    )


def noise(seconds: float, rate: int, channels: int) -> np.ndarray:
    """Noise over the whole 16-bit range, including its ends."""
    shape = (round(seconds * rate), channels)
    return np.clip(np.random.default_rng(rate + channels).normal(0, 0.5, shape), -1, 1)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT", "PCM_U8"])
@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 44_101, 48_000, 96_000])
@pytest.mark.parametrize("channels", [1, 2, 8])
def test_samples_equal_ffmpegs_bit_for_bit(subtype: str, rate: int, channels: int) -> None:
    wav = file_of(noise(1.3, rate, channels), rate, subtype=subtype)
    assert same(read_clip(wav), read_clip(by_ffmpeg(wav)))
    assert same(read_clip(wav, channel=channels - 1), read_clip(by_ffmpeg(wav), channel=channels - 1))
    assert same(read_clip(wav, start=0.1, end=1.25), read_clip(by_ffmpeg(wav), start=0.1, end=1.25))
    (levels, seconds), (same_levels, same_seconds) = read_levels(wav), read_levels(by_ffmpeg(wav))
    assert levels.tobytes() == same_levels.tobytes() and seconds == same_seconds


def test_ten_seconds_of_a_wav_equal_those_of_a_flac() -> None:
    sound = np.rint(noise(10, 44_100, 2) * 32_767).astype(np.int16)
    assert same(read_clip(file_of(sound, 44_100)), read_clip(file_of(sound, 44_100, "FLAC")))


def broken(wav: bytes, at: int, layout: str, value: int) -> bytes:
    data = bytearray(wav)
    struct.pack_into(layout, data, at, value)
    return bytes(data)


WAV = file_of(noise(1.3, 8_000, 2), 8_000)
ODD = {
    "of a live stream": broken(WAV, 40, "<I", 0xFFFFFFFF),
    "no length": broken(WAV, 40, "<I", 0),
    "half a sample at the end": broken(WAV, 40, "<I", len(WAV) - 45),
    "broken off": WAV[:-1001],
    "a shorter one with something behind it": broken(WAV, 40, "<I", 36_000),
    "another speed": broken(WAV, 28, "<I", 1),
    "blocks of another size": broken(WAV, 32, "<H", 2),
    "no channels": broken(WAV, 22, "<H", 0),
    "eight bits": broken(WAV, 34, "<H", 8),
    "another coding": broken(WAV, 20, "<H", 2),
    "no rate": broken(WAV, 24, "<I", 0),
    "a header alone": WAV[:44],
    "half a header": WAV[:30],
}


@pytest.mark.parametrize("name", ODD)
def test_malformed_wav_is_read_or_refused_as_by_ffmpeg(name: str) -> None:
    def outcome(wav: bytes) -> object:
        try:
            clip = read_clip(wav, "ref_audio")
        except InvalidClip as error:
            return str(error)
        return clip.pcm.tobytes(), clip.sample_rate

    wav = ODD[name]
    padded = by_ffmpeg(wav) if b"data" in wav else wav
    assert outcome(wav) == outcome(padded)


def test_compressed_audio_stored_as_samples_is_decoded() -> None:
    """S/PDIF would be loud noise if read as samples."""
    file = io.BytesIO()
    with av.open(file, "w", format="spdif") as target:
        stream = target.add_stream("ac3", rate=48_000, layout="stereo")
        sound = np.repeat(tone(2, 48_000)[None], 2, axis=0).astype(np.float32)
        for at in range(0, sound.shape[1] - 1535, 1536):
            piece = np.ascontiguousarray(sound[:, at : at + 1536])
            frame = av.AudioFrame.from_ndarray(piece, "fltp", "stereo")
            frame.sample_rate = 48_000
            target.mux(stream.encode(frame))
        target.mux(stream.encode(None))
    size = len(file.getvalue())
    header = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", 36 + size, b"WAVE", b"fmt ", 16, 1, 2, 48_000, 192_000, 4, 16)
    clip = read_clip(header + struct.pack("<4sI", b"data", size) + file.getvalue())
    level = float(np.sqrt(np.mean(clip.pcm[9_600:-9_600] ** 2)))
    assert level == pytest.approx(float(np.sqrt(np.mean(tone(2, 48_000) ** 2))), rel=0.05)

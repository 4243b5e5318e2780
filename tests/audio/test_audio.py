"""Clips are read safely, streams resampled without a seam, files written while they are made."""

from __future__ import annotations

import io
import math
import os
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from audio import InvalidClip
from audio.encode import pcm16
from audio.formats import open_encoder
from audio.read import read_clip
from audio.resampler import Resampler
from tests.studio.sounds import container, tone, wav

RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)


def resampled(pcm: np.ndarray, from_rate: int, to_rate: int, cuts: list[int]) -> np.ndarray:
    resampler = Resampler(from_rate, to_rate)
    pieces = [resampler.write(piece) for piece in np.split(pcm, cuts)]
    return np.concatenate([*pieces, resampler.finish()])


@pytest.mark.parametrize("to_rate", RATES)
@pytest.mark.parametrize("samples", [0, 1, 5, 100, 2048, 44_101])
def test_resampling_does_not_depend_on_chunking_and_gives_the_exact_length(samples: int, to_rate: int) -> None:
    random = np.random.default_rng(samples)
    pcm = random.uniform(-1, 1, samples).astype(np.float32)
    whole = resampled(pcm, 44_100, to_rate, [])
    assert len(whole) == math.ceil(samples * to_rate / 44_100)
    cuts = sorted(random.integers(0, samples + 1, 12).tolist())
    np.testing.assert_allclose(resampled(pcm, 44_100, to_rate, cuts), whole, atol=1e-5)


@pytest.mark.parametrize("to_rate", RATES)
def test_resampled_tone_keeps_its_pitch_and_level(to_rate: int) -> None:
    out = resampled(tone(1, 44_100, 1000), 44_100, to_rate, [10_000, 10_001])
    np.testing.assert_allclose(out[200:-200], tone(1, to_rate, 1000)[200:-200], atol=1e-4)


def test_frequencies_above_the_lower_rate_are_removed() -> None:
    assert np.abs(resampled(tone(1, 44_100, 14_000), 44_100, 24_000, [])[200:-200]).max() < 1e-4


def test_loud_samples_are_clipped_and_never_wrap() -> None:
    assert np.frombuffer(pcm16(np.array([0, 1, 1.5, -1, -9], np.float32)), "<i2").tolist() == [
        0,
        32767,
        32767,
        -32767,
        -32767,
    ]


def test_wav_header_has_exact_sizes_or_the_streaming_marker() -> None:
    pcm = tone(0.5)
    known = open_encoder("wav", 44_100, samples=len(pcm))
    data = known.write(pcm) + known.finish()
    assert int.from_bytes(data[4:8], "little") == len(data) - 8
    assert int.from_bytes(data[40:44], "little") == len(data) - 44
    unknown = open_encoder("wav", 44_100)
    streamed = unknown.write(pcm[:100]) + unknown.write(pcm[100:]) + unknown.finish()
    assert streamed[4:8] == streamed[40:44] == b"\xff" * 4
    assert streamed[44:] == data[44:]
    for file in (data, streamed):
        decoded, rate = soundfile.read(io.BytesIO(file), dtype="float32")
        assert rate == 44_100
        np.testing.assert_allclose(decoded[: len(pcm)], pcm, atol=1e-4)
        with wave.open(io.BytesIO(file)) as opened:
            assert opened.getframerate() == 44_100


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("wav", "pcm_s16le"),
        ("flac", "flac"),
        ("ogg", "libopus"),
        ("mp3", "libmp3lame"),
        ("adts", "aac"),
        ("ipod", "aac"),
        ("webm", "libopus"),
        ("aiff", "pcm_s16be"),
        ("caf", "pcm_s16le"),
        ("asf", "wmav2"),
    ],
)
def test_common_containers_are_read(name: str, codec: str) -> None:
    clip = read_clip(container(tone(2, 48_000), name, codec))
    assert clip.sample_rate == 48_000
    assert clip.seconds == pytest.approx(2, abs=0.1)
    assert clip.pcm.dtype == np.float32 and clip.pcm.ndim == 1
    assert 0.3 < np.sqrt(np.mean(clip.pcm[9_600:-9_600] ** 2)) < 0.4


@pytest.mark.parametrize(("name", "codec"), [("flac", "flac"), ("adts", "aac"), ("mp3", "libmp3lame")])
@pytest.mark.parametrize("flags", [0, 0x10])
def test_files_behind_a_tag_are_read(name: str, codec: str, flags: int) -> None:
    sound, title = container(tone(2, 48_000), name, codec), b"TIT2\0\0\0\x05\0\0\0Book"
    frames = title + bytes(300 - len(title))
    tag = b"\4\0" + bytes([flags, 0, 0, 2, 44])
    footer = b"3DI" + tag if flags else b""
    clip = read_clip(b"ID3" + tag + frames + footer + sound)
    assert clip.seconds == pytest.approx(2, abs=0.1) and 0.3 < np.sqrt(np.mean(clip.pcm[9_600:-9_600] ** 2)) < 0.4


def test_channels_are_mixed_to_mono() -> None:
    stereo = np.stack([tone(1.5), np.zeros(66_150, np.float32)], axis=1)
    file = io.BytesIO()
    soundfile.write(file, stereo, 44_100, format="WAV", subtype="FLOAT")
    np.testing.assert_allclose(read_clip(file.getvalue()).pcm, tone(1.5) / 2, atol=1e-6)


def test_amr_recordings_of_phones_are_read() -> None:
    clip = read_clip(container(tone(2, 8_000), "amr", "libopencore_amrnb", 8_000))
    assert clip.sample_rate == 8_000 and clip.seconds == pytest.approx(2, abs=0.1)


def test_incomplete_last_sample_of_a_wav_is_dropped() -> None:
    pcm = tone(1.5, 24_000)
    file = io.BytesIO()
    soundfile.write(file, pcm, 24_000, format="WAV", subtype="PCM_16")
    whole = file.getvalue()
    for rest in (b"\x01", bytes(3)):
        size = len(whole) - 44 + len(rest)
        odd = (
            whole[:4] + (size + 36).to_bytes(4, "little") + whole[8:40] + size.to_bytes(4, "little") + whole[44:] + rest
        )
        clip = read_clip(odd)
        np.testing.assert_allclose(clip.pcm[: len(pcm)], pcm, atol=1e-4)
        assert len(clip.pcm) - len(pcm) == len(rest) // 2


@pytest.mark.parametrize(("name", "codec"), [("mp3", "libmp3lame"), ("adts", "aac")])
def test_file_with_changing_rate_and_channels_is_read_to_its_end(name: str, codec: str) -> None:
    parts = [container(tone(2, rate), name, codec, rate) for rate in (22_050, 44_100)]
    clip = read_clip(b"".join(parts))
    assert clip.sample_rate == 22_050
    assert clip.seconds == pytest.approx(4, abs=0.3)
    assert 0.3 < np.sqrt(np.mean(clip.pcm[-22_050:-4_410] ** 2)) < 0.4


def test_truncated_download_is_decoded_as_far_as_possible() -> None:
    whole = container(tone(4, 44_100), "mp3", "libmp3lame", 44_100)
    assert read_clip(whole[: len(whole) * 2 // 3 + 7]).seconds == pytest.approx(2.6, abs=0.3)


def vorbis(rate: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(2, rate), rate, format="OGG", subtype="VORBIS")
    return file.getvalue()


def sound_file(pcm: np.ndarray, rate: int = 44_100) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, pcm, rate, format="WAV", subtype="FLOAT")
    return file.getvalue()


NOT_A_NUMBER = np.where(np.arange(66_150) == 40_000, np.nan, tone(1.5)).astype(np.float32)

BAD_CLIPS = {
    "empty": (b"", "empty"),
    "no audio": (b"MZ" + bytes(3000), "not readable audio"),
    "a playlist": (b"#EXTM3U\n#EXTINF:9,\nfile:///etc/hostname\n", "not readable audio"),
    "a WAV header alone": (wav(tone(1.5))[:44], "no audio"),
    "the beginning of a tag": (b"ID3\4", "cannot be decoded"),
    "broken FLAC": (b"fLaC" + bytes(200), "cannot be decoded"),
    "an Ogg that changes its rate": (vorbis(22_050) + vorbis(44_100), "changes its format in the middle"),
    "too short": (wav(tone(0.99998)), "0.99 s long; at least 1 s"),
    "too long": (wav(tone(31, 8_000), 8_000), "longer than 30 s"),
    "silent": (wav(np.zeros(66_150, np.float32)), "silent"),
    "not a number": (sound_file(NOT_A_NUMBER), "not finite numbers"),
    "1 Hz": (wav(tone(1.5), 1), "sample rate"),
    "64 channels": (sound_file(np.zeros((66_150, 16), np.float32) + 0.1), "channels"),
    "many chunks": (wav(tone(2))[:36] + b"LIST\x00\x00\x00\x00" * 1001 + wav(tone(2))[36:], "more than 1000 chunks"),
    "too many bytes": (bytes(10 * 1024 * 1024 + 1), "at most"),
}


@pytest.mark.parametrize("name", BAD_CLIPS)
def test_unusable_clip_is_refused_with_the_reason(name: str) -> None:
    data, reason = BAD_CLIPS[name]
    with pytest.raises(InvalidClip, match=reason) as refused:
        read_clip(data, "ref_audio")
    assert refused.value.param == "ref_audio"


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="counts the threads of the process as Linux lists them"
)
def test_open_encoders_have_no_threads_of_their_own() -> None:
    """A thousand sockets may each have a file open, on a machine of many cores."""
    before = len(os.listdir("/proc/self/task"))
    encoders = [open_encoder(name, 44_100) for name in ("mp3", "flac", "opus", "aac") for _ in range(3)]
    for encoder in encoders:
        encoder.write(tone(0.2, rate=44_100))
    assert len(os.listdir("/proc/self/task")) == before

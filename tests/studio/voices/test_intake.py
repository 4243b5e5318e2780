"""Untrusted clips: stored untouched, judged with reasons, corrected by parameters, refused with an explanation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from audio import Cut, InvalidClip
from studio import ROOT
from studio.voices.intake import Intake, sound_of, suggest_span, take_in
from tests.studio.clips import CLIPS, WORDS, file_of, samples_of, spoken
from tests.studio.sounds import container, tone, wav

LONGER = f"{WORDS} {WORDS}"
DULL = {"bandwidth"}
"""Flaws that some of the bundled clips have."""
Change = Callable[[np.ndarray, int], np.ndarray]


def speech() -> tuple[np.ndarray, int]:
    """A clip, a pause and the clip once more."""
    pcm, rate = samples_of(spoken())
    return np.concatenate([pcm, silence(0.3, rate), pcm]), rate


def longer() -> bytes:
    return file_of(*speech())


def codes(intake: Intake) -> set[str]:
    return {finding.code for finding in intake.advice.findings}


def silence(seconds: float, rate: int) -> np.ndarray:
    return np.zeros(round(seconds * rate), np.float32)


def noise(pcm: np.ndarray, level: float) -> np.ndarray:
    return pcm + level * np.random.default_rng(0).standard_normal(len(pcm)).astype(np.float32)


def hum(pcm: np.ndarray, rate: int, hertz: float) -> np.ndarray:
    return pcm + 0.02 * np.sin(2 * np.pi * hertz * np.arange(len(pcm), dtype=np.float32) / rate)


def telephone(pcm: np.ndarray, rate: int) -> np.ndarray:
    spectrum = np.fft.rfft(pcm)
    spectrum[round(3400 * len(pcm) / rate) :] = 0
    return np.fft.irfft(spectrum, len(pcm)).astype(np.float32)


def whispered(pcm: np.ndarray, rate: int) -> np.ndarray:
    """The same envelopes, on noise in place of a pitch."""
    hop = rate // 50
    draws, window, out = np.random.default_rng(0), np.hanning(2 * hop), np.zeros_like(pcm)
    for start in range(0, len(pcm) - 2 * hop, hop):
        spectrum = np.abs(np.fft.rfft(pcm[start : start + 2 * hop] * window))
        envelope = np.convolve(spectrum, np.ones(15) / 15, "same")
        noise = np.fft.irfft(envelope * np.exp(2j * np.pi * draws.random(len(envelope))), 2 * hop)
        out[start : start + 2 * hop] += (noise * window).astype(np.float32)
    return out


BAD: dict[str, tuple[Change, str]] = {
    "only two seconds": (lambda pcm, rate: pcm[: 2 * rate], "short"),
    "clipped": (lambda pcm, rate: np.clip(pcm * 8, -0.9, 0.9), "clipping"),
    "quiet": (lambda pcm, rate: pcm * 0.02, "quiet"),
    "very loud": (lambda pcm, rate: np.tanh(pcm * 12), "loud"),
    "whispered": (whispered, "whisper"),
    "noisy": (lambda pcm, rate: noise(pcm, 0.05), "noise"),
    "mains at 50 Hz": (lambda pcm, rate: hum(pcm, rate, 50), "hum"),
    "mains at 60 Hz": (lambda pcm, rate: hum(hum(pcm, rate, 60), rate, 180), "hum"),
    "a telephone": (telephone, "bandwidth"),
    "a long beginning": (lambda pcm, rate: np.concatenate([silence(2, rate), pcm]), "head_silence"),
    "a long end": (lambda pcm, rate: np.concatenate([pcm, silence(2, rate)]), "tail_silence"),
    "begun too late": (lambda pcm, rate: pcm[loud_at(pcm, rate, 0.5) :], "cut_start"),
    "stopped too early": (lambda pcm, rate: pcm[: loud_at(pcm, rate, 5.0)], "cut_end"),
}


def loud_at(pcm: np.ndarray, rate: int, after: float) -> int:
    """The sample of the loudest moment within a second from ``after``."""
    first = round(after * rate)
    return first + int(np.abs(pcm[first : first + rate]).argmax())


@pytest.mark.parametrize("case", BAD)
def test_flaws_of_a_recording_are_named(case: str) -> None:
    change, code = BAD[case]
    pcm, rate = speech()
    intake = take_in(file_of(change(pcm, rate), rate, subtype="FLOAT"))
    assert code in codes(intake)
    assert intake.advice.score < 100


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.stem)
def test_clean_short_clip_is_only_advised_to_contain_more_speech(clip: Path) -> None:
    intake = take_in(clip.read_bytes(), clip.with_suffix(".txt").read_text("utf-8"))
    assert codes(intake) <= DULL | {"short"}
    assert {finding.severity for finding in intake.advice.findings} <= {"hint"}


@pytest.mark.parametrize("other", [-1.0, -0.9])
def test_louder_of_two_cancelling_channels_is_used(other: float) -> None:
    pcm, rate = speech()
    intake = take_in(file_of(np.stack([other * pcm, pcm], axis=1), rate))
    assert "channels" in codes(intake) and intake.advice.score >= 90
    alone = take_in(file_of(pcm, rate)).clip.pcm
    np.testing.assert_allclose(np.abs(intake.clip.pcm), np.abs(alone), atol=1e-4)
    assert suggest_span(file_of(np.tile(np.stack([pcm, -pcm], axis=1), (2, 1)), rate)).end


def test_voice_in_one_channel_does_not_count_as_cancelling_channels() -> None:
    pcm, rate = speech()
    assert "channels" not in codes(take_in(file_of(np.stack([pcm, np.zeros_like(pcm)], axis=1), rate)))


def test_fixes_correct_faults_without_changing_the_file() -> None:
    pcm, rate = speech()
    data = file_of(np.concatenate([silence(2, rate), 0.02 * pcm, silence(2, rate)]), rate, subtype="FLOAT")
    before = take_in(data, LONGER)
    assert {"quiet", "head_silence", "tail_silence"} <= codes(before)
    after = take_in(data, LONGER, before.advice.fixed)
    assert not codes(after) - DULL and after.advice.score > before.advice.score
    assert after.data == data
    assert after.clip.seconds < before.clip.seconds - 3


WRONG_WORDS = {
    "half of them are missing": (" ".join(LONGER.split()[:4]) + ".", "transcript_short"),
    "another text is there as well": (f"{LONGER} {LONGER} {LONGER}", "transcript_long"),
    "no full stop": (LONGER.rstrip("."), "punctuation"),
}


@pytest.mark.parametrize("case", WRONG_WORDS)
def test_transcripts_of_the_wrong_length_are_noticed_without_a_recogniser(case: str) -> None:
    text, code = WRONG_WORDS[case]
    assert codes(take_in(longer(), text)) - DULL == {code}


def test_span_gain_and_channel_are_applied_to_the_clip() -> None:
    rate = 44_100
    left = np.linspace(0, 0.4, 4 * rate, dtype=np.float32)
    data = file_of(np.stack([left, -left], axis=1), rate, subtype="FLOAT")
    clip = sound_of(data, Cut(1.0, 3.0, 6.0, 1))
    np.testing.assert_allclose(clip.pcm, -left[rate : 3 * rate] * 10 ** (6 / 20), atol=1e-6)
    assert sound_of(data, Cut(1.0, 3.0, 40.0, 1)).pcm.min() == -1


@pytest.mark.parametrize(
    "cut",
    [
        *(Cut(-1), Cut(2, 1), Cut(0, 31), Cut(90, 95), Cut(0, 0.5), Cut(1e9), Cut(float("nan")), Cut(0, float("nan"))),
        *(Cut(gain_db=41), Cut(gain_db=float("nan")), Cut(channel=2), Cut(channel=-1)),
    ],
)
def test_impossible_cut_is_refused(cut: Cut) -> None:
    with pytest.raises(InvalidClip):
        take_in(spoken(), cut=cut)


def test_long_file_gets_a_suggested_span_between_pauses() -> None:
    pcm, rate = speech()
    long = np.concatenate([silence(20, rate), *[np.concatenate([pcm, silence(0.5, rate)])] * 3])
    data = file_of(long, rate)
    with pytest.raises(InvalidClip, match="choose a span"):
        take_in(data)
    cut = suggest_span(data)
    assert cut.start > 19 and cut.end is not None and 7 < cut.end - cut.start <= 15.01
    assert not {"cut_start", "cut_end", "head_silence", "tail_silence"} & codes(take_in(data, cut=cut))
    assert suggest_span(spoken()) == Cut()


@pytest.mark.parametrize("rate", [11_025, 44_100])
def test_file_one_sample_over_the_limit_is_cut_and_one_at_the_limit_is_not(rate: int) -> None:
    pcm, own_rate = speech()
    long = np.resize(pcm[:: own_rate // rate], int(30.5 * rate) + 1)
    assert suggest_span(file_of(long[:-1], rate)) == Cut()
    cut = suggest_span(file_of(long, rate))
    assert cut.end is not None and cut.end - cut.start <= 15.01
    assert take_in(file_of(long, rate), cut=cut).clip.seconds <= 15.01


@pytest.mark.parametrize(
    ("name", "codec"), [("wav", "pcm_s16le"), ("flac", "flac"), ("ogg", "libopus"), ("webm", "libopus"),
                        ("mp3", "libmp3lame"), ("ipod", "aac"), ("adts", "aac")],
)  # fmt: skip
def test_every_common_container_is_accepted(name: str, codec: str) -> None:
    pcm, rate = speech()
    steps = np.arange(0, len(pcm) - 1, rate / 48_000)
    intake = take_in(container(np.interp(steps, np.arange(len(pcm)), pcm), name, codec), LONGER)
    assert abs(intake.clip.seconds - len(pcm) / rate) < 0.1
    assert not codes(intake) - DULL


@pytest.mark.parametrize("rate", [44_101, 8_003, 47_999, 191_999])
def test_unusual_sample_rate_is_converted_to_44100(rate: int) -> None:
    time = np.arange(2 * rate) / rate
    clip = sound_of(file_of(np.sin(2 * np.pi * 440 * time).astype(np.float32), rate), Cut())
    assert clip.sample_rate == 44_100 and abs(clip.seconds - 2) < 0.001
    ideal = np.sin(2 * np.pi * 440 * np.arange(len(clip.pcm)) / 44_100)
    assert np.abs(clip.pcm - ideal)[500:-500].max() < 0.01


NO_SPEECH: dict[str, Change] = {
    "white noise": lambda pcm, rate: noise(0 * pcm, 0.1),
    "one click": lambda pcm, rate: np.eye(1, len(pcm), 5000, dtype=np.float32)[0],
    "a tone": lambda pcm, rate: hum(0 * pcm, rate, 440),
    "a square at full scale": lambda pcm, rate: np.sign(hum(0 * pcm, rate, 100)),
    "over full scale": lambda pcm, rate: 12 * pcm / np.abs(pcm).max(),
}


@pytest.mark.parametrize("case", NO_SPEECH)
@pytest.mark.parametrize("rate", [8_000, 11_025, 192_000])
def test_audio_without_speech_is_rated_without_an_error(case: str, rate: int) -> None:
    pcm = NO_SPEECH[case](speech()[0][: 2 * rate], rate)
    intake = take_in(file_of(pcm, rate, subtype="FLOAT"), WORDS)
    assert intake.advice.score < 100
    assert all(np.isfinite(figure) for figure in intake.advice.figures.values())


@pytest.mark.parametrize("rate", [8_000, 192_000])
@pytest.mark.parametrize(("level", "loudness", "words"), [(0.5, 0.0, "silent"), (0.0, 1e30, "full scale is 1")])
def test_file_without_audible_sound_is_refused(rate: int, level: float, loudness: float, words: str) -> None:
    pcm = (level + loudness * speech()[0][: 2 * rate]).astype(np.float32)
    with pytest.raises(InvalidClip, match=words):
        take_in(file_of(pcm, rate, subtype="FLOAT"), WORDS)


_READ = """
import sys
from pathlib import Path
from audio import InvalidClip
from studio.voices.intake import suggest_span, take_in
data = Path(sys.argv[1]).read_bytes()
try:
    take_in(data)
except InvalidClip as refusal:
    print(refusal)
suggest_span(data)
status = Path("/proc/self/status").read_text()  # the peak of this program alone, not of the one that started it
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


@pytest.mark.linux
def test_file_that_decodes_to_gigabytes_is_refused_within_200_megabytes(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.flac"
    with soundfile.SoundFile(bomb, "w", 96_000, 8, "PCM_16", format="FLAC") as file:
        for _ in range(400):
            file.write(np.zeros((96_000, 8), np.int16))
    assert bomb.stat().st_size < 10 * 1024 * 1024
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(bomb)], cwd=ROOT, check=True, capture_output=True, text=True
    )
    refusal, megabytes = done.stdout.splitlines()
    assert "longer than 30 s" in refusal
    assert int(megabytes) < 200


@pytest.mark.parametrize("cut", [Cut(), Cut(0, 30.4), Cut(0, 30)])
def test_clip_that_is_too_long_by_less_than_half_a_second_loses_its_end(cut: Cut) -> None:
    data = wav(tone(30.45, 8_000), 8_000)
    assert len(sound_of(data, cut).pcm) == 30 * 8_000
    intake = take_in(data, WORDS, cut)
    assert (intake.clip.seconds, intake.cut) == (30, cut) and intake.sample(WORDS).seconds == 30
    assert suggest_span(data) == Cut(), "it need not be cut otherwise"


@pytest.mark.parametrize("cut", [Cut(), Cut(0, 30.55)])
def test_clip_that_is_too_long_by_more_is_refused(cut: Cut) -> None:
    with pytest.raises(InvalidClip, match="30 s"):
        sound_of(wav(tone(30.6, 8_000), 8_000), cut)

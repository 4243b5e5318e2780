"""Voiceprints: recordings of one person are similar, those of two people are not, and two in one clip are detected."""

from __future__ import annotations

import numpy as np
import pytest

from audio.voiceprint import RATE, Voiceprints, is_one_person, mean_print, percent_alike
from studio import ASSETS
from tests.studio.clips import samples_of

VOICES = ASSETS / "fry" / "voices"


@pytest.fixture(scope="module")
def prints() -> Voiceprints:
    return Voiceprints(ASSETS / "fry" / "voiceprint.npz")


def recording(name: str) -> tuple[np.ndarray, int]:
    return samples_of((VOICES / f"{name}.wav").read_bytes())


def test_recordings_of_one_person_are_similar_and_of_two_people_are_not(prints: Voiceprints) -> None:
    def print_of(pcm: np.ndarray, rate: int) -> np.ndarray:
        return mean_print(prints.spans(pcm, rate))

    (clara, rate), (boris, other_rate) = recording("Clara"), recording("Boris")
    first, second = (print_of(half, rate) for half in np.array_split(clara, 2))
    assert percent_alike(first, second) > 85
    assert percent_alike(first, print_of(boris, other_rate)) < 25
    quiet = np.concatenate([np.zeros(rate, np.float32), 0.05 * clara])
    assert percent_alike(print_of(quiet, rate), print_of(clara, rate)) > 95, "neither level nor silence counts"


def test_two_people_in_a_clip_are_detected(prints: Voiceprints) -> None:
    (clara, rate), (boris, _) = recording("Clara"), recording("Boris")
    assert is_one_person(prints.spans(clara, rate, 8))
    both = np.concatenate([clara[: 4 * rate], boris[: 4 * rate]])
    assert not is_one_person(prints.spans(both, rate, 8))


@pytest.mark.parametrize("samples", [0, RATE // 2])
def test_too_little_speech_has_no_voiceprint(prints: Voiceprints, samples: int) -> None:
    sound = np.random.default_rng(0).standard_normal(samples).astype(np.float32)
    assert len(prints.spans(0.1 * sound, RATE)) == 0


def test_short_clip_has_one_voiceprint(prints: Voiceprints) -> None:
    clara, rate = recording("Clara")
    spans = prints.spans(clara[rate : 2 * rate + rate // 2], rate)
    assert spans.shape == (1, 256) and np.linalg.norm(spans[0]) == pytest.approx(1, abs=1e-3)

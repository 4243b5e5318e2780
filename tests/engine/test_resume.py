"""A take taken up after the frames that were heard: what is refused, and what goes on as if never broken off."""

from __future__ import annotations

import numpy as np
import pytest

from engine import InvalidUtterance
from tests.engine.speaking import greedy


@pytest.mark.parametrize(
    ("so_far", "told"),
    [
        (np.zeros((10, 3), np.int64), r"must be int16 \(codebooks, frames\), not int64 \(10, 3\)"),
        (np.zeros(3, np.int16), r"must be int16 \(codebooks, frames\), not int16 \(3,\)"),
        ([[1, 2]], r"must be int16 \(codebooks, frames\), not list"),
        (np.zeros((10, 12), np.int16), "12 frames so far leave nothing to say within max_frames, which is 12"),
    ],
)
def test_frames_so_far_of_another_kind_are_refused(so_far: object, told: str) -> None:
    with pytest.raises(InvalidUtterance, match=told):
        greedy(frames=12, so_far=so_far)

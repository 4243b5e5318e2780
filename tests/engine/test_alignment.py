"""The times of words in frames: the path through the weights, and the bundled model on its own speech."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from engine import EngineStopped, InvalidUtterance
from engine.model.alignment import character_times, steady_path, token_starts
from tests.engine.speaking import hear, running_engine, seeded

FRY = Path(__file__).resolve().parents[2] / "assets/fry"


def test_alignment_path_never_goes_back_and_ignores_misleading_weights() -> None:
    weights = np.full((1, 6, 4), 0.01)
    for frame, token in enumerate((0, 0, 1, 0, 2, 3)):  # one frame points backwards
        weights[0, frame, token] = 0.9
    weights[0, 3, 1] = 0.3
    path = steady_path(weights)[0]
    assert path.tolist() == [0, 0, 1, 1, 2, 3]
    assert token_starts(path, 4).tolist() == [0, 2.0, 4.0, 5.0, 6.0]


def test_unspoken_tokens_begin_at_the_end_and_skipped_ones_in_between() -> None:
    starts = token_starts(np.array([0, 0, 3, 3]), 6)
    assert starts[[0, 4, 5, 6]].tolist() == [0, 4, 4, 4]
    assert 1.5 <= starts[1] < starts[2] < starts[3] <= 2.5


def test_characters_split_their_token_evenly_without_its_leading_space() -> None:
    text, spans = "so wide ☃", [(0, 2), (2, 7), (7, 9), (8, 9), (8, 9)]  # three bytes of one character
    times = character_times(text, spans, np.array([0.0, 1.0, 5.0, 5.5, 5.6, 6.0]))
    assert len(times) == len(text) + 1 and (np.diff(times) >= 0).all()
    assert times[text.index("wide")] == 1.0 and times[text.index("☃")] == 5.0 and times[-1] == 6.0


def test_space_token_keeps_its_time() -> None:
    times = character_times("a b", [(0, 1), (1, 2), (2, 3)], np.array([0.0, 1.0, 3.0, 4.0]))
    assert times.tolist() == [0, 1, 3, 4]


def test_second_sentence_begins_at_its_frames() -> None:
    """Both are separate takes in two voices, so the exact frame is known."""
    first, second = "The night train leaves at seven.", "Bring a warm coat, please."

    async def scenario() -> None:
        takes = [await hear(engine, seeded(text, seed, 200)) for text, seed in ((first, 1), (second, 2))]
        codes = np.concatenate([take.codes for take in takes], axis=1)
        text = f"{first} {second}"
        times = await engine.align(text, codes)
        rate = engine.info.frame_rate
        assert times.shape == (len(text) + 1,) and (np.diff(times) >= 0).all()
        assert times[0] == 0 and times[-1] == pytest.approx(codes.shape[1] / rate)
        border = takes[0].codes.shape[1] / rate
        assert abs(times[text.index("Bring")] - border) < 0.2
        half = await engine.align(text, takes[0].codes)
        assert half[text.index("coat")] == pytest.approx(border), "what was not said begins at the end"
        assert not (await engine.align("Nothing.", codes[:, :0])).any()
        with pytest.raises(InvalidUtterance, match="codebooks"):
            await engine.align(text, codes[:3])
        with pytest.raises(InvalidUtterance, match=r"int16 \(codebooks, frames\), not int16 \(5,\)"):
            await engine.align(text, np.zeros(5, np.int16))
        with pytest.raises(InvalidUtterance, match="blank"):
            await engine.align(" ", codes)

    with running_engine(FRY) as engine:
        asyncio.run(scenario())
    with pytest.raises(EngineStopped):
        asyncio.run(engine.align(first, np.zeros((8, 5), np.int16)))

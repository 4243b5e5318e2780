"""The number of frames per codec job: by the ramp, and by the audio that the listener has buffered."""

from __future__ import annotations

import numpy as np
import pytest

from engine.model.prompt import Prompt
from engine.runtime.row import Row
from engine.runtime.scheduler import FAST_RAMP, GENTLE_RAMP, PATIENCE, chunk_size, has_buffered, is_chunk_due
from engine.types import Sampling

FRAME = 0.05


def make_row(frames: int, chunks: int, sent: int) -> Row:
    prompt = Prompt(np.zeros(3, np.int64), np.zeros((10, 3), np.int64))
    row = Row(prompt, Sampling(), 1000, print)
    row.frames, row.chunks, row.frames_sent, row.first_chunk = [np.zeros(10, np.int16)] * frames, chunks, sent, 100.0
    return row


@pytest.mark.parametrize(
    ("chunks", "sent", "usual"), [(0, 0, 1), (2, 1000, 1), (3, 1000, 2), (5, 1000, 3), (7, 1000, 4), (99, 1000, 4)]
)
def test_chunk_sizes_grow(chunks: int, sent: int, usual: int) -> None:
    assert not is_chunk_due(make_row(usual - 1, chunks, sent), GENTLE_RAMP, FRAME, 100.0)
    assert is_chunk_due(make_row(usual, chunks, sent), GENTLE_RAMP, FRAME, 100.0)


@pytest.mark.parametrize(("ramp", "pace"), [(GENTLE_RAMP, 3 / 4), (FAST_RAMP, 1 / 2)])
def test_chunks_are_generated_while_earlier_ones_play(ramp: tuple[int, ...], pace: float) -> None:
    """The first chunk plays as soon as it arrives, and no later one arrives late."""
    sent = 0
    for chunks in range(20):
        size = chunk_size(chunks, ramp)
        ready_at = pace * (sent + size - 1)  # in frame durations after the end of the first one
        assert chunks == 0 or ready_at <= sent + 1e-9
        sent += size


def test_listener_near_an_underrun_gets_all_frames_so_far() -> None:
    assert is_chunk_due(make_row(1, 6, sent=23), FAST_RAMP, FRAME, 100.0 + 23 * FRAME - 0.05)
    assert not is_chunk_due(make_row(0, 6, sent=23), FAST_RAMP, FRAME, 100.0 + 23 * FRAME)
    assert not is_chunk_due(make_row(7, 6, sent=23), FAST_RAMP, FRAME, 100.0 + 23 * FRAME - 0.5)


def test_chunks_are_shorter_until_the_listener_has_buffered_audio() -> None:
    heard = 100.0 + 23 * FRAME
    for frames, buffered, due in ((4, 0.25, True), (3, 0.25, False), (4, 0.35, False), (8, 0.35, True)):
        assert is_chunk_due(make_row(frames, 6, sent=23), FAST_RAMP, FRAME, heard - buffered) == due


def test_chunks_return_to_full_length_after_a_stall() -> None:
    row = make_row(1, 6, sent=23)
    row.note_chunk(FRAME, late := 100.0 + 23 * FRAME + 5)  # the player stalled for five seconds
    row.frames_sent = 23 + 8
    assert row.buffered_seconds(FRAME, late) == pytest.approx(8 * FRAME)
    assert not is_chunk_due(row, FAST_RAMP, FRAME, late)
    row.note_chunk(FRAME, late + 0.1)  # in time: playback is not interrupted
    assert row.buffered_seconds(FRAME, late + 0.1) == pytest.approx(8 * FRAME - 0.1)


def test_chunks_follow_only_the_ramp_without_a_clock() -> None:
    late = 100.0 + 60
    assert not is_chunk_due(make_row(7, 6, sent=23), FAST_RAMP, None, late)
    assert is_chunk_due(make_row(8, 6, sent=23), FAST_RAMP, None, late)


def test_chunk_waits_for_others_only_while_its_listener_has_buffered_audio() -> None:
    heard = 100.0 + 23 * FRAME
    assert has_buffered(make_row(8, 6, sent=23), FRAME, heard - PATIENCE - 0.01, PATIENCE)
    assert not has_buffered(make_row(8, 6, sent=23), FRAME, heard - PATIENCE + 0.01, PATIENCE)
    assert not has_buffered(make_row(8, 6, sent=23), None, 100.0, PATIENCE), "without the clock nothing is known"

"""How many frames go to the codec at a time: by the ramp, and by what the listener has in hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.model.prompt import Prompt
from engine.runtime.row import Row
from engine.runtime.scheduler import is_chunk_due
from engine.types import Sampling

FRAME = 0.05


def a_row(frames: int, chunks: int, sent: int) -> Row:
    prompt = Prompt(np.zeros(3, np.int64), np.zeros((10, 3), np.int64))
    row = Row(prompt, Sampling(), 1000, print)
    row.frames, row.chunks, row.sent, row.first_chunk = [np.zeros(10, np.int16)] * frames, chunks, sent, 100.0
    return row


@pytest.mark.parametrize(("chunks", "sent", "usual"), [(0, 0, 1), (1, 1000, 2), (2, 1000, 4), (3, 1000, 8)])
def test_the_first_chunks_double(chunks: int, sent: int, usual: int) -> None:
    assert not is_chunk_due(a_row(usual - 1, chunks, sent), FRAME, 100.0)
    assert is_chunk_due(a_row(usual, chunks, sent), FRAME, 100.0)


def test_a_listener_who_runs_dry_gets_what_there_is() -> None:
    assert is_chunk_due(a_row(1, 5, sent=23), FRAME, 100.0 + 23 * FRAME - 0.05)
    assert not is_chunk_due(a_row(0, 5, sent=23), FRAME, 100.0 + 23 * FRAME)
    assert not is_chunk_due(a_row(7, 5, sent=23), FRAME, 100.0 + 23 * FRAME - 0.5)


def test_without_the_clock_the_ramp_alone_decides() -> None:
    late = 100.0 + 60
    assert not is_chunk_due(a_row(7, 5, sent=23), None, late)
    assert is_chunk_due(a_row(8, 5, sent=23), None, late)

"""Streams that share one state, some advancing while others stand still, sound as each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from engine.codec import StreamRows, StreamState, load_codec
from engine.streams import PlainStreams


@torch.inference_mode()
def test_rows_of_a_shared_state_advance_apart_and_sound_as_alone(tiny_checkpoint: Path) -> None:
    codec = load_codec(tiny_checkpoint, "cpu")
    books, size = codec.config.num_codebooks, codec.config.residual_codebook_size
    codes = torch.randint(0, size, (3, books, 12), generator=torch.Generator().manual_seed(1))
    alone = [codec.decode(codes[i : i + 1])[0] for i in range(3)]
    shared, at = StreamState(5), [0, 0, 0]
    heard: list[list[torch.Tensor]] = [[], [], []]
    for rows, frames in (
        ((0, 1, 2), 1),
        ((2, 0), 2),
        ((1,), 4),
        ((2, 1), 4),
        ((0, 2), 4),
        ((0, 1), 3),
        ((2,), 1),
        ((0,), 2),
    ):
        piece = torch.stack([codes[i, :, at[i] : at[i] + frames] for i in rows])
        slots = torch.tensor([(4, 0, 2)[i] for i in rows])
        for i, pcm in zip(rows, codec.decode(piece, StreamRows(shared, slots)), strict=True):
            heard[i].append(pcm)
            at[i] += frames
    assert at == [12, 12, 12]
    assert all(torch.allclose(torch.cat(heard[i], -1), alone[i], atol=1e-5) for i in range(3))


def test_a_closed_name_starts_a_new_stream(tiny_checkpoint: Path) -> None:
    codec = load_codec(tiny_checkpoint, "cpu")
    codes = np.ones((codec.config.num_codebooks, 3), np.int16)
    streams = PlainStreams(codec)
    assert streams.open("a")
    first = streams.decode([("a", codes)])[0]
    assert not np.allclose(streams.decode([("a", codes)])[0], first)
    streams.close("a")
    streams.close("never opened")
    assert streams.open("a")
    assert np.array_equal(streams.decode([("a", codes)])[0], first)

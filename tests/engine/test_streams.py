"""Streams that share one state, some advancing while others stand still, sound as each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from engine.codec import StreamRows, StreamState, load_codec
from engine.streams import GraphStreams, PlainStreams


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


class EagerStreams(GraphStreams):
    """GraphStreams without graphs: the same cutting up and filling up, decoded on the spot."""

    @torch.inference_mode()
    def _replay(self, rows: list[int], codes: np.ndarray) -> list[np.ndarray]:
        size = next(size for size in self._sizes if size >= len(rows))
        index = torch.tensor(rows + [self._count] * (size - len(rows)))
        padded = torch.zeros(size, *codes.shape[1:], dtype=torch.int64)
        padded[: len(rows)] = torch.from_numpy(codes.astype(np.int64))
        return list(self._codec.decode(padded, StreamRows(self._state, index))[: len(rows), 0].numpy())


def test_pieces_of_any_length_are_made_up_of_the_batches_that_there_are(tiny_checkpoint: Path) -> None:
    codec = load_codec(tiny_checkpoint, "cpu")
    plain, batched = PlainStreams(codec), EagerStreams(codec, 3)
    codes = np.random.default_rng(0).integers(0, 16, (4, codec.config.num_codebooks, 40)).astype(np.int16)
    names = ["a", "b", "c", "d"]
    assert [batched.open(name) for name in names] == [True, True, True, False]
    assert all(plain.open(name) for name in names)
    at = [0, 0, 0]
    for lengths in ((1, 1, 1), (7, 2, 8), (3, 13, 1), (5, 4, 11)):
        pieces = [(names[i], codes[i, :, at[i] : at[i] + n]) for i, n in enumerate(lengths)]
        for alone, together in zip(plain.decode(pieces), batched.decode(pieces), strict=True):
            np.testing.assert_allclose(together, alone, atol=1e-5)
        at = [start + n for start, n in zip(at, lengths, strict=True)]
    batched.close("b")
    assert batched.open("d")
    np.testing.assert_allclose(*(s.decode([("d", codes[3, :, :6])])[0] for s in (plain, batched)), atol=1e-5)

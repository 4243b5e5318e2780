"""Named streams: opened, continued with pieces of any length and closed, alone or split into batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.codec import Codec, StreamState, load_codec
from engine.runtime.codec_streams import CodecStreams, GraphStreams, NativeStreams, PlainStreams
from engine.runtime.graphs import capture


@pytest.mark.parametrize("kind", [PlainStreams, lambda codec: NativeStreams(codec, 1)], ids=["plain", "native"])
def test_reopened_name_starts_a_new_stream(tiny_checkpoint: Path, kind: Callable[[Codec], CodecStreams]) -> None:
    codec = load_codec(tiny_checkpoint, "cpu")
    codes = np.ones((codec.config.num_codebooks, 3), np.int16)
    streams = kind(codec)
    assert streams.open("a")
    first = streams.decode([("a", codes)])[0]
    assert not np.allclose(streams.decode([("a", codes)])[0], first)
    streams.close("a")
    streams.close("never opened")
    assert streams.open("a")
    assert np.array_equal(streams.decode([("a", codes)])[0], first)


def test_native_streams_take_no_more_than_they_have_room_for(tiny_checkpoint: Path) -> None:
    streams = NativeStreams(load_codec(tiny_checkpoint, "cpu"), 2)
    assert [streams.open(name) for name in ("a", "b", "a", "c")] == [True, True, True, False]
    assert set(streams.names()) == {"a", "b"}
    streams.close("a")
    assert streams.open("c")


class PlainBatches:
    """A decoder of batches in plain torch: each slot has its own state."""

    def __init__(self, codec: Codec) -> None:
        self._codec, self.num_codebooks, self.device = codec, codec.config.num_codebooks, torch.device("cpu")
        self._states: dict[int, StreamState] = {}

    def __call__(self, codes: Tensor, slots: Tensor) -> Tensor:
        states = [self._states.setdefault(slot, StreamState(1)) for slot in slots.tolist()]
        return torch.cat([self._codec.decode(row[None], state)[:, 0] for row, state in zip(codes, states, strict=True)])

    def reset(self, slot: int) -> None:
        self._states.pop(slot, None)


@pytest.mark.usefixtures("eager_graphs")
def test_batched_pieces_of_any_length_equal_unbatched_ones(tiny_checkpoint: Path) -> None:
    codec = load_codec(tiny_checkpoint, "cpu")
    plain, batched = PlainStreams(codec), GraphStreams(cast(Any, PlainBatches(codec)), 3)
    capture(*batched.graphs)
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
    alone, together = (streams.decode([("d", codes[3, :, :6])])[0] for streams in (plain, batched))
    np.testing.assert_allclose(together, alone, atol=1e-5)

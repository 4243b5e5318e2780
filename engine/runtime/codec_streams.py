"""Codec streams of many takes: each alone in plain torch, or batched in CUDA graphs by rows and frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.codec import Codec, Precision, StreamState
from engine.native.decoder import NativeDecoder
from engine.runtime.graphs import HIGH_PRIORITY, MIDDLE_PRIORITY, GraphSet
from engine.transfer import fetch

if TYPE_CHECKING:
    from engine.fused.codec_decoder import FusedDecoder

StreamCodes = tuple[Hashable, np.ndarray]
"""A stream's name, and its next codes int16 (codebooks, frames ≥ 1)."""


class CodecStreams(Protocol):
    is_concurrent: bool
    """Whether two threads may decode different streams at once."""

    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        """Decode the next codes of these open streams, each named once; returns float32 (samples,) for each."""

    def close(self, name: Hashable) -> None:
        """Close a stream; does nothing for an unknown one."""

    def open(self, name: Hashable) -> bool:
        """Start this stream unless it is open. Returns False if no row is free."""

    def names(self) -> list[Hashable]:
        """The names of the open streams."""


class PlainStreams:
    """Decodes every stream separately, with any number of frames."""

    is_concurrent = False

    def __init__(self, codec: Codec, precision: Precision = "float32") -> None:
        self._codec, self._precision = codec, precision
        self._device = next(codec.parameters()).device
        if self._device.type == "cpu" and precision == "float32":
            codec.use_products()
        self._streams: dict[Hashable, StreamState] = {}

    @torch.inference_mode()
    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        return [self._decode_stream(name, codes) for name, codes in pieces]

    def close(self, name: Hashable) -> None:
        self._streams.pop(name, None)

    @torch.inference_mode()
    def open(self, name: Hashable) -> bool:
        self._streams.setdefault(name, StreamState(1))
        return True

    def names(self) -> list[Hashable]:
        return list(self._streams)

    def _decode_stream(self, name: Hashable, codes: np.ndarray) -> np.ndarray:
        frames = torch.from_numpy(codes.astype(np.int64)).to(self._device)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._precision == "bfloat16"):
            return self._codec.decode(frames[None], self._streams[name])[0, 0].float().cpu().numpy()


class SlotStreams:
    """Streams in the slots of a decoder, as many as it has."""

    def __init__(self, reset: Callable[[int], None], count: int) -> None:
        """``reset``: starts a new stream in a slot."""
        self._reset, self._free = reset, list(range(count))
        self._slots: dict[Hashable, int] = {}

    def close(self, name: Hashable) -> None:
        if name in self._slots:
            self._free.append(self._slots.pop(name))

    @torch.inference_mode()
    def open(self, name: Hashable) -> bool:
        if name not in self._slots:
            if not self._free:
                return False
            self._slots[name] = self._free.pop()
            self._reset(self._slots[name])
        return True

    def names(self) -> list[Hashable]:
        return list(self._slots)


class NativeStreams(SlotStreams):
    """Decodes up to `count` streams, one after the other, in native code."""

    is_concurrent = False

    def __init__(self, codec: Codec, count: int) -> None:
        """Frees the codec's own weights, of which it has copies."""
        self._decoder = NativeDecoder(codec, count)
        super().__init__(self._decoder.reset, count)
        codec.forget_decoder()

    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        return [self._decoder(self._slots[name], codes) for name, codes in pieces]


DENSE = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)
"""Rows per graph for the longest chunks: the codec computes as much for padding as for a stream."""
SPARSE = (1, 2, 4, 8, 16, 32, 64, 128)
"""Rows per graph for shorter chunks, which belong to takes that have just begun."""


class GraphStreams(SlotStreams):
    """Up to `count` streams in slots; each (rows, frames) size is a CUDA graph, other sizes combine several.

    The decoder has one more slot, number `count`, for padding.
    """

    FRAMES = (8, 4, 2, 1)
    is_concurrent = True

    def __init__(self, decoder: FusedDecoder, count: int) -> None:
        super().__init__(decoder.reset, count)
        self._decoder, self._count = decoder, count
        self._sizes = {
            frames: [size for size in (DENSE if frames == self.FRAMES[0] else SPARSE) if size < count] + [count]
            for frames in self.FRAMES
        }
        longest, *shorter = self.FRAMES
        self._long = self._graphs([longest], MIDDLE_PRIORITY)
        self._short = self._graphs(shorter, HIGH_PRIORITY)
        self.graphs = self._long, self._short
        """Graphs by frames and rows. A take's first chunks are short, because a listener waits for them."""

    @torch.inference_mode()
    def decode(self, pieces: Sequence[StreamCodes]) -> list[np.ndarray]:
        sounds: list[list[np.ndarray]] = [[] for _ in pieces]
        slots = [self._slots[name] for name, _ in pieces]
        offsets = [0] * len(pieces)
        for frames in self.FRAMES:
            while indices := [i for i, (_, codes) in enumerate(pieces) if codes.shape[1] - offsets[i] >= frames]:
                batch = [pieces[i][1][:, offsets[i] : offsets[i] + frames] for i in indices]
                for i, pcm in zip(indices, self._replay([slots[i] for i in indices], np.stack(batch)), strict=True):
                    sounds[i].append(pcm)
                    offsets[i] += frames
        return [np.concatenate(parts) for parts in sounds]

    def _replay(self, slots: list[int], codes: np.ndarray) -> list[np.ndarray]:
        """codes (rows, codebooks, frames), frames one of FRAMES → each row's samples."""
        frames = codes.shape[2]
        graphs = self._long if frames == self.FRAMES[0] else self._short
        size = graphs.captured((frames, rows) for rows in self._sizes[frames] if rows >= len(slots))
        batch, targets = self._padding(*size)
        batch[: len(slots)], targets[: len(slots)] = torch.from_numpy(codes), torch.tensor(slots)
        with graphs.in_use:
            return list(fetch(graphs[size].replay(batch, targets)[: len(slots)]))

    def _graphs(self, lengths: Sequence[int], priority: int) -> GraphSet[tuple[int, int]]:
        sizes = [(frames, rows) for frames in lengths for rows in self._sizes[frames]]
        device = self._decoder.device
        inputs = {size: tuple(part.to(device) for part in self._padding(*size)) for size in sizes}
        first_sizes = {(frames, rows) for frames, rows in sizes if rows in (1, self._count)}
        return GraphSet(self._decoder, inputs, device, priority, first_sizes)

    def _padding(self, frames: int, rows: int) -> tuple[Tensor, Tensor]:
        """Codes and slots of a batch that contains only padding."""
        codes = torch.zeros(rows, self._decoder.num_codebooks, frames, dtype=torch.int64)
        return codes, torch.full((rows,), self._count)


@contextmanager
def own_stream(device: torch.device, priority: int = 0) -> Iterator[None]:
    """Run on a separate CUDA stream (lower priority numbers go first); no effect on other devices."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device, priority=priority)):
        yield

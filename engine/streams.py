"""Codec streams of many takes: each on its own in plain torch, or batched in CUDA graphs by rows and frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.codec import Codec, StreamRows, StreamState

Piece = tuple[Hashable, np.ndarray]
"""Whose stream, and its next codes int16 (codebooks, frames ≥ 1)."""


Precision = Literal["float32", "tf32", "bfloat16"]


class Streams(Protocol):
    def decode(self, pieces: Sequence[Piece]) -> list[np.ndarray]:
        """Continue these open streams, each named once, by their codes: float32 (samples,) each."""

    def close(self, name: Hashable) -> None:
        """Forget a stream; one that never was is fine."""

    def open(self, name: Hashable) -> bool:
        """Start this stream unless it runs already; False when there is no room for it now."""


class PlainStreams:
    """Every stream alone, with any number of frames."""

    def __init__(self, codec: Codec, precision: Precision = "float32") -> None:
        self._codec, self._precision = codec, precision
        self._device = next(codec.parameters()).device
        self._states: dict[Hashable, StreamState] = {}

    @torch.inference_mode()
    def decode(self, pieces: Sequence[Piece]) -> list[np.ndarray]:
        return [self._one(name, codes) for name, codes in pieces]

    def close(self, name: Hashable) -> None:
        self._states.pop(name, None)

    def open(self, name: Hashable) -> bool:
        self._states.setdefault(name, StreamState(1))
        return True

    def _one(self, name: Hashable, codes: np.ndarray) -> np.ndarray:
        frames = torch.from_numpy(codes.astype(np.int64)).to(self._device)
        with decoding_in(self._precision, self._device):
            return self._codec.decode(frames[None], self._states[name])[0, 0].float().cpu().numpy()


class GraphStreams:
    """Up to `count` streams in one state; each (rows, frames) size is a CUDA graph, others are made up of these."""

    FRAMES = (8, 4, 2, 1)

    def __init__(self, codec: Codec, count: int, precision: Precision = "float32") -> None:
        self._codec, self._count, self._precision = codec, count, precision
        self._device = next(codec.parameters()).device
        self._state = StreamState(count + 1)  # one more, for filling a batch up
        self._free = list(range(count))
        self._rows: dict[Hashable, int] = {}
        self._sizes = [2**i for i in range(count.bit_length()) if 2**i < count] + [count]
        self._graphs: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, Tensor, Tensor, Tensor]] = {}

    @torch.inference_mode()
    def capture(self, progress: Callable[[float], None]) -> None:
        """Capture every size, the largest first so that the others fit into its memory pool."""
        with torch.cuda.device(self._device), decoding_in(self._precision, self._device):
            self._capture(progress)

    def _capture(self, progress: Callable[[float], None]) -> None:
        pool = None
        sizes = [(rows, frames) for rows in reversed(self._sizes) for frames in self.FRAMES]
        for done, (rows, frames) in enumerate(sizes, 1):
            index = torch.full((rows,), self._count, dtype=torch.int64, device=self._device)
            shape = (rows, self._codec.config.num_codebooks, frames)
            codes = torch.zeros(shape, dtype=torch.int64, device=self._device)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._codec.decode(codes, StreamRows(self._state, index))
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                pcm = self._codec.decode(codes, StreamRows(self._state, index))
            pool = pool or graph.pool()
            self._graphs[rows, frames] = graph, index, codes, pcm
            progress(done / len(sizes))

    @torch.inference_mode()
    def decode(self, pieces: Sequence[Piece]) -> list[np.ndarray]:
        sounds: list[list[np.ndarray]] = [[] for _ in pieces]
        rows = [self._rows[name] for name, _ in pieces]
        done = [0] * len(pieces)
        for frames in self.FRAMES:
            while due := [i for i, (_, codes) in enumerate(pieces) if codes.shape[1] - done[i] >= frames]:
                batch = [pieces[i][1][:, done[i] : done[i] + frames] for i in due]
                for i, pcm in zip(due, self._replay([rows[i] for i in due], np.stack(batch)), strict=True):
                    sounds[i].append(pcm)
                    done[i] += frames
        return [np.concatenate(parts) for parts in sounds]

    def close(self, name: Hashable) -> None:
        if name in self._rows:
            self._free.append(self._rows.pop(name))

    @torch.inference_mode()
    def open(self, name: Hashable) -> bool:
        if name not in self._rows:
            if not self._free:
                return False
            self._rows[name] = self._free.pop()
            self._state.reset(self._rows[name])
        return True

    def _replay(self, rows: list[int], codes: np.ndarray) -> list[np.ndarray]:
        """codes (rows, codebooks, frames), frames one of FRAMES → a row's samples each."""
        size = next(size for size in self._sizes if size >= len(rows))
        graph, index, static_codes, pcm = self._graphs[size, codes.shape[2]]
        padded = rows + [self._count] * (size - len(rows))
        index.copy_(torch.tensor(padded))
        static_codes[: len(rows)].copy_(torch.from_numpy(codes.astype(np.int64)))
        graph.replay()
        return list(pcm[: len(rows), 0].float().cpu().numpy())


@contextmanager
def decoding_in(precision: Precision, device: torch.device) -> Iterator[None]:
    """Decode in this precision. TF32 is a switch of the whole process: for captures at the start only."""
    if precision == "bfloat16":
        with torch.autocast(device.type, torch.bfloat16):
            yield
    elif precision == "tf32":
        before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
        try:
            yield
        finally:
            torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before
    else:
        yield


@contextmanager
def own_stream(device: torch.device, priority: int = 0) -> Iterator[None]:
    """Run on a CUDA stream of one's own (a lower number goes first); on other devices, as always."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream(device, priority=priority)):
        yield

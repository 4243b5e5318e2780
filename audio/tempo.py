"""Changes the speed of speech as a stream without changing its pitch: FFmpeg's atempo (WSOLA)."""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np
from av.filter import Graph

MIN_SPEED, MAX_SPEED = 0.25, 4.0
SLOWEST_STAGE = 0.5  # atempo's lower limit; slower speech passes through two of them


class Tempo:
    """Changes the speed of mono float32 by a factor; `write` returns the samples that are ready, `finish` the rest.

    Holds back about 0.1 s. The length is accurate to 0.1 s.
    """

    def __init__(self, speed: float, sample_rate: int) -> None:
        self._sample_rate = sample_rate
        self._samples = 0
        self._graph = Graph()
        self._graph.threads = 1  # by default FFmpeg starts one per core for each graph
        self._time_base = Fraction(1, sample_rate)
        node = self._graph.add_abuffer(format="flt", sample_rate=sample_rate, layout="mono", time_base=self._time_base)
        stages = [speed] if speed >= SLOWEST_STAGE else [SLOWEST_STAGE, speed / SLOWEST_STAGE]
        for stage in stages:
            following = self._graph.add("atempo", f"{stage:.6f}")
            node.link_to(following)
            node = following
        node.link_to(self._graph.add("abuffersink"))
        self._graph.configure()

    def write(self, pcm: np.ndarray) -> np.ndarray:
        """Take (samples,) float32, return float32 at the same rate."""
        if not len(pcm):
            return pcm
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(pcm[None]), format="flt", layout="mono")
        frame.sample_rate = self._sample_rate
        frame.time_base = self._time_base
        frame.pts = self._samples
        self._samples += len(pcm)
        self._graph.push(frame)
        return self._ready()

    def finish(self) -> np.ndarray:
        """The remaining samples; the stage cannot be used afterwards."""
        if not self._samples:
            return np.zeros(0, np.float32)
        self._graph.push(None)
        return self._ready()

    def _ready(self) -> np.ndarray:
        pieces = [np.zeros(0, np.float32)]
        while True:
            try:
                pieces.append(self._graph.pull().to_ndarray()[0])
            except (BlockingIOError, EOFError):  # no output yet, or none left
                return np.concatenate(pieces)

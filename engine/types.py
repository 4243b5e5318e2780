"""The engine's nouns: what goes in (Utterance) and what comes out (AudioChunk), frozen, with units."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from engine.config import Weights
from engine.engine_errors import InvalidUtterance
from engine.model_card import ModelCard

FinishReason = Literal["stop", "length"]

MAX_TOP_K = 1024
MAX_SEED = 2**63 - 1
MAX_FRAMES = 1_000_000


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn, in both autoregressive models.

    Upstream's order: top-p and top-k act on the un-tempered distribution, temperature comes after.
    ``temperature=0`` always takes the best token (and leaves repetition-aware sampling nothing to choose).
    The same seed and request give the same codes.
    """

    temperature: float = 0.8
    top_p: float = 0.9
    top_k: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        _within("temperature", self.temperature, 0.0, 2.0)
        _within("top_p", self.top_p, 0.0, 1.0)
        _whole("top_k", self.top_k, 1, MAX_TOP_K)
        _whole("seed", self.seed, 0, MAX_SEED)


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """Whose voice: a clip's codes (codebooks, frames) int16 and the words spoken in it."""

    codes: np.ndarray
    text: str
    timbre: np.ndarray | None = None
    """float32 (dim,): the clip's timbre vector, where the codec makes one (`EngineInfo.timbre_dim`)."""

    def __post_init__(self) -> None:
        codes = self.codes
        if codes.dtype != np.int16 or codes.ndim != 2 or codes.shape[1] == 0:
            raise InvalidUtterance(
                f"reference codes must be int16 (codebooks, frames > 0), not {codes.dtype} {codes.shape}"
            )
        if not self.text.strip():
            raise InvalidUtterance("a reference needs the words spoken in its clip; its text is blank")
        timbre = self.timbre
        if timbre is not None and (timbre.dtype != np.float32 or timbre.ndim != 1 or not np.isfinite(timbre).all()):
            raise InvalidUtterance(
                f"a timbre vector must be float32 (dim,) of finite numbers, not {timbre.dtype} {timbre.shape}"
            )

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, eq=False, slots=True)
class Utterance:
    """What to say and how: the engine's whole input, free of files, names and databases."""

    text: str
    references: tuple[Reference, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    max_frames: int = 2048
    """At most this many frames (21.5 a second for S2 Pro); a take that reaches it finishes by "length"."""
    history: tuple[Reference, ...] = ()
    """What was said before in this conversation, oldest first: each turn's words and its frames."""
    so_far: np.ndarray | None = None
    """Codes of this very take that were heard already, int16 (codebooks, frames): it goes on after them, and only what
    is new is given out. ``max_frames`` counts them too. No frames are the same as None."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidUtterance("there is nothing to say: the text is blank")
        _whole("max_frames", self.max_frames, 1, MAX_FRAMES)
        codes = self.so_far
        if codes is None:
            return
        if not isinstance(codes, np.ndarray) or codes.dtype != np.int16 or codes.ndim != 2:
            found = f"{codes.dtype} {codes.shape}" if isinstance(codes, np.ndarray) else type(codes).__name__
            raise InvalidUtterance(f"the frames so far must be int16 (codebooks, frames), not {found}")
        if self.frames_so_far >= self.max_frames:
            raise InvalidUtterance(
                f"{self.frames_so_far} frames so far leave nothing to say within max_frames, which is "
                f"{self.max_frames} and counts them too; raise it"
            )

    @property
    def frames_so_far(self) -> int:
        return 0 if self.so_far is None else int(self.so_far.shape[1])


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds since the utterance was handed over, by the engine's clock."""

    admitted: float
    """When the utterance left the waiting line."""
    first_frame: float
    """When the take's first frame was drawn."""
    now: float
    """When this chunk was ready."""


@dataclass(frozen=True, eq=False, slots=True)
class AudioChunk:
    """A piece of a take: float32 mono samples in [-1, 1] and the codes that they were decoded from.

    ``finish_reason`` is None on every chunk but the last: "stop" when the model ended the take,
    "length" when max_frames or the context did. The last chunk may be empty.
    """

    pcm: np.ndarray
    codes: np.ndarray
    """int16 (codebooks, frames)"""
    first_frame: int
    timing: Timing
    finish_reason: FinishReason | None = None
    resumed_at: int | None = None
    """The frame at which the take was taken up again (`Utterance.so_far`); None for one from the beginning."""

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    memory_bytes: int
    """All that it has, whoever uses it."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What the loaded checkpoint and device are; constant while the engine lives."""

    model: str
    device: str
    dtype: str
    sample_rate: int
    """Hz"""
    frame_samples: int
    num_codebooks: int
    max_context: int
    """Positions a row: prompt and generated frames together."""
    max_rows: int
    max_waiting: int
    codec_fingerprint: str
    """Changes whenever the same clip could encode to other codes."""
    parameters: int
    fingerprint: str = ""
    """Of the weights that draw the codes: engines with the same one, of the same dtype and weights, speak alike."""
    weights: Weights = "bf16"
    """In how many bits the weights are held."""
    memory: str = ""
    """What the engine holds, item by item, in GiB."""
    memory_bytes: int = 0
    """The sum of that."""
    frame_path: str = "plain torch"
    """How a frame is drawn."""
    kv_attention: str = "off"
    """Whether the KV-cache attention kernel is used, and if not, why."""
    card: ModelCard = field(default_factory=ModelCard)
    """What the checkpoint says of itself."""
    family: str = ""
    """Of the checkpoint: S2, S1, Audio8."""
    cannot_align: str | None = None
    """Why the times of words cannot be found here; None where they can."""
    timbre_dim: int | None = None
    """Values of a reference's timbre vector; None where the codes alone say whose voice it is."""
    gpu: Gpu | None = None
    """The device's, or the machine's first where the engine is on its CPU; None: it has none that torch can use."""

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.sample_rate / self.frame_samples


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot of the engine at work."""

    running: int
    waiting: int
    finished: int
    cancelled: int
    frames: int
    """Frames generated since the start."""
    busy_seconds: float
    """Time spent computing since the start; it grows with every piece of a prompt and every frame."""
    kv_attention_hits: int = 0
    """Frames drawn with the KV-cache attention kernel."""
    kv_attention_fallbacks: int = 0
    """Frames drawn without it."""
    prefix_hits: int = 0
    """Takes whose voice was known: only their text was prefilled."""
    prefix_misses: int = 0
    prefix_bytes: int = 0
    """What is kept of known voices."""
    codec_streams: int = 0
    """Takes that the codec still has a state of."""
    book_errors: int = 0
    """How often an idle engine found that a cache holds something else than it counts, and put that right."""
    graphs_left: int = 0
    """CUDA graphs that are still to be captured, while nobody waits: until then smaller batches are filled up."""
    replicas: Mapping[str, EngineStats] = field(default_factory=dict)
    """Of several engines under one name, each one's own figures by its name; the others are then their sums."""
    trouble: str | None = None
    """A problem that does not keep the engine from speaking; None if there is none."""


def _within(name: str, value: float, low: float, high: float) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidUtterance(f"{name} must be between {low:g} and {high:g}, not {value}")


def _whole(name: str, value: int, low: int, high: int) -> None:
    """Any integer will do, NumPy's too."""
    try:
        is_within = low <= operator.index(value) <= high
    except TypeError:
        is_within = False
    if not is_within:
        raise InvalidUtterance(f"{name} must be a whole number between {low} and {high}, not {value}")

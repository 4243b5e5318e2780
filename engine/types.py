"""The engine's data types: its input (Utterance) and output (AudioChunk), frozen, with units."""

from __future__ import annotations

import math
import operator
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

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
    """How tokens are sampled, in both autoregressive models.

    Upstream's order: top-p and top-k act on the un-tempered distribution, temperature comes after. Qwen3-TTS has its
    own, by `engine.model.draw_rules`; it is published with temperature 0.9, top-p 1 and top-k 50.
    ``temperature=0`` always takes the best token (and so switches off repetition-aware sampling).
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
    """A voice to speak in: a clip's codes (codebooks, frames) int16 and its transcript.

    With a vector both may be left out: no frames, a blank text.
    """

    codes: np.ndarray
    text: str
    vector: np.ndarray | None = None
    """The voice itself, float32 (values,), as `encode_reference` returns it with models that need it."""

    def __post_init__(self) -> None:
        codes, vector = self.codes, self.vector
        if vector is not None and (vector.dtype != np.float32 or vector.ndim != 1 or not np.isfinite(vector).all()):
            raise InvalidUtterance(
                f"a voice's vector must be finite float32 (values,), not {vector.dtype} {vector.shape}"
            )
        if vector is not None and codes.ndim == 2 and codes.shape[1] == 0 and codes.dtype == np.int16:
            return
        if codes.dtype != np.int16 or codes.ndim != 2 or codes.shape[1] == 0:
            raise InvalidUtterance(
                f"reference codes must be int16 (codebooks, frames > 0), not {codes.dtype} {codes.shape}"
            )
        if not self.text.strip():
            raise InvalidUtterance("a reference needs the words spoken in its clip; its text is blank")

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, eq=False, slots=True)
class Utterance:
    """A text to speak and how: the engine's whole input, free of files, names and databases."""

    text: str
    references: tuple[Reference, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    max_frames: int = 2048
    """At most this many frames (21.5 a second for S2 Pro); a take that reaches it finishes by "length"."""
    history: tuple[Reference, ...] = ()
    """The previous turns of this conversation, oldest first: each turn's text and frames."""
    so_far: np.ndarray | None = None
    """Codes of the beginning of this take, int16 (codebooks, frames): generation continues after them, and only new
    audio is returned. ``max_frames`` counts them too. No frames are the same as None."""
    language: str | None = None
    """The text's language for models that are told it: en, zh-CN, English …; None: they decide. Others ignore it."""
    speaker: str | None = None
    """One of the model's own voices, `EngineInfo.speakers`, in place of references."""
    instructions: str = ""
    """How to speak, or a description of the voice, for models that take instructions."""
    owner: str = ""
    """Who gets it: of the utterances that wait, the next is one of the owner with the fewest rows."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InvalidUtterance("the text is blank; there is nothing to speak")
        _whole("max_frames", self.max_frames, 1, MAX_FRAMES)
        codes = self.so_far
        if codes is None:
            return
        if not isinstance(codes, np.ndarray) or codes.dtype != np.int16 or codes.ndim != 2:
            actual = f"{codes.dtype} {codes.shape}" if isinstance(codes, np.ndarray) else type(codes).__name__
            raise InvalidUtterance(f"the frames so far must be int16 (codebooks, frames), not {actual}")
        if self.frames_so_far >= self.max_frames:
            raise InvalidUtterance(
                f"the {self.frames_so_far} frames so far already reach max_frames, which is "
                f"{self.max_frames} and counts them too; raise it"
            )

    @property
    def frames_so_far(self) -> int:
        return 0 if self.so_far is None else int(self.so_far.shape[1])


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds since the utterance was submitted, by the engine's clock."""

    admitted: float
    """Time at which the utterance left the queue."""
    first_frame: float
    """Time at which the take's first frame was sampled."""
    now: float
    """Time at which this chunk was ready."""


@dataclass(frozen=True, eq=False, slots=True)
class AudioChunk:
    """A piece of a take: float32 mono samples in [-1, 1] and the codes they were decoded from.

    ``finish_reason`` is None on every chunk but the last: "stop" when the model ended the take, "length" when it
    reached max_frames or the context's end. The last chunk may be empty.
    """

    pcm: np.ndarray
    codes: np.ndarray
    """int16 (codebooks, frames)"""
    first_frame: int
    timing: Timing
    finish_reason: FinishReason | None = None
    resumed_at: int | None = None
    """The frame at which the take was resumed (`Utterance.so_far`); None for a new take."""

    @property
    def frames(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as its driver names it."""

    name: str
    memory_bytes: int
    """Its total memory, used or free."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """The loaded checkpoint and device; constant while the engine lives."""

    model: str
    device: str
    dtype: str
    sample_rate: int
    """Hz"""
    frame_samples: int
    num_codebooks: int
    max_context: int
    """Positions per row: prompt and generated frames together."""
    max_rows: int
    max_waiting: int
    codec_fingerprint: str
    """Changes whenever the same clip could encode to other codes."""
    parameters: int
    fingerprint: str = ""
    """Fingerprint of the weights that generate codes: engines with equal fingerprint, dtype and weights sound alike."""
    weights: Weights = "bf16"
    """Bits of the layer weights; see EngineConfig."""
    memory: str = ""
    """The engine's memory, item by item, in GiB."""
    memory_bytes: int = 0
    """Total of `memory`, in bytes."""
    frame_path: str = "plain torch"
    """How frames are generated."""
    kv_attention: str = "off"
    """Whether the KV-cache attention kernel is used, and the reason if not."""
    card: ModelCard = field(default_factory=ModelCard)
    family: str = ""
    """Family of the checkpoint: S2, S1, Audio8, Qwen3-TTS."""
    clones: bool = True
    """Whether it speaks in the voices of clips."""
    speakers: tuple[str, ...] = ()
    """Voices of its own."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes of the languages that an utterance can name; empty: it ignores them."""
    instructs: bool = False
    """Whether it takes `Utterance.instructions`."""
    designs: bool = False
    """Whether these describe the voice, which it makes up."""
    sampling: Sampling = field(default_factory=Sampling)
    """What its takes are usually sampled with; the seed means nothing."""
    remembers: bool = True
    """Whether it uses `Utterance.history` as context; if not, each utterance starts without any."""
    cannot_align: str | None = None
    """Why word times cannot be computed; None where they can."""
    gpu: Gpu | None = None
    """The engine's GPU, or the machine's first if the engine runs on the CPU; None without a GPU usable by torch."""

    @property
    def frame_rate(self) -> float:
        return self.sample_rate / self.frame_samples


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot of the running engine."""

    running: int
    waiting: int
    finished: int
    cancelled: int
    frames: int
    """Frames generated since the start."""
    busy_seconds: float
    """Time spent computing since the start; it grows with every piece of a prompt and every frame."""
    kv_attention_hits: int = 0
    """Frames generated with the KV-cache attention kernel."""
    kv_attention_fallbacks: int = 0
    """Frames generated without it."""
    prefix_hits: int = 0
    """Takes in a cached voice, which prefilled only their text."""
    prefix_misses: int = 0
    prefix_bytes: int = 0
    """Memory of cached voices."""
    codec_streams: int = 0
    """Takes with an open codec stream."""
    book_errors: int = 0
    """Number of accounting errors that an idle engine found in its caches and corrected."""
    graphs_left: int = 0
    """CUDA graphs still to be captured while the engine is idle; until then smaller batches are padded."""
    replicas: Mapping[str, EngineStats] = field(default_factory=dict)
    """Figures of each of several engines by its name; the other figures are their sums."""
    trouble: str | None = None
    """A problem that does not stop the engine; None without one."""


def _within(name: str, value: float, low: float, high: float) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidUtterance(f"{name} must be between {low:g} and {high:g}, not {value}")


def _whole(name: str, value: int, low: int, high: int) -> None:
    """Accepts any integer type, NumPy's too."""
    try:
        is_within = low <= operator.index(value) <= high
    except TypeError:
        is_within = False
    if not is_within:
        raise InvalidUtterance(f"{name} must be a whole number between {low} and {high}, not {value}")


class SpeechEngine(Protocol):
    """Text and reference codes in, audio out. `Engine` documents each method and its errors."""

    @property
    def info(self) -> EngineInfo:
        """The loaded checkpoint and device; constant while the engine lives."""

    def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        """The take, chunk by chunk; leaving the iteration cancels it."""

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        """Encode a clip, float32 (samples,) or (channels, samples) at sample_rate Hz."""

    async def align(self, text: str, codes: np.ndarray) -> np.ndarray:
        """Seconds at which each character of a text begins in the frames that speak it, and the end."""

    def stats(self) -> EngineStats:
        """A snapshot, returned at once."""

    @property
    def failure(self) -> str | None:
        """Why it accepts no more work; None while it runs."""

    def stop(self) -> None:
        """End every take with EngineStopped and free all resources. Calling it again does nothing."""

"""The configuration of an engine (EngineConfig) and the sizes of a checkpoint's models (ModelConfig)."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from engine.engine_errors import ConfigError

PromptLayout = Literal["chat", "interleave", "talker"]
MIN_CONTEXT = 256
"""Minimum context; in less, hardly a sentence fits beside the prompt's fixed tokens."""


Weights = Literal["bf16", "int8", "int6"]
"""Bits of the autoregressive models' layer weights: bf16, as `dtype` says; int8, one scale per row; int6, one scale per
64 weights in the slow AR, and int8 in the fast AR."""
TwelveBits = Literal["none", "words", "tiles"]
"""Which bfloat16 weights have a second copy in twelve bits on CUDA; it changes products by less than float32's own
rounding. none; words: the copy read by one or two rows; tiles: in addition gates and ups, the largest weights,
as read by three to eight rows."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Configuration of one engine. ``None`` means "choose by device"; EngineInfo shows the choice."""

    model: str
    """A folder, or a hub id such as fishaudio/s2-pro."""
    device: str | None = None
    """cpu, cuda, cuda:1 …; None uses a GPU if there is one."""
    codec_device: str | None = None
    """None: the same device."""
    dtype: str | None = None
    """float32 or bfloat16 for the autoregressive models; None: float32 on a CPU, bfloat16 elsewhere."""
    codec_dtype: Literal["float32", "tf32", "bfloat16"] | None = "float32"
    """Precision of the codec's decoder; clips are always encoded in float32. tf32 needs graphs; None uses it where
    possible, else float32."""
    max_rows: int | None = None
    """Utterances generated at the same time; None: 8 on CUDA, 4 elsewhere, or as many of these as fit into memory."""
    max_waiting: int = 64
    """Utterances that may wait for a row; more raise EngineFull."""
    max_context: int | None = None
    """Positions per row, prompt and frames together; None: the checkpoint's own, at most 4096, or as many as fit."""
    memory_bytes: int | None = None
    """Memory budget; a larger plan is refused with its arithmetic. None: the free memory of a GPU, else unlimited."""
    prefix_bytes: int | None = None
    """Memory for the keys and values of known voices, so that their takes prefill only the text; 0 caches none. None:
    512 MiB, or 128 where memory is short."""
    graphs: bool = True
    """On CUDA, generate frames by one graph over fused kernels; False: plain torch."""
    kv_attention: Literal["auto", "off", "required"] = "auto"
    """The KV-cache attention kernel: used if it loads, never used, or required."""
    weights: Weights | None = None
    """None: on a GPU by its free memory; on a CPU int8 for models much larger than the bundled one; else bf16."""
    reproducible: bool = False
    """Whether a seeded take has the same codes alone and among others, bit by bit. Otherwise one row uses faster
    products than several, and the results may differ by rounding. On CUDA it needs the attention kernel; on a CPU it
    removes the advantage of batching rows."""
    threads: int | None = None
    """CPU threads per torch operation; None: half of the cores when the device is a CPU."""

    def __post_init__(self) -> None:
        if self.weights not in (None, *get_args(Weights)):
            raise ConfigError(f"weights {self.weights!r} is not one of {', '.join(get_args(Weights))}")
        least = {"max_rows": 1, "max_waiting": 0, "prefix_bytes": 0, "memory_bytes": 1, "threads": 1}
        for name, low in (least | {"max_context": MIN_CONTEXT}).items():
            value = getattr(self, name)
            if value is not None and value < low:
                raise ConfigError(f"{name} must be at least {low}, not {value}")

    def rows_on(self, device_type: str) -> int:
        """``max_rows``, or the default for that kind of device if memory allows."""
        return self.max_rows or (8 if device_type == "cuda" else 4)


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """One of the two autoregressive transformers."""

    vocab_size: int
    n_layer: int
    dim: int
    n_head: int
    n_kv_head: int
    head_dim: int
    intermediate_size: int
    qk_norm: bool
    rope_base: float
    norm_eps: float
    qkv_bias: bool = field(default=False, repr=False)
    """Whether the projection to queries, keys and values has a bias."""
    exact_rope: bool = field(default=False, repr=False)
    """Whether rotations keep float32."""

    @property
    def rope(self) -> tuple[int, float, bool]:
        """What `rope_angles` needs."""
        return self.head_dim, self.rope_base, self.exact_rope


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """What a prompt in the layout "talker" is made of, as tokens of the slow AR's table, and what its model can do."""

    kind: Literal["base", "custom_voice", "voice_design"]
    """Clones clips; speaks in its own voices; makes up a voice from its description."""
    im_start: int
    im_end: int
    text_pad: int
    text_begin: int
    text_end: int
    pad: int
    """This and the following ones are added to a token of text."""
    begin: int
    think: int
    no_think: int
    think_begin: int
    think_end: int
    languages: Mapping[str, int]
    """By English name, dialects such as sichuan_dialect too."""
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]
    """Speakers' dialects, by which they speak Chinese."""
    takes_instructions: bool
    vector_size: int
    """Values of a voice's vector: 0 where voices have none."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes, token ids and switches of a dual-AR checkpoint, read by `engine.checkpoint.families`.

    A checkpoint's fingerprint is computed from this object's repr, which leaves out fields added for later families, so
    that fingerprints in existing libraries stay valid.
    """

    slow: TransformerSizes
    fast: TransformerSizes
    num_codebooks: int
    codebook_size: int
    """Rows per codebook in the input table, and the fast AR's input vocabulary."""
    max_context: int
    tie_word_embeddings: bool
    eos_token: int
    semantic_start: int
    """Token id of semantic code 0."""
    semantic_end: int
    """Token id of the last semantic code, inclusive."""
    family: str = field(default="S2", repr=False)
    prompt_layout: PromptLayout = field(default="chat", repr=False)
    scales_codes: bool = field(default=True, repr=False)
    """Whether a frame's embedding, the sum of its token's and codes' rows, is divided by √(num_codebooks + 1)."""
    fast_reads_norm: bool = field(default=True, repr=False)
    """Whether the fast AR gets the slow hidden state after the final norm; False: before it."""
    residual_codes: int | None = field(default=None, repr=False)
    """Leading entries of the fast AR's head that may be sampled; None: all `codebook_size`."""
    codes_apart: bool = field(default=False, repr=False)
    """Whether the fast AR has a table and a head for each code, one after the other in its tensors; else one for all
    codes."""
    head_start: int = field(default=0, repr=False)
    """The token of the first row of a head that is not tied."""
    joins_spaces: bool = field(default=False, repr=False)
    """Whether runs of white space in texts are collapsed to one space."""
    talker: TalkerConfig | None = field(default=None, repr=False, compare=False)
    """Only with the prompt layout "talker"."""

    def __post_init__(self) -> None:
        ids = self.semantic_start, self.semantic_end, self.eos_token
        if min(ids) < 0 or max(ids) >= self.slow.vocab_size or not 1 <= self.semantic_size <= self.codebook_size:
            raise ValueError(
                f"semantic tokens {self.semantic_start} to {self.semantic_end} and the stop token {self.eos_token} "
                f"do not lie within a vocabulary of {self.slow.vocab_size} and {self.codebook_size} codes"
            )

    @property
    def semantic_size(self) -> int:
        return self.semantic_end - self.semantic_start + 1

    @property
    def fast_heads(self) -> int:
        """Heads of the fast AR."""
        return self.num_codebooks - 1 if self.codes_apart else 1

    @property
    def code_divisor(self) -> float:
        """The divisor of a frame's embedding."""
        return math.sqrt(self.num_codebooks + 1) if self.scales_codes else 1.0


def positive_number(tree: Mapping[str, Any], key: str) -> float:
    """A finite number above 0. Raises KeyError, TypeError, ValueError, OverflowError."""
    value = float(tree[key])
    if not 0 < value < math.inf:
        raise ValueError(f"{key} is {tree[key]!r}, expected a finite number above 0")
    return value


def whole_number(tree: Mapping[str, Any], key: str, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``. Raises KeyError, TypeError, ValueError, OverflowError."""
    value = int(tree[key])
    if value != tree[key] or not least <= value <= most:
        raise ValueError(f"{key} is {tree[key]!r}, expected a whole number from {least} to {most}")
    return value


CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
"""A container's limit of processor time: microseconds, or "max", in each of so many."""


def available_cores() -> int:
    """The number of usable cores: fewer than the machine has if a container or `taskset` restricts the process."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(count, container_limit())))


def container_limit() -> float:
    """The processor time that a container allows, in cores; infinite without such a limit."""
    try:
        share, period = CPU_LIMIT.read_text("utf-8").split()
        return math.inf if share == "max" else int(share) / int(period)
    except (OSError, ValueError):  # no such limit on this system
        return math.inf


def physical_cores() -> int:
    """The number of usable cores, each counted once where it runs two threads, as far as the system says so."""
    usable, siblings = available_cores(), set()
    if not hasattr(os, "sched_getaffinity"):
        return usable

    for cpu in os.sched_getaffinity(0):
        try:
            siblings.add(Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text("utf-8"))
        except OSError:
            return usable
    return min(usable, len(siblings))


def default_threads() -> int:
    """Threads per torch operation on a CPU: the engine and the codec work side by side, each on half of the cores."""
    return max(1, available_cores() // 2)

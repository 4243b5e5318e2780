"""How an engine is set up (EngineConfig) and how large the checkpoint's models are (ModelConfig, from config.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from engine.engine_errors import CheckpointError, ConfigError

MODEL_TYPE = "fish_qwen3_omni"
MIN_CONTEXT = 256
"""Positions below which hardly a sentence fits beside the prompt's own words."""


Weights = Literal["bf16", "int8", "int6"]
"""In how many bits the layers of the autoregressive models are held: bf16, as `dtype` says; int8, a scale a row; int6,
a scale for 64 weights in the slow AR, and in the fast AR as int8."""
_FORMER_WEIGHTS: dict[Any, Weights | None] = {"auto": None, "dtype": "bf16", "fp8": "int8", "fp8-all": "int8"}
TwelveBits = Literal["none", "words", "tiles"]
"""What is held of weights in twelve bits: nothing; the words that one row or two read; and besides the same words of
gates and ups, the largest weights, as the tiles that three to eight rows read."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Set-up of one engine. ``None`` means "choose by device"; the choice is shown in EngineInfo."""

    model: str
    """A folder, or a hub id such as fishaudio/s2-pro."""
    device: str | None = None
    """cpu, cuda, cuda:1 …; None takes a GPU when there is one."""
    codec_device: str | None = None
    """None: the same device."""
    dtype: str | None = None
    """float32 or bfloat16 for the autoregressive models; None: float32 on a CPU, bfloat16 elsewhere."""
    codec_dtype: Literal["float32", "tf32", "bfloat16"] | None = "float32"
    """Precision of the codec's decoder; clips are always encoded in float32. tf32 needs graphs; None takes it where it
    can, else float32."""
    max_rows: int | None = None
    """Utterances spoken at the same time; None: 8 on CUDA, 4 elsewhere, or as many of these as there is memory for."""
    max_waiting: int = 64
    """Utterances that may wait for a row; beyond it EngineFull."""
    max_context: int | None = None
    """Positions a row, prompt and frames together; None: the checkpoint's own, at most 4096, or what fits."""
    memory_bytes: int | None = None
    """What the engine may hold; more is refused with the numbers. None: what is free on a GPU, else anything."""
    prefix_bytes: int | None = None
    """Memory for the keys and values of known voices, so that their takes prefill only the text; 0: none is kept. None:
    512 MiB, or 128 where memory is short."""
    graphs: bool = True
    """On CUDA, draw a frame by one graph over fused kernels; False: plain torch."""
    kv_attention: Literal["auto", "off", "required"] = "auto"
    """The KV-cache attention kernel: where it can load, never, or refuse to start without it."""
    weights: Weights | None = None
    """None: on a GPU by what memory is free, elsewhere bf16."""
    twelve_bits: bool = True
    """On CUDA, where memory for it is left: one or two rows read bfloat16 weights from a second copy in twelve bits,
    which changes their products by less than float32's own rounding; up to eight rows the largest weights."""
    reproducible: bool = False
    """Whether a seeded take has the same codes alone and among others, bit by bit. Without it one row goes through
    faster products than several, and rounding may then tell which. On CUDA it needs the attention kernel; on a CPU
    rows gain nothing by being many."""
    threads: int | None = None
    """CPU threads a torch operation may use; None: half of the cores when the device is a CPU."""

    def __post_init__(self) -> None:
        if self.weights in _FORMER_WEIGHTS:
            object.__setattr__(self, "weights", _FORMER_WEIGHTS[self.weights])
        if self.weights not in (None, *get_args(Weights)):
            raise ConfigError(f"weights {self.weights!r} is not one of {', '.join(get_args(Weights))}")
        for name, low in (
            ("max_rows", 1),
            ("max_waiting", 0),
            ("prefix_bytes", 0),
            ("memory_bytes", 1),
            ("max_context", MIN_CONTEXT),
            ("threads", 1),
        ):
            value = getattr(self, name)
            if value is not None and value < low:
                raise ConfigError(f"{name} must be at least {low}, not {value}")

    def rows_on(self, device_type: str) -> int:
        """``max_rows``, or what is chosen for that kind of device if there is memory for it."""
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


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes and token ids of a dual-AR checkpoint; every one comes from its config.json.

    Not in the file, and wired in upstream for this model_type: codebook embeddings are scaled by
    1/√(num_codebooks+1), the fast AR gets the *normed* slow hidden state, and takes norm_eps and
    rope_base from text_config.
    """

    slow: TransformerSizes
    fast: TransformerSizes
    num_codebooks: int
    codebook_size: int
    """Rows a codebook has in the input table, and the fast AR's vocabulary."""
    max_context: int
    tie_word_embeddings: bool
    eos_token: int
    semantic_start: int
    """Token id of semantic code 0."""
    semantic_end: int
    """Token id of the last semantic code, inclusive."""

    @property
    def semantic_size(self) -> int:
        return self.semantic_end - self.semantic_start + 1

    @classmethod
    def read(cls, folder: Path) -> ModelConfig:
        """Read folder/config.json. Raises CheckpointError naming the file and the key."""
        path = folder / "config.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise CheckpointError(f"{path} is missing: {folder} is not a checkpoint folder") from error
        except ValueError as error:
            raise CheckpointError(f"{path} is not valid JSON: {error}") from error
        model_type = tree.get("model_type") if isinstance(tree, dict) else None
        if model_type != MODEL_TYPE:
            raise CheckpointError(f"{path}: model_type is {model_type!r}, expected {MODEL_TYPE!r}")
        try:
            return cls._from_tree(tree)
        except KeyError as error:
            raise CheckpointError(f"{path} lacks the key {error}") from error
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{path} has a value of the wrong kind: {error}") from error

    @classmethod
    def _from_tree(cls, tree: dict[str, Any]) -> ModelConfig:
        text, audio = tree["text_config"], tree["audio_decoder_config"]
        return cls(
            slow=_sizes(text, text),
            fast=_sizes(audio, text),
            num_codebooks=int(audio["num_codebooks"]),
            codebook_size=int(audio["vocab_size"]),
            max_context=int(text["max_seq_len"]),
            tie_word_embeddings=bool(text.get("tie_word_embeddings", True)),
            eos_token=int(tree["eos_token_id"]),
            semantic_start=int(tree["semantic_start_token_id"]),
            semantic_end=int(tree["semantic_end_token_id"]),
        )


def _sizes(tree: dict[str, Any], text: dict[str, Any]) -> TransformerSizes:
    for bias in ("attention_qkv_bias", "attention_o_bias"):
        if tree.get(bias):
            raise ValueError(f"{bias} is true; this architecture has none")
    return TransformerSizes(
        vocab_size=int(tree["vocab_size"]),
        n_layer=int(tree["n_layer"]),
        dim=int(tree["dim"]),
        n_head=int(tree["n_head"]),
        n_kv_head=int(tree["n_local_heads"]),
        head_dim=int(tree["head_dim"]),
        intermediate_size=int(tree["intermediate_size"]),
        qk_norm=bool(tree["attention_qk_norm"]),
        rope_base=float(text["rope_base"]),
        norm_eps=float(text["norm_eps"]),
    )

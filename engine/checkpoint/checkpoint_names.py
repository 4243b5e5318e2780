"""Converts tensor names from files, published or flat, to those of the model, and back for messages and exports."""

from __future__ import annotations

# File prefix → the model's; the first match counts, so the special cases come first.
_PUBLISHED = (
    ("text_model.model.output.", "slow_output."),
    ("text_model.model.", "slow."),
    ("audio_decoder.codebook_embeddings.", "codebook_embeddings."),
    ("audio_decoder.output.", "fast_output."),
    ("audio_decoder.fast_project_in.", "fast_project_in."),
    ("audio_decoder.", "fast."),
)
_FLAT = (
    ("codebook_embeddings.", "codebook_embeddings."),
    ("fast_output.", "fast_output."),
    ("fast_project_in.", "fast_project_in."),
    ("fast_embeddings.", "fast.embeddings."),
    ("fast_layers.", "fast.layers."),
    ("fast_norm.", "fast.norm."),
    ("output.", "slow_output."),
    ("embeddings.", "slow.embeddings."),
    ("layers.", "slow.layers."),
    ("norm.", "slow.norm."),
)
_UNUSED = ("freqs_cis", "causal_mask")


def model_key(key: str) -> str | None:
    """A file's tensor name → the model's; None where the model has no such part."""
    return _replaced(key.removeprefix("model."), (*_PUBLISHED, *_FLAT))


def is_unused(key: str) -> bool:
    """Whether loaders leave a tensor out: computed tables and buffers."""
    own = key.removeprefix("model.")
    is_audio = own.startswith("audio_") and not own.startswith("audio_decoder.")
    return own.endswith(_UNUSED) or own.startswith("_buf.") or is_audio


def is_adapter(key: str) -> bool:
    """Whether a tensor belongs to a LoRA. A file does not tell whether it is merged already, so it is never ignored."""
    return "lora_" in key


def published_key(name: str) -> str:
    """The model's tensor name → its name in published files. Raises KeyError."""
    key = _replaced(name, tuple((ours, theirs) for theirs, ours in _PUBLISHED))
    if key is None:
        raise KeyError(name)
    return key


def flat_key(name: str) -> str:
    """The model's tensor name → its name in flat files."""
    return _replaced(name, tuple((ours, theirs) for theirs, ours in _FLAT)) or name


def _replaced(name: str, prefixes: tuple[tuple[str, str], ...]) -> str | None:
    for before, after in prefixes:
        if name.startswith(before):
            return after + name.removeprefix(before)
    return None

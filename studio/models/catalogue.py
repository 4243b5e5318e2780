"""The models that the studio offers: where they are published, under which licence, and their sizes as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from studio.models.hub_files import HubFiles
from studio.paths import ASSETS

_WANTED = re.compile(
    r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.(safetensors|json)|(model|codec)\.pth|codec\.yaml|tokenizer\.tiktoken|README\.md"
)

_SLOW: dict[str, Any] = {
    "vocab_size": 155776,
    "n_layer": 36,
    "dim": 2560,
    "intermediate_size": 9728,
    "n_head": 32,
    "n_local_heads": 8,
    "head_dim": 128,
    "attention_qk_norm": True,
    "attention_qkv_bias": False,
    "attention_o_bias": False,
    "rope_base": 1e6,
    "norm_eps": 1e-6,
    "max_seq_len": 32768,
    "tie_word_embeddings": True,
}
_FAST = {"vocab_size": 4096, "n_layer": 4, "attention_qk_norm": False, "max_seq_len": 11, "tie_word_embeddings": False}
S2_PRO: dict[str, Any] = {
    "model_type": "fish_qwen3_omni",
    "eos_token_id": 151645,
    "pad_token_id": 151669,
    "audio_pad_token_id": 151677,
    "semantic_start_token_id": 151678,
    "semantic_end_token_id": 155773,
    "text_config": _SLOW,
    "audio_decoder_config": _SLOW | _FAST | {"num_codebooks": 10, "text_dim": 2560},
}
"""config.json of fishaudio/s2-pro, as far as an engine reads it."""
_FLAT: dict[str, Any] = {
    "vocab_size": 155776,
    "codebook_size": 4096,
    "num_codebooks": 10,
    "n_fast_layer": 4,
    "rope_base": 1e6,
    "norm_eps": 1e-6,
    "semantic_begin_id": 151678,
    "semantic_end_id": 155773,
    "eos_token_id": 151645,
}
S1_MINI: dict[str, Any] = _FLAT | {
    "model_type": "dual_ar",
    "n_layer": 28,
    "dim": 1024,
    "n_head": 16,
    "n_local_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "max_seq_len": 8192,
    "tie_word_embeddings": False,
    "attention_qk_norm": True,
    "fast_dim": 1024,
    "fast_n_head": 16,
    "fast_n_local_heads": 8,
    "fast_head_dim": 64,
    "fast_intermediate_size": 3072,
    "fast_attention_qk_norm": False,
    "scale_codebook_embeddings": True,
}
AUDIO8: dict[str, Any] = _FLAT | {
    "model_type": "arktts",
    "n_layer": 24,
    "dim": 896,
    "n_head": 14,
    "n_local_heads": 2,
    "head_dim": 64,
    "intermediate_size": 4864,
    "max_seq_len": 2048,
    "tie_word_embeddings": True,
    "attention_qk_norm": False,
    "attention_qkv_bias": True,
    "fast_attention_qkv_bias": False,
    "codec_post_n_layer": 8,
    "codec_post_n_head": 16,
    "codec_post_intermediate_size": 1216,
}


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model that can be downloaded, or is bundled."""

    name: str
    """In commands and addresses."""
    title: str
    licence: str
    licence_url: str
    languages: tuple[str, ...]
    """ISO 639 codes, the best first."""
    clones: bool
    repo: str | None = None
    """On the hub; None: it is bundled."""
    download_bytes: int = 0
    """Approximate."""
    needed: frozenset[str] = frozenset()
    """Files besides the weights without which it is not complete."""
    tree: dict[str, Any] | None = None
    """Its config.json, as far as an engine reads it."""
    more_languages: bool = False
    """Whether it speaks many more than those named."""

    @property
    def files(self) -> HubFiles:
        """What to download."""
        assert self.repo is not None, "the bundled model is not downloaded"
        return HubFiles(
            self.repo,
            _WANTED,
            self.needed | {"config.json"},
            last="config.json",
            max_bytes=2 * self.download_bytes,
            without="Without the internet, copy the model into a folder on this machine and choose that folder.",
        )


BUNDLED = CatalogueModel(
    "bundled",
    "Bundled model",
    "Apache-2.0",
    "https://www.apache.org/licenses/LICENSE-2.0",
    ("en",),
    clones=False,
)
BUNDLED_FOLDER = str(ASSETS / "fry")
CATALOGUE = (
    BUNDLED,
    CatalogueModel(
        "audio8-0.6b",
        "Audio8-TTS-Preview 0.6B",
        "Apache-2.0",
        "https://huggingface.co/Audio8/Audio8-TTS-Preview-0.6b",
        ("en", "zh", "yue", "ja", "ko", "de", "fr", "es", "it", "nl", "pl"),
        clones=True,
        repo="Audio8/Audio8-TTS-Preview-0.6b",
        download_bytes=2_500_000_000,
        needed=frozenset({"codec.pth", "tokenizer.json"}),
        tree=AUDIO8,
    ),
    CatalogueModel(
        "s1-mini",
        "OpenAudio S1-mini",
        "CC-BY-NC-SA-4.0",
        "https://huggingface.co/fishaudio/openaudio-s1-mini",
        ("en", "zh", "ja", "de", "fr", "es", "ko", "ar", "ru", "nl", "it", "pl", "pt"),
        clones=True,
        repo="fishaudio/openaudio-s1-mini",
        download_bytes=3_600_000_000,
        needed=frozenset({"codec.pth", "tokenizer.tiktoken", "special_tokens.json"}),
        tree=S1_MINI,
    ),
    CatalogueModel(
        "s2-pro",
        "S2 Pro",
        "Fish Audio Research License",
        "https://huggingface.co/fishaudio/s2-pro",
        ("en", "zh", "ja", "ko", "es", "pt", "ar", "ru", "fr", "de"),
        clones=True,
        repo="fishaudio/s2-pro",
        download_bytes=11_000_000_000,
        needed=frozenset({"codec.pth", "tokenizer.json", "model.safetensors.index.json"}),
        tree=S2_PRO,
        more_languages=True,
    ),
)


def in_catalogue(name: str) -> CatalogueModel | None:
    """By its name, or its repository's; None if it is not in the catalogue."""
    wanted = name.strip().casefold()
    return next((model for model in CATALOGUE if wanted in (model.name, (model.repo or model.name).casefold())), None)

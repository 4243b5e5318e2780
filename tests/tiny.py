"""Small random checkpoints in the published layout of S2 Pro, written in a second, equal for equal seeds.

The codec's tensors are created by fish-speech's own class, so that their names are the published ones.
Weights are drawn so that signals keep their size through every layer and every parameter matters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from tests import quick_codec

quick_codec.hasten()

Nesting = Literal["plain", "generator", "state_dict", "prefix"]

CONTROL_TOKENS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>", "<|phoneme_start|>", "<|phoneme_end|>",
    "<|text|>", "<|voice|>", "<|interleave|>", "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>",
)  # fmt: skip

# Pairs that a tokeniser merges inside a string. Some would also join across the borders of strings
# that the prompt encodes one by one (a line end and the next word, a full stop and a line end).
MERGES = ("t h", "th e", "i n", "e r", "Ġ the", "Ċ c", ". Ċ", "Ċ Ċ", "Ċ <", "< |", "| >", "o n", "Ċ Y")


@dataclass(frozen=True)
class TinyModel:
    """Sizes of the two autoregressive models."""

    dim: int = 64
    n_layer: int = 3
    n_head: int = 4
    n_local_heads: int = 2
    head_dim: int = 16
    intermediate_size: int = 96
    fast_dim: int = 64
    fast_n_layer: int = 2
    fast_n_head: int = 4
    fast_n_local_heads: int = 2
    fast_head_dim: int = 16
    fast_intermediate_size: int = 80
    rope_base: float = 10_000
    max_seq_len: int = 2048
    tie_word_embeddings: bool = True
    stop_bias: float = 0.1
    """Scale of <|im_end|>'s row relative to the others: a small one keeps greedy takes from ending."""


@dataclass(frozen=True)
class TinyCodec:
    """Sizes of the codec; the rates are S2 Pro's unless said otherwise: 2048 samples a frame at 44.1 kHz."""

    encoder_dim: int = 4
    decoder_dim: int = 32
    latent_dim: int = 64
    encoder_rates: tuple[int, ...] = (2, 4, 8, 8)
    decoder_rates: tuple[int, ...] = (8, 8, 4, 2)
    downsample: tuple[int, ...] = (2, 2)
    encoder_layers: int = 1
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    transformer_dim: int = 64
    window: int = 16
    num_codebooks: int = 10
    """Including the semantic one."""
    semantic_codebook_size: int = 128
    codebook_size: int = 64
    block_size: int = 1024

    @property
    def frame_samples(self) -> int:
        total = 1
        for rate in (*self.encoder_rates, *self.downsample):
            total *= rate
        return total


FEW_LAYERS = TinyModel(n_layer=2, fast_n_layer=1)
FEW_CODEBOOKS = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=3)
"""Used together for tests that do not concern the model: a frame takes about half the CPU time of the usual sizes."""


def write_checkpoint(
    folder: Path,
    model: TinyModel | None = None,
    codec: TinyCodec | None = None,
    *,
    seed: int = 0,
    shards: int = 1,
    nesting: Nesting = "plain",
) -> Path:
    """Write config.json, weights, tokenizer.json, codec.pth and codec.yaml into ``folder`` and return it."""
    model, codec = model or TinyModel(), codec or TinyCodec()
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer(codec.semantic_codebook_size)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = build_config(model, codec, tokenizer)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    _write_weights(folder, random_weights(model, config, seed), shards)
    write_codec(folder, codec, seed, nesting)
    return folder


def build_tokenizer(semantic_tokens: int) -> Tokenizer:
    """Byte-level BPE with a few merges, then the control tokens, then <|semantic:0|> … in order."""
    vocabulary = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [(left, right) for left, _, right in (pair.partition(" ") for pair in MERGES)]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    semantic = [f"<|semantic:{index}|>" for index in range(semantic_tokens)]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in (*CONTROL_TOKENS, *semantic)]
    )
    return tokenizer


def build_config(model: TinyModel, codec: TinyCodec, tokenizer: Tokenizer) -> dict[str, Any]:
    """config.json: three rows of the embedding stay unused, as in the published one."""
    last = codec.semantic_codebook_size - 1
    shared = {"rope_base": model.rope_base, "norm_eps": 1e-6, "dropout": 0.0}
    return {
        "model_type": "fish_qwen3_omni",
        "eos_token_id": tokenizer.token_to_id("<|im_end|>"),
        "pad_token_id": tokenizer.token_to_id("<|pad|>"),
        "audio_pad_token_id": tokenizer.token_to_id("<|audio_pad|>"),
        "semantic_start_token_id": tokenizer.token_to_id("<|semantic:0|>"),
        "semantic_end_token_id": tokenizer.token_to_id(f"<|semantic:{last}|>"),
        "text_config": shared
        | {
            "model_type": "fish_qwen3",
            "vocab_size": tokenizer.get_vocab_size() + 3,
            "n_layer": model.n_layer,
            "dim": model.dim,
            "intermediate_size": model.intermediate_size,
            "n_head": model.n_head,
            "n_local_heads": model.n_local_heads,
            "head_dim": model.head_dim,
            "max_seq_len": model.max_seq_len,
            "tie_word_embeddings": model.tie_word_embeddings,
            "attention_qk_norm": True,
            "attention_qkv_bias": False,
            "attention_o_bias": False,
        },
        "audio_decoder_config": shared
        | {
            "model_type": "fish_qwen3_audio_decoder",
            "vocab_size": codec.semantic_codebook_size,
            "num_codebooks": codec.num_codebooks,
            "n_layer": model.fast_n_layer,
            "dim": model.fast_dim,
            "text_dim": model.dim,
            "intermediate_size": model.fast_intermediate_size,
            "n_head": model.fast_n_head,
            "n_local_heads": model.fast_n_local_heads,
            "head_dim": model.fast_head_dim,
            "max_seq_len": codec.num_codebooks + 1,
            "tie_word_embeddings": False,
            "attention_qk_norm": False,
            "attention_qkv_bias": False,
            "attention_o_bias": False,
        },
    }


def random_weights(model: TinyModel, config: dict[str, Any], seed: int) -> dict[str, Tensor]:
    """Every tensor of the two autoregressive models by its published name, in bfloat16."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> Tensor:
        return torch.randn(rows, columns, generator=generator) * scale / columns**0.5

    def norm(size: int) -> Tensor:
        return 1 + 0.1 * torch.randn(size, generator=generator)

    slow, fast = config["text_config"], config["audio_decoder_config"]
    tensors = {"text_model.model.embeddings.weight": matrix(slow["vocab_size"], model.dim, 4.0)}
    tensors["text_model.model.embeddings.weight"][config["eos_token_id"]] *= model.stop_bias
    for prefix, part in (("text_model.model", slow), ("audio_decoder", fast)):
        dim, heads, groups = part["dim"], part["n_head"], part["n_local_heads"]
        width = part["head_dim"]
        for layer in range(part["n_layer"]):
            name = f"{prefix}.layers.{layer}"
            tensors[f"{name}.attention.wqkv.weight"] = matrix((heads + 2 * groups) * width, dim, 1.5)
            tensors[f"{name}.attention.wo.weight"] = matrix(dim, heads * width, 2.0)
            if part["attention_qk_norm"]:
                tensors[f"{name}.attention.q_norm.weight"] = norm(width)
                tensors[f"{name}.attention.k_norm.weight"] = norm(width)
            tensors[f"{name}.attention_norm.weight"] = norm(dim)
            tensors[f"{name}.ffn_norm.weight"] = norm(dim)
            for part_name in ("w1", "w3"):
                tensors[f"{name}.feed_forward.{part_name}.weight"] = matrix(part["intermediate_size"], dim, 1.5)
            tensors[f"{name}.feed_forward.w2.weight"] = matrix(dim, part["intermediate_size"], 3.0)
        tensors[f"{prefix}.norm.weight"] = norm(dim)
    if not model.tie_word_embeddings:
        tensors["text_model.model.output.weight"] = matrix(slow["vocab_size"], model.dim, 4.0)
        tensors["text_model.model.output.weight"][config["eos_token_id"]] *= model.stop_bias
    size = fast["vocab_size"]
    tensors["audio_decoder.codebook_embeddings.weight"] = matrix(size * fast["num_codebooks"], model.dim, 4.0)
    tensors["audio_decoder.embeddings.weight"] = matrix(size, model.fast_dim, 8.0)
    tensors["audio_decoder.output.weight"] = matrix(size, model.fast_dim, 4.0)
    if model.fast_dim != model.dim:
        tensors["audio_decoder.fast_project_in.weight"] = matrix(model.fast_dim, model.dim)
        tensors["audio_decoder.fast_project_in.bias"] = 0.3 * torch.randn(model.fast_dim, generator=generator)
    return {key: value.to(torch.bfloat16) for key, value in tensors.items()}


def _write_weights(folder: Path, tensors: dict[str, Tensor], shards: int) -> None:
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for index in range(shards):
        file = f"model-{index + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[index::shards]}
        save_file(part, folder / file)
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index_json = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index_json))


def codec_config(sizes: TinyCodec) -> dict[str, Any]:
    """The contents of codec.yaml, in fish-speech's format."""
    arguments = {
        "_target_": "fish_speech.models.dac.modded_dac.ModelArgs",
        "block_size": sizes.block_size,
        "n_local_heads": -1,
        "head_dim": sizes.head_dim,
        "rope_base": 10_000,
        "norm_eps": 1e-5,
        "dropout_rate": 0.1,
        "attn_dropout_rate": 0.1,
        "channels_first": True,
    }
    transformer = {
        "_target_": "fish_speech.models.dac.modded_dac.WindowLimitedTransformer",
        "causal": True,
        "window_size": sizes.window,
        "input_dim": sizes.latent_dim,
        "config": arguments
        | {
            "n_layer": sizes.n_layer,
            "n_head": sizes.n_head,
            "dim": sizes.transformer_dim,
            "intermediate_size": 96,
        },
    }
    blocks = len(sizes.encoder_rates)
    return {
        "_target_": "fish_speech.models.dac.modded_dac.DAC",
        "sample_rate": 44_100,
        "encoder_dim": sizes.encoder_dim,
        "encoder_rates": list(sizes.encoder_rates),
        "latent_dim": sizes.latent_dim,
        "decoder_dim": sizes.decoder_dim,
        "decoder_rates": list(sizes.decoder_rates),
        "encoder_transformer_layers": [0] * (blocks - 1) + [sizes.encoder_layers],
        "decoder_transformer_layers": [0] * len(sizes.decoder_rates),
        "transformer_general_config": arguments | {"_partial_": True},
        "quantizer": {
            "_target_": "fish_speech.models.dac.rvq.DownsampleResidualVectorQuantize",
            "input_dim": sizes.latent_dim,
            "n_codebooks": sizes.num_codebooks - 1,
            "codebook_size": sizes.codebook_size,
            "codebook_dim": 8,
            "quantizer_dropout": 0.5,
            "downsample_factor": list(sizes.downsample),
            "pre_module": transformer,
            "post_module": transformer,
            "semantic_codebook_size": sizes.semantic_codebook_size,
        },
    }


def write_codec(folder: Path, sizes: TinyCodec, seed: int = 0, nesting: Nesting = "plain") -> None:
    """Write codec.yaml and codec.pth: parametrised and legacy weight norm, stale buffers and all."""
    folder.mkdir(parents=True, exist_ok=True)
    config, weights = _codec_files(sizes, seed, nesting)
    (folder / "codec.yaml").write_text(config)
    (folder / "codec.pth").write_bytes(weights)


@cache
def _codec_files(sizes: TinyCodec, seed: int, nesting: Nesting) -> tuple[str, bytes]:
    """The contents of codec.yaml and codec.pth, created once per size: building the class takes longest."""
    from tests.upstream import build_codec

    config = codec_config(sizes)
    codec = build_codec(config)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for name, parameter in codec.named_parameters():
            parameter.copy_(_draw(name, parameter, generator))
    state: dict[str, Any] = codec.state_dict()
    if nesting == "prefix":
        state = {f"generator.{key}": value for key, value in state.items()}
    elif nesting != "plain":
        state = {nesting: state}
    file = BytesIO()
    torch.save(state, file)
    return yaml.dump(config, Dumper=_NoAliases, sort_keys=False), file.getvalue()


def _draw(name: str, like: Tensor, generator: torch.Generator) -> Tensor:
    """A value for one codec parameter by its role, so that signals neither vanish nor explode."""
    noise = torch.randn(like.shape, generator=generator)
    uniform = torch.rand(like.shape, generator=generator)
    role = name.rpartition(".")[2]
    if role == "alpha":  # Snake's frequency
        return 0.5 + 1.5 * uniform
    if role == "gamma":  # LayerScale and ConvNeXt scale
        return 0.3 + 0.05 * noise
    if role == "original0":  # the gain of a weight-normed convolution
        return 0.4 + 0.3 * uniform if like.numel() > 1 else torch.full_like(like, 0.8)  # one: before tanh
    if role == "weight_g":  # quantiser projections: each stage smaller than the one before
        stage = int(name.split(".quantizers.")[1].split(".", maxsplit=1)[0]) + (".quantizer.quantizers" in name)
        return (0.7 + 0.2 * uniform) * (0.8**stage if "out_proj" in name else 1.0)
    if role == "bias":
        return 0.1 * noise
    if like.ndim == 1:  # norms
        return 1 + 0.1 * noise
    if role in ("original1", "weight_v") or "codebook" in name:
        return noise
    return noise * 1.2 / like[0].numel() ** 0.5


class _NoAliases(yaml.SafeDumper):
    """Writes repeated values in full each time."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def damage_values(weights: Path) -> None:
    """Give a safetensors file a tensor that is refused only when it is read."""
    tensors = load_file(weights)
    name = min(tensors)
    save_file({**tensors, name: tensors[name].to(torch.int32)}, weights)

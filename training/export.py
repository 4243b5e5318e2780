"""Exports the trained stages as a checkpoint folder in the published layout, as `engine` loads it.

    python -m training.export WORK assets/fry

Reads WORK/codes.pt, WORK/decoder.pt and WORK/speech.pt. The codec is written in half precision: the tensors that affect
codes were rounded to it before the corpus was encoded, so the file gives the codes that the language model was trained
on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file
from torch import Tensor

from engine import ModelCard
from engine.checkpoint import published_key
from engine.codec.codec_config import CodecConfig, TransformerConfig
from engine.config import TransformerSizes
from training.sizes import CODEC, MODEL
from training.speech.vocabulary import token_id, write_tokenizer


def codec_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Both stages' tensors with upstream's names, weight norm unfolded into gain and direction."""
    out: dict[str, Tensor] = {}
    for name, tensor in state.items():
        stem, _, leaf = name.rpartition(".")
        value = tensor.half()
        if leaf == "weight" and name.startswith(("encoder.", "decoder.")) and tensor.dim() == 3:
            names = (".parametrizations.weight.original0", ".parametrizations.weight.original1")
        elif leaf == "weight" and stem.endswith(("in_proj", "out_proj")) and ".quantizers." in stem:
            names = (".weight_g", ".weight_v")
        else:
            out[name] = value.contiguous()
            continue
        # The gain is the direction's own norm, so that folding restores the direction; float32 keeps it exact.
        out[stem + names[0]] = value.float().flatten(1).norm(dim=1).view(-1, *[1] * (value.dim() - 1))
        out[stem + names[1]] = value.contiguous()
    return out


def codec_yaml(config: CodecConfig) -> dict[str, Any]:
    """The codec's sizes in the layout of upstream's modded_dac_vq.yaml."""
    model = "fish_speech.models.dac."
    general = {
        "block_size": 4096, "n_local_heads": -1, "head_dim": config.general_head_dim,
        "rope_base": config.general_rope_base, "norm_eps": config.general_norm_eps,
        "dropout_rate": 0.1, "attn_dropout_rate": 0.1, "channels_first": True,
    }  # fmt: skip

    def transformer(sizes: TransformerConfig) -> dict[str, Any]:
        names = ("n_layer", "n_head", "dim", "intermediate_size", "head_dim", "rope_base", "norm_eps")
        inner = {name: getattr(sizes, name) for name in names}
        return {
            "_target_": model + "modded_dac.WindowLimitedTransformer",
            "causal": True, "window_size": sizes.window, "input_dim": sizes.input_dim,
            "config": {"_target_": model + "modded_dac.ModelArgs"} | general | inner,
        }  # fmt: skip

    return {
        "_target_": model + "modded_dac.DAC",
        "sample_rate": config.sample_rate,
        "encoder_dim": config.encoder_dim,
        "encoder_rates": list(config.encoder_rates),
        "latent_dim": config.latent_dim,
        "decoder_dim": config.decoder_dim,
        "decoder_rates": list(config.decoder_rates),
        "encoder_transformer_layers": list(config.encoder_transformer_layers),
        "decoder_transformer_layers": [0] * len(config.decoder_rates),
        "transformer_general_config": {"_target_": model + "modded_dac.ModelArgs", "_partial_": True} | general,
        "quantizer": {
            "_target_": model + "rvq.DownsampleResidualVectorQuantize",
            "input_dim": config.latent_dim,
            "n_codebooks": config.residual_codebooks,
            "codebook_size": config.residual_codebook_size,
            "codebook_dim": config.codebook_dim,
            "quantizer_dropout": 0.0,
            "downsample_factor": list(config.downsample_factor),
            "downsample_dims": list(config.downsample_dims),
            "semantic_codebook_size": config.semantic_codebook_size,
            "pre_module": transformer(config.pre_module),
            "post_module": transformer(config.post_module),
        },
    }


def model_config() -> dict[str, Any]:
    """config.json's tree."""

    def sizes(transformer: TransformerSizes) -> dict[str, Any]:
        tree = asdict(transformer)
        tree["n_local_heads"] = tree.pop("n_kv_head")
        tree["attention_qk_norm"] = tree.pop("qk_norm")
        tree["attention_qkv_bias"] = tree.pop("qkv_bias")
        return tree | {"attention_o_bias": False, "dropout": 0.0, "dtype": "bfloat16"}

    return {
        "model_type": "fish_qwen3_omni",
        "architectures": ["FishQwen3OmniForCausalLM"],
        "dtype": "bfloat16",
        "pad_token_id": token_id("<|pad|>"),
        "eos_token_id": MODEL.eos_token,
        "audio_pad_token_id": token_id("<|audio_pad|>"),
        "semantic_start_token_id": MODEL.semantic_start,
        "semantic_end_token_id": MODEL.semantic_end,
        "text_config": {"model_type": "fish_qwen3"}
        | sizes(MODEL.slow)
        | {"max_seq_len": MODEL.max_context, "tie_word_embeddings": MODEL.tie_word_embeddings},
        "audio_decoder_config": {"model_type": "fish_qwen3_audio_decoder"}
        | sizes(MODEL.fast)
        | {
            "num_codebooks": MODEL.num_codebooks,
            "text_dim": MODEL.slow.dim,
            "max_seq_len": MODEL.num_codebooks + 1,
            "tie_word_embeddings": False,
        },
    }


CARD = ModelCard(True, ("en",), ("whisper", "fast", "slow", "high", "low", "pause"), demo=True)
"""The facts about the model that the studio needs."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    work, out = arguments.work, arguments.out
    speech, codes, decoder = (
        torch.load(work / f"{name}.pt", map_location="cpu") for name in ("speech", "codes", "decoder")
    )
    tensors = {published_key(k): v.bfloat16().contiguous() for k, v in speech.items()}
    codec = codec_tensors(codes | decoder)
    out.mkdir(parents=True, exist_ok=True)  # only now: a checkpoint that is there stays whole if a stage is missing
    save_file(tensors, out / "model.safetensors", metadata={"format": "pt"})
    torch.save(codec, out / "codec.pth")
    (out / "codec.yaml").write_text(yaml.safe_dump(codec_yaml(CODEC), sort_keys=False))
    (out / "card.json").write_text(json.dumps(asdict(CARD), indent=1) + "\n")
    (out / "config.json").write_text(json.dumps(model_config(), indent=1) + "\n")
    write_tokenizer(out)
    size = sum(path.stat().st_size for path in out.iterdir() if path.is_file())
    print(f"{out}: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

"""A checkpoint folder as large as S2 Pro's, of random weights: python -m benchmarks.full_size FOLDER [--device cuda]

With ``--shape audio8`` as large as Audio8-TTS-Preview-0.6b's, and so for each Qwen3-TTS of the catalogue.

Everything is where the published checkpoint has it: names, shapes, bfloat16, token ids. What differs: the tokenizer
knows only bytes and the benchmarks' common words (a word is a token, about as long as S2 Pro's are), and the rows of
<|im_end|> and of the tokens that must not be drawn are zero. Random logits spread with a deviation of one, so zero is
never among the best 50, and a take ends only at its limit.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers
from torch import Tensor

from benchmarks.common.material import sentence
from benchmarks.common.report import Report
from engine.checkpoint import open_source, published_key
from engine.codec import Codec
from engine.config import ModelConfig
from engine.model.dual_ar import DualAR, only_shapes
from studio.models.catalogue import TREES
from tests import tiny_qwen
from tests.tiny_qwen_codec import SPEAKER_ENCODER, speaker_encoder_tensors, speech_tokenizer_config, write_codec

S2_PRO = TREES["s2-pro"]
AUDIO8 = TREES["audio8-0.6b"] | {key: S2_PRO[key] for key in S2_PRO if key.endswith("_token_id")}
"""Audio8's, with the ids of tokens that S2 Pro's has besides."""
SHAPES = {"s2-pro": S2_PRO, "audio8": AUDIO8} | {name: tree for name, tree in TREES.items() if "talker_config" in tree}
VOICE_ENCODER = {
    "enc_channels": [512, 512, 512, 512, 1536], "enc_attention_channels": 128, "enc_res2net_scale": 8,
    "enc_se_channels": 128,
}  # fmt: skip
"""Sizes that Qwen3-TTS's config.json leaves out, here and in its codec."""
MIMI = {
    "num_filters": 64, "hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8,
    "head_dim": 64, "intermediate_size": 2048, "sliding_window": 250, "codebook_dim": 256,
}  # fmt: skip
GENERATION = {
    "temperature": 0.9, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05, "max_new_tokens": 8192,
    "subtalker_temperature": 0.9, "subtalker_top_k": 50, "subtalker_top_p": 1.0,
}  # fmt: skip
QWEN_DECODER = {
    "codebook_dim": 512, "latent_dim": 1024, "hidden_size": 512, "head_dim": 64, "num_attention_heads": 16,
    "num_key_value_heads": 16, "num_hidden_layers": 8, "intermediate_size": 1024, "sliding_window": 72,
    "decoder_dim": 1536,
}  # fmt: skip
DEVIATION = 0.02
SHARD_BYTES = 2**30


def write_checkpoint(folder: Path, device: torch.device, tree: dict[str, Any] = S2_PRO) -> Path:
    """Write config.json, tokenizer.json, shards with their index, and codec.pth; the same for the same device.

    The codec has the sizes of the folder's codec.yaml, if there is one, else those of the tree's family.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(tree, indent=1))
    if "talker_config" in tree:
        return _write_qwen(folder, device, tree)
    tokenizer(tree).save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    source = open_source(folder)
    _write_shards(folder, _weights(source.config, device))
    with only_shapes():
        state = Codec(source.codec_config).state_dict()
    tensors = {name: _codec_tensor(name, like, device).cpu() for name, like in state.items()}
    torch.save(tensors, folder / "codec.pth")
    return folder


def _write_qwen(folder: Path, device: torch.device, tree: dict[str, Any]) -> Path:
    """All files of a Qwen3-TTS; the codec's sizes are those of all published ones, but the codes' are the tree's."""
    torch.manual_seed(0)
    talker, predictor = tree["talker_config"], tree["talker_config"]["code_predictor_config"]
    tensors: dict[str, Tensor] = {}
    for name, shape in tiny_qwen.shapes(tree).items():
        tensor = torch.ones(shape, device=device)
        if not name.endswith("norm.weight"):
            tensor.normal_(0, DEVIATION)
        if name == "talker.codec_head.weight":
            tensor[talker["codec_eos_token_id"]] = 0
        tensors[name] = tensor.bfloat16().cpu()
    if tree["tts_model_type"] == "base":
        sizes = SPEAKER_ENCODER | VOICE_ENCODER | tree["speaker_encoder_config"]
        tensors |= {name: tensor.bfloat16() for name, tensor in speaker_encoder_tensors(sizes).items()}
    save_file(tensors, folder / "model.safetensors")
    learnt = learnt_tokenizer()["model"]
    (folder / "vocab.json").write_text(json.dumps(learnt["vocab"]))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, learnt["merges"]), ""]), "utf-8")
    added = {str(tree[f"{key}_token_id"]): {"content": f"<|{key}|>", "special": True} for key in ("im_start", "im_end")}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": added}))
    (folder / "generation_config.json").write_text(json.dumps(GENERATION))
    codec = speech_tokenizer_config(predictor["vocab_size"], talker["num_code_groups"])
    encoder, decoder = codec["encoder_config"] | MIMI, codec["decoder_config"] | QWEN_DECODER
    codec |= {"encoder_config": encoder, "decoder_config": decoder}
    write_codec(folder / "speech_tokenizer", codec)
    return folder


def tokenizer(tree: dict[str, Any]) -> Tokenizer:
    """`learnt_tokenizer`'s, and the control tokens at the ids of config.json."""
    learnt = learnt_tokenizer()
    stop, first, last = (tree[key] for key in ("eos_token_id", "semantic_start_token_id", "semantic_end_token_id"))
    control = {"<|im_start|>": stop - 1, "<|im_end|>": stop, "<|pad|>": tree["pad_token_id"]}
    control |= {"<|voice|>": first - 5, "<|audio_pad|>": tree["audio_pad_token_id"]}
    control |= {f"<|semantic:{code}|>": first + code for code in range(last - first + 1)}
    # Tokens that the vocabulary already has keep their ids when they are added as special ones.
    learnt["model"]["vocab"] |= control
    tokenizer = Tokenizer.from_str(json.dumps(learnt))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


def learnt_tokenizer() -> dict[str, Any]:
    """Byte-level BPE trained on the benchmarks' words, as a tokenizer.json."""
    learning = Tokenizer(models.BPE())
    learning.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False)
    learning.train_from_iterator((sentence(seed, 1000) for seed in range(20)), trainer)
    learnt: dict[str, Any] = json.loads(learning.to_str())
    return learnt


def _weights(config: ModelConfig, device: torch.device) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the two autoregressive models by its published name, in bfloat16, one after the other."""
    with only_shapes():
        model = DualAR(config)
    for name, like in model.named_parameters():
        tensor = torch.ones(like.shape, device=device)
        if not name.endswith("norm.weight"):
            tensor.normal_(0, DEVIATION)
        key = published_key(name)
        if key == "text_model.model.embeddings.weight":
            tensor[config.eos_token] = 0
            tensor[config.semantic_end + 1 :] = 0
        yield key, tensor.bfloat16()


def _write_shards(folder: Path, tensors: Iterator[tuple[str, Tensor]]) -> None:
    """Shards of about a gigabyte, each written as soon as it is full, and their index."""
    shard: dict[str, Tensor] = {}
    files: dict[str, str] = {}

    def write() -> None:
        name = f"model-{len(set(files.values())) + 1:05d}.safetensors"
        save_file(shard, folder / name)
        files.update(dict.fromkeys(shard, name))
        shard.clear()

    for key, tensor in tensors:
        shard[key] = tensor
        if sum(value.nbytes for value in shard.values()) >= SHARD_BYTES:
            write()
    if shard:
        write()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))


def _codec_tensor(name: str, like: Tensor, device: torch.device) -> Tensor:
    """A value by its role, so that a signal neither vanishes nor explodes in the codec."""
    noise = torch.randn(like.shape, device=device)
    role = name.rpartition(".")[2]
    if role == "alpha":  # Snake's frequency
        return 1 + 0.3 * noise.tanh()
    if role == "gamma":  # LayerScale and ConvNeXt scale
        return torch.full(like.shape, 0.3, device=device)
    if role == "bias":
        return DEVIATION * noise
    if like.ndim == 1:  # norms
        return torch.ones(like.shape, device=device)
    if "codebook" in name:
        return noise
    before_tanh = like.shape[0] == 1  # kept low, so that the audio does not clip
    return noise * (0.01 if before_tanh else 1) / like[0].numel() ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="s2-pro")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report, started = Report(options.out), time.perf_counter()
    with torch.inference_mode():
        write_checkpoint(options.folder, torch.device(options.device), SHAPES[options.shape])
    size = sum(file.stat().st_size for file in options.folder.rglob("*") if file.is_file())
    report.add({"full_size_write_s": round(time.perf_counter() - started, 1), "full_size_bytes": size})
    report.close()


if __name__ == "__main__":
    main()

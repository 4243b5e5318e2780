"""A checkpoint folder as large as S2 Pro's, of random weights: python -m benchmarks.full_size FOLDER [--device cuda]

With ``--shape audio8`` as large as Audio8-TTS-Preview-0.6b's.

Everything is where the published checkpoint has it: names, shapes, bfloat16, token ids. What differs: the tokenizer
knows only bytes and the benchmarks' common words (a word is a token, about as long as S2 Pro's are), and the rows of
<|im_end|> and of the tokens that must not be drawn are zero. Random logits spread with a deviation of one, so zero is
never among the best 30, and a take ends only at its limit.
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

S2_PRO = TREES["s2-pro"]
AUDIO8 = TREES["audio8-0.6b"] | {key: S2_PRO[key] for key in S2_PRO if key.endswith("_token_id")}
"""Audio8's, with the ids of tokens that S2 Pro's has besides."""
SHAPES = {"s2-pro": S2_PRO, "audio8": AUDIO8}
DEVIATION = 0.02
SHARD_BYTES = 2**30


def write_checkpoint(folder: Path, device: torch.device, tree: dict[str, Any] = S2_PRO) -> Path:
    """Write config.json, tokenizer.json, shards with their index, and codec.pth; the same for the same device.

    The codec has the sizes of the folder's codec.yaml, if there is one, else those of the tree's family.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(tree, indent=1))
    tokenizer(tree).save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    source = open_source(folder)
    _write_shards(folder, _weights(source.config, device))
    with only_shapes():
        state = Codec(source.codec_config).state_dict()
    tensors = {name: _codec_tensor(name, like, device).cpu() for name, like in state.items()}
    torch.save(tensors, folder / "codec.pth")
    return folder


def tokenizer(tree: dict[str, Any]) -> Tokenizer:
    """Byte-level BPE trained on the benchmarks' words, and the control tokens at the ids of config.json."""
    learning = Tokenizer(models.BPE())
    learning.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False)
    learning.train_from_iterator((sentence(seed, 1000) for seed in range(20)), trainer)
    learnt = json.loads(learning.to_str())
    stop, first, last = (tree[key] for key in ("eos_token_id", "semantic_start_token_id", "semantic_end_token_id"))
    control = {"<|im_start|>": stop - 1, "<|im_end|>": stop, "<|pad|>": tree["pad_token_id"]}
    control |= {"<|voice|>": first - 5, "<|audio_pad|>": tree["audio_pad_token_id"]}
    control |= {f"<|semantic:{code}|>": first + code for code in range(last - first + 1)}
    # Tokens that the vocabulary already has keep their ids when they are added as special ones.
    learnt["model"]["vocab"] |= control
    tokenizer = Tokenizer.from_str(json.dumps(learnt))
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


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
    size = sum(file.stat().st_size for file in options.folder.iterdir())
    report.add({"full_size_write_s": round(time.perf_counter() - started, 1), "full_size_bytes": size})
    report.close()


if __name__ == "__main__":
    main()

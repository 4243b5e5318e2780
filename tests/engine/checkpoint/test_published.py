"""Loading a checkpoint: published names and shapes; errors name the file, the key, the expected and actual value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoint import Checkpoint, find, load, open_source, published_key
from engine.engine_errors import CheckpointError
from engine.model.dual_ar import DualAR
from tests.tiny import TinyCodec, TinyModel, write_checkpoint, write_codec

CPU = torch.device("cpu")
SMALL = TinyModel(n_layer=1, fast_n_layer=1)

# The sizes in the published config.json of fishaudio/s2-pro.
S2_PRO = {
    "model_type": "fish_qwen3_omni",
    "eos_token_id": 151645,
    "pad_token_id": 151669,
    "audio_pad_token_id": 151677,
    "semantic_start_token_id": 151678,
    "semantic_end_token_id": 155773,
    "text_config": {
        "vocab_size": 155776, "n_layer": 36, "dim": 2560, "intermediate_size": 9728, "n_head": 32,
        "n_local_heads": 8, "head_dim": 128, "attention_qk_norm": True, "rope_base": 1e6, "norm_eps": 1e-6,
        "max_seq_len": 32768, "tie_word_embeddings": True, "dropout": 0.0,
    },
    "audio_decoder_config": {
        "vocab_size": 4096, "n_layer": 4, "dim": 2560, "intermediate_size": 9728, "n_head": 32,
        "n_local_heads": 8, "head_dim": 128, "attention_qk_norm": False, "rope_base": 1e6, "norm_eps": 1e-6,
        "max_seq_len": 11, "tie_word_embeddings": False, "num_codebooks": 10, "text_dim": 2560,
    },
}  # fmt: skip
# SHA-256 over "name|BF16|rowsxcolumns" of every tensor, sorted, one per line: recorded for the published header.
S2_PRO_FINGERPRINT = "7080b1c9b5d5e95589a1efa18db19616170d7e35664e2e4e7f744bbf7180adad"


def load_folder(folder: Path) -> Checkpoint:
    return load(folder, CPU, CPU, torch.float32)


def test_s2_pro_has_the_published_tensors(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(S2_PRO))
    with torch.device("meta"):
        model = DualAR(open_source(tmp_path).config)
    state = model.state_dict()
    rows = [f"{published_key(key)}|BF16|{'x'.join(map(str, value.shape))}" for key, value in state.items()]
    assert len(rows) == 358
    assert sum(value.numel() for value in state.values()) == 4_561_852_416
    assert hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest() == S2_PRO_FINGERPRINT


@pytest.mark.parametrize("shards", [1, 3])
def test_every_tensor_is_loaded_under_its_published_name(tmp_path: Path, shards: int) -> None:
    write_checkpoint(tmp_path, TinyModel(fast_dim=48, tie_word_embeddings=False), shards=shards, seed=9)
    written = {key: value for path in tmp_path.glob("*.safetensors") for key, value in load_file(path).items()}
    loaded = {published_key(key): value for key, value in load_folder(tmp_path).model.state_dict().items()}
    assert loaded.keys() == written.keys()
    for key, value in written.items():
        assert torch.equal(loaded[key], value.float()), key


def edit_config(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.json"
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


def edit_weights(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path)


def refusal(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_folder(folder)
    return str(caught.value)


def mapped(folder: Path) -> list[str]:
    """Files of which this process has views: a program that writes over one would end it."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text("utf-8").splitlines() if maps.exists() else []
    return [line for line in lines if f"{folder}/" in line]


def test_tables_stay_as_short_as_in_the_file_and_are_read_in_the_models_type(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SMALL)
    model = load_folder(tmp_path).model
    assert not mapped(tmp_path)
    tokens, codes = (
        torch.tensor([[3, model.config.semantic_start]]),
        torch.ones(1, model.config.num_codebooks, 2).long(),
    )
    text, audio = model.slow.embeddings.weight, model.codebook_embeddings.weight
    assert text.dtype == audio.dtype == torch.bfloat16 and model.head().dtype == torch.float32
    embedded = model.embed(tokens, codes)
    model.slow.embeddings.weight.data, model.codebook_embeddings.weight.data = text.float(), audio.float()
    assert embedded.dtype == torch.float32 and torch.equal(embedded, model.embed(tokens, codes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path, SMALL)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "codec.pth"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    text = refusal(folder)
    assert name in text
    assert "missing" in text


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "codec.pth", "codec.yaml"])
@pytest.mark.parametrize("content", [b"", b"{", b"\x00\x01\x02 no such thing", b"[]", b'"text"'])
def test_file_with_invalid_contents_is_named(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    assert name in refusal(folder)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SMALL, shards=2)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert "model-00002-of-00002.safetensors" in refusal(tmp_path)


def test_truncated_shard_is_named_with_its_size(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SMALL, shards=2)
    shard = tmp_path / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1000])
    text = refusal(tmp_path)
    assert shard.name in text
    assert f"{shard.stat().st_size:,}" in text


def test_unknown_model_type_is_refused(folder: Path) -> None:
    edit_config(folder, lambda tree: tree.update(model_type="naive"))
    text = refusal(folder)
    assert "config.json" in text
    assert "'naive'" in text
    assert "'fish_qwen3_omni'" in text


@pytest.mark.parametrize("part", ["text_config", "audio_decoder_config"])
def test_a_missing_config_key_is_named(folder: Path, part: str) -> None:
    edit_config(folder, lambda tree: tree[part].pop("n_local_heads"))
    text = refusal(folder)
    assert "config.json" in text
    assert "n_local_heads" in text


def test_a_config_value_of_the_wrong_kind_is_refused(folder: Path) -> None:
    edit_config(folder, lambda tree: tree["text_config"].update(dim="wide"))
    text = refusal(folder)
    assert "config.json" in text
    assert "wide" in text


NORM = "text_model.model.norm.weight"


def test_missing_tensor_is_named_by_its_published_name(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors.pop(NORM))
    text = refusal(folder)
    assert "model.safetensors" in text
    assert NORM in text
    assert "missing" in text


@pytest.mark.parametrize("key", ["text_model.model.layers.7.ffn_norm.weight", "vision_tower.weight"])
def test_an_unexpected_tensor_is_named(folder: Path, key: str) -> None:
    edit_weights(folder, lambda tensors: tensors.update({key: torch.zeros(3)}))
    text = refusal(folder)
    assert "model.safetensors" in text
    assert key in text
    assert "unexpected" in text


def test_a_wrong_shape_is_named_with_expected_and_found(folder: Path) -> None:
    edit_weights(folder, lambda tensors: tensors.update({NORM: torch.zeros(63)}))
    text = refusal(folder)
    assert NORM in text
    assert "[64]" in text
    assert "[63]" in text


def test_tokenizer_inconsistent_with_the_config_is_refused(folder: Path) -> None:
    edit_config(folder, lambda tree: tree.update(eos_token_id=tree["eos_token_id"] + 1))
    text = refusal(folder)
    assert "tokenizer.json" in text
    assert "<|im_end|>" in text


def test_a_tokenizer_without_a_control_token_is_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text().replace("<|voice|>", "<|vocal|>"))
    text = refusal(folder)
    assert "tokenizer.json" in text
    assert "<|voice|>" in text


@pytest.mark.parametrize("codec", [TinyCodec(num_codebooks=4), TinyCodec(semantic_codebook_size=64)])
def test_codec_of_another_model_is_refused(folder: Path, codec: TinyCodec) -> None:
    write_codec(folder, codec)
    assert "codec" in refusal(folder)


def test_name_is_refused_unless_a_folder_or_hub_id() -> None:
    for name in ("./nowhere", "nowhere", "/nowhere/at/all"):
        with pytest.raises(CheckpointError, match="folder"):
            find(name)


def test_folder_path_is_returned_unchanged(folder: Path) -> None:
    assert find(str(folder)) == folder

"""Damaged, renamed and malicious files are refused with one line that names the file, without unbounded memory use."""

from __future__ import annotations

import functools
import json
import math
import os
import pickle
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
import yaml
from huggingface_hub.errors import LocalEntryNotFoundError

from engine import CheckpointError, EngineConfig, check_files, survey_model
from engine.checkpoint import find, load, open_source
from engine.files import open_regular
from tests.engine.checkpoint.layouts import AUDIO8, write_dual_ar, write_flat
from tests.environment import unprivileged
from tests.tiny import FEW_LAYERS, TinyCodec, write_checkpoint

CPU = torch.device("cpu")
CODEC = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=3)
RAN: list[str] = []


class Payload:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return RAN.append, ("ran",)


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merged")
    write_flat(folder, CODEC)
    return folder


@pytest.fixture
def folder(tmp_path: Path, merged: Path) -> Path:
    return shutil.copytree(merged, tmp_path / "merged")


def refusal(folder: Path, name: str = "", by_its_structure: bool = True) -> str:
    """The refusal of a folder; if its structure is wrong, also without reading its weights."""
    with pytest.raises(CheckpointError) as caught:
        load(folder, CPU, CPU, torch.float32)
    message = str(caught.value)
    assert name in message and "\n" not in message
    if by_its_structure:
        with pytest.raises(CheckpointError) as caught:
            check_files(str(folder))
        assert str(caught.value) == message
    return message


def survey_refusal(folder: Path) -> str:
    """The refusal of a folder before its weights are read."""
    with pytest.raises(CheckpointError) as caught:
        survey_model(EngineConfig(str(folder), "cpu"))
        check_files(str(folder))
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


def write_model(folder: Path) -> None:
    """Restore the model's own file and keep the codec's."""
    codec = (folder / "codec.pth").read_bytes()
    write_flat(folder, CODEC)
    (folder / "codec.pth").write_bytes(codec)


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tree = json.loads((folder / "config.json").read_text())
    change(tree)
    (folder / "config.json").write_text(json.dumps(tree))


def save(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tensors = torch.load(folder / "model.pth", weights_only=True)["state_dict"]
    change(tensors)
    torch.save(tensors, folder / "model.pth")


@pytest.mark.parametrize("name", ["model.pth", "codec.pth"])
def test_code_in_a_pickle_does_not_run(folder: Path, name: str) -> None:
    torch.save({"norm.weight": Payload()}, folder / name)
    refusal(folder, name)
    (folder / name).write_bytes(pickle.dumps(Payload()))
    refusal(folder, name)
    assert not RAN


@pytest.mark.parametrize("name", ["model.pth", "codec.pth"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_truncated_torch_file_is_named(folder: Path, name: str, share: float) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * share)])
    refusal(folder, name)


@pytest.mark.parametrize("name", ["model.pth", "codec.pth"])
def test_a_compressed_torch_file_is_not_unpacked(folder: Path, name: str) -> None:
    """A hundred megabytes of zeros in a file of a tenth of a megabyte."""
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(100_000_000))
    assert "compressed" in refusal(folder, name)


@pytest.mark.parametrize("content", [[1, 2], {"a": 1}, {3: torch.zeros(2)}, torch.zeros(3), "text"])
def test_torch_file_without_a_dictionary_of_tensors_is_refused(folder: Path, content: object) -> None:
    torch.save(content, folder / "model.pth")
    assert "dictionary of tensors" in refusal(folder, "model.pth")


def test_missing_extra_or_misshapen_tensors_are_named(folder: Path) -> None:
    save(folder, lambda tensors: tensors.pop("model.fast_norm.weight"))
    assert "fast_norm.weight: missing" in refusal(folder, "model.pth")
    write_flat(folder, CODEC)
    save(folder, lambda tensors: tensors.update({"model.fast_norm.weight": torch.zeros(7)}))
    assert "fast_norm.weight: expected [48], found [7]" in refusal(folder, "model.pth")
    write_flat(folder, CODEC)
    save(folder, lambda tensors: tensors.update({"vision.weight": torch.zeros(7)}))
    assert "unexpected tensor vision.weight" in refusal(folder, "model.pth")


def test_integer_weights_are_refused(folder: Path) -> None:
    save(folder, lambda tensors: tensors.update({"model.fast_norm.weight": torch.zeros(48, dtype=torch.int64)}))
    assert "fast_norm.weight is torch.int64" in refusal(folder, "model.pth", by_its_structure=False)


@pytest.mark.parametrize("kind", ["sparse", "meta", "complex"])
def test_sparse_meta_and_complex_tensors_are_refused(folder: Path, kind: str) -> None:
    odd = {
        "sparse": torch.eye(3).to_sparse(),
        "meta": torch.zeros(48, device="meta"),
        "complex": torch.zeros(48, dtype=torch.complex64),
    }[kind]
    save(folder, lambda tensors: tensors.update({"model.fast_norm.weight": odd}))
    assert "fast_norm.weight" in refusal(folder, "model.pth", by_its_structure=kind != "complex")
    tensors = torch.load(folder / "codec.pth", weights_only=True)
    name = "quantizer.pre_module.norm.weight"
    torch.save({**tensors, name: odd if kind != "complex" else tensors[name].to(torch.complex64)}, folder / "codec.pth")
    write_model(folder)
    assert name in refusal(folder, "codec.pth")


def test_expanded_tensor_with_a_huge_shape_is_refused(folder: Path) -> None:
    """It stores one number, expanded to a trillion."""
    save(folder, lambda tensors: tensors.update({"model.norm.weight": torch.zeros(1).expand(10**12)}))
    assert "1000000000000" in refusal(folder, "model.pth")


def test_computed_tables_are_ignored(folder: Path) -> None:
    save(folder, lambda tensors: tensors.update({"model.freqs_cis": torch.zeros(3)}))
    load(folder, CPU, CPU, torch.float32)


@pytest.mark.parametrize("name", ["lora_A", "lora_B", "lora_A.weight", "lora_embedding_A"])
def test_a_lora_is_refused_with_a_remedy(folder: Path, name: str) -> None:
    save(folder, lambda tensors: tensors.update({f"model.layers.0.attention.wqkv.{name}": torch.zeros(2, 64)}))
    assert f"wqkv.{name}" in (why := refusal(folder, "model.pth")) and "merge_lora.py" in why


def test_merged_lora_without_a_codec_is_refused_with_a_remedy(folder: Path) -> None:
    (folder / "codec.pth").unlink()
    assert "trained on" in refusal(folder, "codec.pth")


def test_a_config_of_a_hundred_megabytes_is_not_read(folder: Path) -> None:
    with (folder / "config.json").open("wb") as file:
        file.truncate(100 * 2**20)
    assert "104,857,600 bytes" in refusal(folder, "config.json")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, "1" * 10_000, "\0", '{"model_type": ["x"]}'])
def test_invalid_json_is_named(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    refusal(folder, "config.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_layer", 10**9), ("n_layer", 0), ("n_layer", -1), ("dim", 64.5), ("dim", "wide"), ("dim", None),
        ("vocab_size", 10**12), ("n_head", 5), ("head_dim", 15), ("n_local_heads", 3), ("num_codebooks", [4]),
        ("rope_base", "x"), ("rope_base", math.nan), ("norm_eps", -1),
        ("semantic_begin_id", 10**7), ("eos_token_id", -5), ("codebook_size", 3),
        ("attention_o_bias", True), ("max_seq_len", 1e400), ("semantic_end_id", "x"),
    ],
)  # fmt: skip
def test_impossible_sizes_are_refused_before_allocation(folder: Path, key: str, value: object) -> None:
    edit(folder, lambda tree: tree.update({key: value}))
    refusal(folder, "config.json")


def test_published_sizes_must_be_objects(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, FEW_LAYERS, CODEC)
    edit(tmp_path, lambda tree: tree.update(text_config=[1]))
    assert "must be objects" in refusal(tmp_path, "config.json")


@pytest.mark.posix
@pytest.mark.parametrize("name", ["config.json", "card.json", "codec.yaml"])
def test_device_or_folder_in_place_of_a_file_is_not_read(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/dev/null")
    is_optional = name == "codec.yaml"  # then S2 Pro's sizes apply
    assert ("codebooks" if is_optional else f"{name} is not a file") in survey_refusal(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    assert ("codebooks" if is_optional else f"{name} is not a file") in survey_refusal(folder)


@pytest.mark.parametrize("content", ["[" * 60_000, '"' + "x" * 2**20 + '"', "{", "\xff"])
@pytest.mark.parametrize("name", ["card.json", "codec.yaml"])
def test_oversized_nested_or_invalid_card_and_codec_yaml_are_refused(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, "latin-1")
    assert f"{name} " in survey_refusal(folder)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("sample_rate", 0), ("sample_rate", math.inf), ("encoder_rates", [0, 4]), ("encoder_dim", 10**12),
        ("quantizer n_codebooks", 10**9), ("quantizer downsample_factor", [2] * 1000),
        ("encoder_transformer_layers", [10**9]),
        ("quantizer pre_module config n_layer", 10**9), ("quantizer post_module config head_dim", 0),
        ("quantizer pre_module config rope_base", math.nan), ("transformer_general_config norm_eps", -1),
        ("encoder_rates", [2.5, 4]), ("quantizer input_dim", 8.5),
    ],
)  # fmt: skip
def test_impossible_codec_sizes_are_refused_before_building_it(folder: Path, keys: str, value: object) -> None:
    tree = yaml.safe_load((folder / "codec.yaml").read_text())
    *outer, key = keys.split()
    functools.reduce(dict.__getitem__, outer, tree)[key] = value
    (folder / "codec.yaml").write_text(yaml.safe_dump(tree))
    assert "value of the wrong kind" in survey_refusal(folder)


@pytest.mark.posix
def test_file_without_read_permission_is_named(merged: Path) -> None:
    with tempfile.TemporaryDirectory() as parent:
        folder = shutil.copytree(merged, Path(parent) / "merged")
        for path in (Path(parent), folder, *folder.iterdir()):
            path.chmod(0o755)
        for name in ("config.json", "codec.pth", "model.pth", "tokenizer.json", "README.md"):
            (folder / name).touch(0o644)
            (folder / name).chmod(0)
            with unprivileged(), pytest.raises(CheckpointError, match="cannot be read") as caught:
                survey_model(EngineConfig(str(folder), "cpu"))
                load(folder, CPU, CPU, torch.float32)
            assert str(folder / name) in str(caught.value)
            (folder / name).chmod(0o644)


def test_control_characters_are_removed_from_the_licence(folder: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: \x1b[31mred\x07\n---\n")
    assert open_source(folder).card().licence == "[31mred"


def test_a_missing_key_is_named(folder: Path) -> None:
    edit(folder, lambda tree: tree.pop("rope_base"))
    assert "rope_base" in refusal(folder, "config.json")


def test_overlapping_or_out_of_range_safetensors_are_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, FEW_LAYERS, CODEC)
    for entries in (
        {"a": [0, 16], "b": [8, 24]},
        {"a": [0, 2**60]},
        {"a": [16, 0]},
        {"a": [0, 16], "b": [24, 40]},
    ):
        tree = {name: {"dtype": "F32", "shape": [4], "data_offsets": at} for name, at in entries.items()}
        header = json.dumps(tree).encode()
        (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(40))
        refusal(tmp_path, "model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    refusal(tmp_path, "model.safetensors")
    header = json.dumps({"__metadata__": {"of": "x" * 5_000_000}}).encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(1))
    assert "describes more than a checkpoint's tensors" in refusal(tmp_path, "model.safetensors")


def test_index_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, FEW_LAYERS, CODEC, shards=2)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    assert "weight_map" in refusal(tmp_path, "model.safetensors.index.json")


def test_renamed_files_are_recognised_by_content(tmp_path: Path, merged: Path) -> None:
    """A model.pth called codec.pth, safetensors called model.pth, and text called x.gguf."""
    folder = shutil.copytree(merged, tmp_path / "a")
    shutil.copy(folder / "model.pth", folder / "codec.pth")
    refusal(folder, "codec.pth")
    write_checkpoint(tmp_path / "b", FEW_LAYERS, CODEC)
    shutil.copy(tmp_path / "b" / "model.safetensors", folder / "model.pth")
    refusal(folder, "model.pth")
    (tmp_path / "x.gguf").write_text("hello")
    with pytest.raises(CheckpointError, match=r"x\.gguf"):
        load(find(str(tmp_path / "x.gguf")), CPU, CPU, torch.float32)


def test_missing_or_too_large_tokenizer_is_named(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    with (tmp_path / "tokenizer.tiktoken").open("wb") as file:
        file.truncate(100 * 2**20)
    refusal(tmp_path, "tokenizer.tiktoken")
    (tmp_path / "tokenizer.tiktoken").unlink()
    refusal(tmp_path, "tokenizer.json is missing")


def test_audio8_codec_without_layers_is_refused(tmp_path: Path) -> None:
    write_flat(tmp_path, CODEC, codec_post_n_layer=0, **AUDIO8)
    (tmp_path / "codec.yaml").unlink()
    refusal(tmp_path, "config.json")


@pytest.mark.parametrize(
    "model", ["owner/name/file.bin", "~nobody-here/x", "owner/name/deeper", "a/b/c.gguf/d", "../x/y.gguf"]
)
def test_invalid_ids_are_refused(model: str) -> None:
    with pytest.raises(CheckpointError, match=r"hub id|cannot be looked up"):
        find(model)


def test_only_required_files_of_a_repository_are_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def snapshot_download(repository: str, allow_patterns: list[str]) -> str:
        assert repository == "owner/name"
        calls.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    (tmp_path / "q8").mkdir()
    (tmp_path / "q8" / "x.gguf").touch()
    assert find("owner/name/q8/x.gguf") == tmp_path / "q8" / "x.gguf"
    assert "q8/x.gguf" in calls[0] and "tokenizer.json" in calls[0] and "*.safetensors" not in calls[0]
    with pytest.raises(CheckpointError, match=r"no file y\.gguf"):
        find("owner/name/y.gguf")
    with pytest.raises(CheckpointError, match=r"NAME\.gguf"):
        find("owner/name")
    (tmp_path / "config.json").touch()
    assert find("owner/name") == tmp_path
    assert "*.gguf" not in calls[-1] and "model.pth" in calls[-1]


def test_a_blank_name_is_not_the_working_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="'' is not a folder, a file, or a hub id"):
        find("")


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("HTTPS_PROXY", "http://127.0.0.1:port", r"port.*; check the proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"),
        ("HTTPS_PROXY", "nonsense://127.0.0.1", r"nonsense.*; check the proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"),
        ("HF_TOKEN", "hf_sécret", r"the token of HF_TOKEN or “hf auth login” has characters that no token has"),
        ("TRANSFORMERS_OFFLINE", "1", r"from the hub: TRANSFORMERS_OFFLINE is set, .*; remove it"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, remedy: str
) -> None:
    huggingface_hub.close_session()
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", name.endswith("_OFFLINE"))  # as read at its import
    with pytest.raises(CheckpointError, match=remedy):
        find("owner/name")
    huggingface_hub.close_session()


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed", "set SSL_CERT_FILE"),
        ("no\nroute", "no route; check the connection"),
    ],
)
def test_an_unreachable_hub_is_reported_in_one_line_with_the_remedy(
    cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def snapshot_download(repository: str, allow_patterns: list[str]) -> str:
        raise LocalEntryNotFoundError("Got: an error.\nPlease try again.") from OSError(cause)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    with pytest.raises(CheckpointError, match=rf"could not be downloaded from the hub: .*{remedy}"):
        find("owner/name")


def test_path_of_a_weights_file_finds_its_folder(merged: Path) -> None:
    assert open_source(find(str(merged / "model.pth"))).folder == merged == find(str(merged))
    assert find(str(merged / "config.json")) == merged


def test_a_folder_with_two_sets_of_weights_is_refused_unless_one_is_named(folder: Path) -> None:
    (folder / "model-00001-of-00002.safetensors").touch()
    with pytest.raises(CheckpointError, match=r"both model\.pth and model-00001-of-00002\.safetensors; move away"):
        find(str(folder))
    load(find(str(folder / "model.pth")), CPU, CPU, torch.float32)


def test_the_named_file_is_loaded_and_not_the_one_of_its_folder(tmp_path: Path, merged: Path) -> None:
    folder = shutil.copytree(merged, tmp_path / "merged")
    plain = load(find(str(folder)), CPU, CPU, torch.float32).fingerprint
    save(folder, lambda tensors: tensors["model.norm.weight"].mul_(2))
    (folder / "model.pth").rename(folder / "step_500.pth")
    shutil.copy(merged / "model.pth", folder)
    assert load(find(str(folder / "step_500.pth")), CPU, CPU, torch.float32).fingerprint != plain
    assert load(find(str(folder)), CPU, CPU, torch.float32).fingerprint == plain
    write_checkpoint(tmp_path / "b", FEW_LAYERS, CODEC)
    (tmp_path / "b" / "my-tune.safetensors").write_bytes(b"damaged")
    assert "my-tune.safetensors (7 bytes) cannot be read" in refusal(find(str(tmp_path / "b" / "my-tune.safetensors")))
    with pytest.raises(CheckpointError, match="holds no weights of a speech model"):
        find(str(folder / "codec.pth"))


def test_a_named_shard_stands_for_all_shards_of_its_index(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, FEW_LAYERS, CODEC, shards=2)
    shard = min(tmp_path.glob("model-*.safetensors"))
    assert find(str(shard)) == tmp_path
    shutil.copy(shard, other := tmp_path / "other-00001-of-00002.safetensors")
    assert find(str(other)) == other


@pytest.mark.parametrize(
    "name",
    ["config.json", "model.pth", "codec.pth", "codec.yaml", "tokenizer.json", "card.json"],
)
def test_a_pointer_of_git_lfs_is_named_as_one(folder: Path, name: str) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4096000000\n"
    (folder / name).write_text(pointer)
    assert f"{name} is only a pointer of Git LFS" in (why := survey_refusal(folder)) and "git lfs pull" in why


@pytest.mark.posix
@pytest.mark.parametrize("name", ["x.gguf", "X.GGUF"])
def test_a_pipe_named_gguf_is_refused_without_opening_it(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match=r"is not a file but a named pipe"):
        check_files(str(tmp_path))
    with pytest.raises(CheckpointError, match=r"is not a file but a named pipe"):
        survey_model(EngineConfig(str(tmp_path), "cpu"))


@pytest.mark.posix
def test_a_pipe_that_replaces_a_checked_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "card.json"
    os.mkfifo(file)
    monkeypatch.setattr(Path, "stat", lambda path: os.stat(__file__))
    with pytest.raises(OSError, match="named pipe"):
        open_regular(file)

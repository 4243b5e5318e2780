"""Tensors and sizes that no product accepts are refused with one line that names them, before their values are read."""

from __future__ import annotations

import functools
import math
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine import check_files
from engine.checkpoint import load
from tests.engine.checkpoint.layouts import AUDIO8, write_flat
from tests.engine.checkpoint.test_hostile_files import refusal
from tests.tiny import FEW_LAYERS, TinyCodec, write_checkpoint

CPU = torch.device("cpu")
CODEC = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=3)
GAIN = "encoder.block.0.conv.parametrizations.weight.original0"
OLD_GAIN = "quantizer.semantic_quantizer.quantizers.0.in_proj.weight_g"
PRODUCT = "encoder.block.4.block.5.layers.0.attention.wqkv.weight"
ATTENTION = "text_model.model.layers.0.attention."


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("published"), FEW_LAYERS, CODEC)


@pytest.fixture
def folder(tmp_path: Path, published: Path) -> Path:
    return shutil.copytree(published, tmp_path / "model")


@pytest.mark.parametrize("name", [GAIN, OLD_GAIN])
@pytest.mark.parametrize("shape", [(), (3,), (5, 1, 1), (4, 2, 1)])
def test_weight_norm_whose_gain_does_not_fit_its_weight_is_refused(
    folder: Path, name: str, shape: tuple[int, ...]
) -> None:
    """torch would read beyond the end of such a gain."""
    tensors = torch.load(folder / "codec.pth", weights_only=True)
    torch.save({**tensors, name: torch.ones(shape)}, folder / "codec.pth")
    assert f"{name} must have one value for each row of its weight, found {list(shape)} for" in refusal(folder)


def test_single_number_in_place_of_a_matrix_is_refused(folder: Path) -> None:
    tensors = torch.load(folder / "codec.pth", weights_only=True)
    torch.save({**tensors, PRODUCT: torch.tensor(1.0)}, folder / "codec.pth")
    assert f"{PRODUCT}: expected [96, 64], found []" in refusal(folder)
    path = folder / "model.safetensors"
    weights = load_file(path)
    del weights[f"{ATTENTION}wqkv.weight"]
    save_file(weights | {f"{ATTENTION}{part}_proj.weight": torch.tensor(1.0) for part in "qkv"}, path)
    assert f"{ATTENTION}q_proj.weight []" in refusal(folder)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("encoder_transformer_layers", [1]),
        ("encoder_transformer_layers", [0, 0, 0, 1, 1]),
        ("quantizer downsample_dims", [64]),
    ],
)
def test_codec_with_sizes_for_another_number_of_stages_is_refused(folder: Path, keys: str, value: list[int]) -> None:
    tree = yaml.safe_load((folder / "codec.yaml").read_text())
    *outer, key = keys.split()
    functools.reduce(dict.__getitem__, outer, tree)[key] = value
    (folder / "codec.yaml").write_text(yaml.safe_dump(tree))
    assert f"codec.yaml: {key} must have as many values as" in refusal(folder)


def test_infinite_codec_size_in_the_config_is_refused(tmp_path: Path) -> None:
    write_flat(tmp_path, CODEC, codec_post_n_layer=math.inf, **AUDIO8)
    (tmp_path / "codec.yaml").unlink()
    assert "config.json has invalid codec sizes" in refusal(tmp_path)


@pytest.mark.parametrize("commands", [b"s.", b"K\x01Q.", b"X", b"}N\x85s."])
def test_malformed_pickle_is_refused_by_the_name_of_its_file(folder: Path, commands: bytes) -> None:
    path = folder / "codec.pth"
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, b"\x80\x02" + commands if name.endswith("data.pkl") else content)
    assert f"{path} cannot be read" in refusal(folder)


@pytest.mark.parametrize("patches", [{6: b"\xff"}, {8: b"\x00\x08", 46: b"\xff"}])
def test_archive_of_an_unknown_version_or_with_unreadable_names_is_refused(
    folder: Path, patches: dict[int, bytes]
) -> None:
    path = folder / "codec.pth"
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\x01\x02")  # of the list of contents
    for at, value in patches.items():
        data[entry + at : entry + at + len(value)] = value
    path.write_bytes(data)
    assert f"{path} is not a file of torch.save" in refusal(folder)


def parameters(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.nn.Parameter(tensor) for name, tensor in tensors.items()}


def bare(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix("model."): tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("change", [parameters, bare])
def test_model_saved_in_another_way_is_loaded(
    tmp_path: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]
) -> None:
    write_flat(tmp_path, CODEC)
    expected = load(tmp_path, CPU, CPU, torch.float32).fingerprint
    torch.save(change(torch.load(tmp_path / "model.pth", weights_only=True)["state_dict"]), tmp_path / "model.pth")
    check_files(str(tmp_path))
    assert load(tmp_path, CPU, CPU, torch.float32).fingerprint == expected


def test_leftover_index_of_the_base_model_does_not_matter(tmp_path: Path) -> None:
    """Left behind when a merged model replaced the shards of its base."""
    write_flat(tmp_path, CODEC)
    shards = '{"weight_map": {"norm.weight": "model-00001-of-00002.safetensors"}}'
    (tmp_path / "model.safetensors.index.json").write_text(shards)
    check_files(str(tmp_path))
    load(tmp_path, CPU, CPU, torch.float32)

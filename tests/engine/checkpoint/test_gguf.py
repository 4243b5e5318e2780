"""Both GGUF layouts of S2 Pro, written and dequantised by the gguf package, and malformed files."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFValueType, GGUFWriter
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine import CheckpointError
from engine.checkpoint import Checkpoint, find, load, open_source
from engine.checkpoint.gguf_blocks import BLOCK_TYPES, dequantise
from engine.checkpoint.gguf_file import open_gguf
from engine.codec import load_codec
from tests.tiny import TinyCodec, TinyModel, write_checkpoint
from tests.upstream import own_name

MODEL = TinyModel(n_layer=2, fast_n_layer=1, intermediate_size=96, fast_intermediate_size=64)
CODEC = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=4)
CPU = torch.device("cpu")
Q8 = GGMLQuantizationType.Q8_0


def load_path(path: Path) -> Checkpoint:
    return load(path, CPU, CPU, torch.float32)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("published"), MODEL, CODEC, seed=3)


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    return {name: value.float().numpy() for name, value in load_file(folder / "model.safetensors").items()}


def add(writer: GGUFWriter, name: str, value: np.ndarray, kind: GGMLQuantizationType | None) -> None:
    if kind is None or value.ndim != 2 or value.shape[1] % 32:
        writer.add_tensor(name, value)
    else:
        writer.add_tensor(name, gguf.quantize(value, kind), raw_dtype=kind)


def finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_with_keys(folder: Path, published: Path, kind: GGMLQuantizationType | None = None) -> Path:
    """Write the layout of s2.cpp: sizes as keys, flat names, the codec folded, tokenizer.json beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "codec.yaml"):
        shutil.copy(published / name, folder)
    tree = json.loads((published / "config.json").read_text())
    text, audio = tree["text_config"], tree["audio_decoder_config"]
    path = folder / "tiny.gguf"
    writer = GGUFWriter(path, "fish-speech")
    writer.add_context_length(text["max_seq_len"])
    writer.add_embedding_length(text["dim"])
    writer.add_feed_forward_length(text["intermediate_size"])
    writer.add_block_count(text["n_layer"])
    writer.add_head_count(text["n_head"])
    writer.add_head_count_kv(text["n_local_heads"])
    writer.add_layer_norm_rms_eps(text["norm_eps"])
    writer.add_rope_freq_base(text["rope_base"])
    writer.add_vocab_size(text["vocab_size"])
    writer.add_license("fish-audio")
    whole = {
        "codebook_size": audio["vocab_size"], "num_codebooks": audio["num_codebooks"],
        "semantic_begin_id": tree["semantic_start_token_id"], "semantic_end_id": tree["semantic_end_token_id"],
        "fast_block_count": audio["n_layer"], "fast_embedding_length": audio["dim"],
        "fast_head_count": audio["n_head"], "fast_head_count_kv": audio["n_local_heads"],
        "fast_head_dim": audio["head_dim"], "fast_feed_forward_length": audio["intermediate_size"],
    }  # fmt: skip
    for key, value in whole.items():
        writer.add_uint32(f"fish_speech.{key}", value)
    flags = ("tie_word_embeddings", True), ("attention_qk_norm", True), ("fast_attention_qk_norm", False)
    for key, flag in (*flags, ("scale_codebook_embeddings", True)):
        writer.add_bool(f"fish_speech.{key}", flag)
    for name, array in weights_of(published).items():
        add(writer, own_name(name), array, kind)
    for name, tensor in load_codec(published, "cpu").state_dict().items():
        writer.add_tensor(f"c.{name}", np.atleast_1d(tensor.squeeze().half().numpy()))
    finish(writer)
    return path


def write_with_files(folder: Path, published: Path, kind: GGMLQuantizationType | None = None, **changed: Any) -> Path:
    """Write the layout of audio.cpp: published names in an array, separate queries, keys and values, embedded files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "packed.gguf"
    writer = GGUFWriter(path, "audiocpp")
    arrays: dict[str, np.ndarray] = {}
    sizes = json.loads((published / "config.json").read_text())["text_config"]
    for name, array in weights_of(published).items():
        if ".wqkv." not in name:
            arrays[f"model_weights/{name}"] = array
            continue
        q, kv = sizes["n_head"] * sizes["head_dim"], sizes["n_local_heads"] * sizes["head_dim"]
        for part, piece in zip(("q_proj", "k_proj", "v_proj"), np.split(array, [q, q + kv]), strict=True):
            arrays[f"model_weights/{name.replace('wqkv', part)}"] = np.ascontiguousarray(piece)
    codec: dict[str, Tensor] = torch.load(published / "codec.pth", weights_only=True)
    arrays |= {f"codec_weights/{name}": value.float().numpy() for name, value in codec.items() if "mask" not in name}
    for index, (name, array) in enumerate(arrays.items()):
        stored = name if len(name) < 64 else f"_audiocpp.{index}"
        add(writer, stored, array.reshape([n for n in array.shape if n != 1] or [1]), kind if "model" in name else None)
    writer.add_array("audiocpp.tensor_names", list(arrays))
    shapes = [size for array in arrays.values() for size in array.shape]
    ranks = [array.ndim for array in arrays.values()]
    writer.add_key_value("audiocpp.tensor_ranks", ranks, GGUFValueType.ARRAY, sub_type=GGUFValueType.INT32)
    writer.add_key_value("audiocpp.tensor_shapes", shapes, GGUFValueType.ARRAY, sub_type=GGUFValueType.INT64)
    files = [(published / name).read_bytes() for name in ("config.json", "tokenizer.json")]
    ends = changed.get("offsets") or [0, len(files[0]), len(files[0]) + len(files[1])]
    writer.add_array("audiocpp.embedded_files.names", ["config.json", "tokenizer.json"])
    writer.add_key_value("audiocpp.embedded_files.offsets", ends, GGUFValueType.ARRAY, sub_type=GGUFValueType.UINT64)
    data = list(b"".join(files))
    writer.add_key_value("audiocpp.embedded_files.data", data, GGUFValueType.ARRAY, sub_type=GGUFValueType.UINT8)
    finish(writer)
    shutil.copy(published / "codec.yaml", folder)
    return path


LAYOUTS = {"sizes as keys": write_with_keys, "files inside": write_with_files}


@pytest.mark.parametrize("number", [8, 12, 13, 14])
def test_dequantised_blocks_equal_those_of_the_gguf_package(number: int) -> None:
    block, kind = BLOCK_TYPES[number], GGMLQuantizationType(number)
    data = np.random.default_rng(number).integers(0, 256, (70, block.bytes), dtype=np.uint8)
    for at in {8: [0], 12: [0, 2], 13: [0, 2], 14: [208]}[number]:  # finite values in the block's float16 fields
        data[:, at : at + 2] = np.random.default_rng(1).normal(size=(70, 1)).astype(np.float16).view(np.uint8)
    expected = gguf.dequantize(data, kind)
    assert np.array_equal(dequantise(torch.from_numpy(data.reshape(-1)), block).view(70, -1).numpy(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_loaded_gguf_equals_the_published_checkpoint(tmp_path: Path, published: Path, layout: str) -> None:
    path = LAYOUTS[layout](tmp_path, published)
    expected, loaded = load_path(published), load_path(path)
    assert loaded.config == expected.config and loaded.fingerprint == expected.fingerprint
    for name, value in expected.model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], value), name
    codes = torch.randint(64, (1, 4, 10))
    difference = loaded.codec.decode(codes) - expected.codec.decode(codes)
    assert difference.abs().max() < (1e-6 if layout == "files inside" else 2e-2)  # the other stores it in 16 bits
    assert open_source(path).card().licence == ("fish-audio" if layout == "sizes as keys" else "")
    assert loaded.tokenizer.encode("the end.") == expected.tokenizer.encode("the end.")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_eight_bit_blocks_match_the_gguf_package(tmp_path: Path, published: Path, layout: str) -> None:
    loaded = load_path(LAYOUTS[layout](tmp_path, published, Q8)).model.state_dict()
    expected = load_path(published).model.state_dict()
    name = "slow.layers.1.attention.wqkv.weight"
    quantised = gguf.dequantize(gguf.quantize(expected[name].numpy(), Q8), Q8)
    assert np.array_equal(loaded[name].numpy(), quantised)
    assert torch.equal(loaded["slow.norm.weight"], expected["slow.norm.weight"])


def test_lone_file_in_a_folder_is_found_but_one_of_several_must_be_named(tmp_path: Path, published: Path) -> None:
    path = write_with_keys(tmp_path, published)
    assert find(str(tmp_path)) == path == find(str(path))
    shutil.copy(path, tmp_path / "other.gguf")
    with pytest.raises(CheckpointError, match=r"tiny\.gguf"):
        find(str(tmp_path))


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_path(path)
    assert path.name in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_truncated_file_is_refused(tmp_path: Path, published: Path, layout: str, share: float) -> None:
    path = LAYOUTS[layout](tmp_path, published)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refusal(path)


def header(tensors: int = 0, keys: int = 0, body: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


HOSTILE = {
    "another magic": b"GGML" + bytes(64),
    "the other byte order": b"GGUF" + struct.pack(">I", 3) + bytes(64),
    "a version to come": header(version=9),
    "more tensors than there can be": header(tensors=2**60),
    "more keys than there can be": header(keys=2**63),
    "a string longer than the file": header(keys=1, body=struct.pack("<Q", 2**62)),
    "text that is none": header(keys=1, body=struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<I", 8) + text("x")),
    "an array larger than the file": header(keys=1, body=text("k") + struct.pack("<IIQ", 9, 10, 2**61)),
    "strings without end": header(keys=1, body=text("k") + struct.pack("<IIQ", 9, 8, 2**61)),
    "an array of arrays": header(keys=1, body=text("k") + struct.pack("<IIQ", 9, 9, 1) + bytes(64)),
    "an unknown type of value": header(keys=1, body=text("k") + struct.pack("<I", 77) + bytes(64)),
    "an alignment of zero": header(keys=1, body=text("general.alignment") + struct.pack("<II", 4, 0)),
    "a tensor behind the end": header(tensors=1, body=tensor("t", (4,), 0, 2**40) + bytes(64)),
    "an offset that wraps": header(tensors=1, body=tensor("t", (4,), 0, 2**64 - 16) + bytes(64)),
    "an offset between numbers": header(tensors=1, body=tensor("t", (4,), 0, 3) + bytes(99)),
    "more numbers than bytes": header(tensors=1, body=tensor("t", (2**31, 2**31), 0, 0) + bytes(64)),
    "no dimension at all": header(tensors=1, body=tensor("t", (), 0, 0) + bytes(64)),
    "a dimension of zero": header(tensors=1, body=tensor("t", (0, 4), 0, 0) + bytes(64)),
    "nine dimensions": header(tensors=1, body=tensor("t", (1,) * 9, 0, 0) + bytes(64)),
    "half a block": header(tensors=1, body=tensor("t", (33,), 8, 0) + bytes(99)),
    "a name twice": header(tensors=2, body=2 * tensor("t", (4,), 0, 0) + bytes(99)),
    "weights of three bits": header(tensors=1, body=tensor("t", (256,), 11, 0) + bytes(256)),
    "another architecture": header(keys=1, body=text("general.architecture") + struct.pack("<I", 8) + text("llama")),
    "no architecture": header(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_header_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(HOSTILE[name])
    message = refusal(path)
    if name == "weights of three bits":
        assert "Q3_K" in message and "q8_0" in message


def test_any_wrong_header_byte_is_handled(tmp_path: Path, published: Path) -> None:
    """The file is either read or refused with an error message that names it."""
    path = write_with_keys(tmp_path, published)
    data, rng = bytearray(path.read_bytes()), np.random.default_rng(0)
    for at in rng.integers(4, 3000, 300):
        before, data[at] = data[at], int(rng.integers(256))
        path.write_bytes(data)
        data[at] = before
        try:
            open_gguf(path)
        except CheckpointError as error:
            assert path.name in str(error)


def test_overlapping_embedded_files_are_refused(tmp_path: Path, published: Path) -> None:
    assert "download" in refusal(write_with_files(tmp_path, published, offsets=[0, 50, 20]))
    assert "download" in refusal(write_with_files(tmp_path, published, offsets=[0, 50, 2**62]))


def test_packed_file_without_tensors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 4)
    for key, kind, value in (
        ("general.architecture", 8, struct.pack("<Q", 8) + b"audiocpp"),
        ("audiocpp.tensor_names", 9, struct.pack("<IQ", 8, 0)),
        ("audiocpp.tensor_ranks", 9, struct.pack("<IQ", 5, 0)),
        ("audiocpp.tensor_shapes", 9, struct.pack("<IQ", 11, 0)),
    ):
        data += struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind) + value
    path.write_bytes(data)
    assert "embedded_files" in refusal(path)


def test_missing_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    writer = GGUFWriter(path, "fish-speech")
    writer.add_tensor("norm.weight", np.ones(4, np.float32))
    finish(writer)
    assert "fish-speech.vocab_size" in refusal(path)


def test_missing_tokenizer_beside_the_file_is_reported(tmp_path: Path, published: Path) -> None:
    path = write_with_keys(tmp_path, published)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing"):
        _ = open_source(path).config


EIGHT_BITS = {
    "float8": (torch.float8_e4m3fn, ".weight.scale", lambda scales: scales[:, None].float()),
    "int8": (torch.int8, ".scales", lambda scales: scales.bfloat16()),
}


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_eight_bit_safetensors_are_multiplied_by_their_scales(tmp_path: Path, published: Path, kind: str) -> None:
    folder = shutil.copytree(published, tmp_path / "copy")
    dtype, suffix, layout = EIGHT_BITS[kind]
    written, expected = dict[str, Tensor](), dict[str, Tensor]()
    for name, value in load_file(published / "model.safetensors").items():
        if "layers" not in name or value.ndim < 2:
            written[name] = value
            continue
        scales = layout(value.float().abs().amax(1) / 100)
        whole = (value.float() / scales.float().reshape(-1, 1)).to(dtype)
        written[name], written[name.removesuffix(".weight") + suffix] = whole, scales
        expected[name] = whole.float() * scales.float().reshape(-1, 1)
    save_file({**written, "_buf.x": torch.zeros(3)}, folder / "model.safetensors")
    loaded = load_path(folder).model.state_dict()
    for index, name in enumerate(expected):
        ours = name.replace("text_model.model.", "slow.").replace("audio_decoder.", "fast.")
        assert torch.equal(loaded[ours], expected[name]), name
        if index == 0:
            stem = name.removesuffix(".weight") + suffix
            del written[stem]
            broken = stem.removesuffix(suffix)
    save_file(written, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"{broken}.*no scales"):
        load_path(folder)

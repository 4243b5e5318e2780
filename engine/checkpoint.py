"""A checkpoint folder or hub id to loaded models: find it, verify every tensor's name and shape, load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.codec import Codec, fingerprint, load_codec
from engine.codec.load import check_tensors
from engine.config import ModelConfig, Weights
from engine.engine_errors import CheckpointError
from engine.model.dual_ar import TEXT_TABLE, DualAR
from engine.model.held_weight import Quantiser
from engine.model.shapes import only_shapes
from engine.model.tokenizer import Tokenizer
from engine.transfer import Uploader

# File prefix → our module; the first that fits wins, so the special cases come first.
_PREFIXES = (
    ("text_model.model.output.", "slow_output."),
    ("text_model.model.", "slow."),
    ("audio_decoder.codebook_embeddings.", "codebook_embeddings."),
    ("audio_decoder.output.", "fast_output."),
    ("audio_decoder.fast_project_in.", "fast_project_in."),
    ("audio_decoder.", "fast."),
)
SAMPLED = 64
"""Values of a tensor that its fingerprint is made of."""
READERS = 4
"""Tensors that are brought to the device at once."""
_FILES = ["*.json", "*.safetensors", "codec.pth", "codec.yaml"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything an engine runs on."""

    folder: Path
    config: ModelConfig
    model: DualAR
    codec: Codec
    codec_fingerprint: Future[str]
    """Still being worked out when the rest has been loaded: a second for S2 Pro's."""
    tokenizer: Tokenizer
    fingerprint: str
    """Sixteen hex digits over sizes, tokens and a sample of every tensor as published: other weights differ in each of
    them, and the same weights held in fewer bits do not."""
    parameters: int
    """Of both models."""


@dataclass(frozen=True, eq=False, slots=True)
class _ReadTensor:
    """A tensor as the file has it, by our name, and what the model's state holds of it."""

    name: str
    shape: torch.Size
    sample: bytes
    state: dict[str, Tensor]


def find(model: str) -> Path:
    """The folder of a checkpoint: the path itself, or the hub's snapshot, downloaded with a progress bar if needed."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if model.count("/") != 1 or model.startswith((".", "/", "~")):
        raise CheckpointError(f"{model!r} is neither a folder nor a hub id such as fishaudio/s2-pro")
    # A quarter of a second to import, which a folder's start is spared.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise CheckpointError(
            f"{model!r} is not a local folder and could not be downloaded from the hub: {error}"
        ) from error


def load(
    folder: Path,
    device: torch.device,
    codec_device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[str, float], None] | None = None,
    weights: Weights = "bf16",
) -> Checkpoint:
    """Load a verified checkpoint. Raises CheckpointError naming file, key, expected and found.

    Weights are quantised one by one as they come: the device never holds more than a few of them in ``dtype``.
    """
    config = ModelConfig.read(folder)
    tokenizer = Tokenizer.read(folder, config)
    with ThreadPoolExecutor(1) as beside:  # reading the codec takes as long as reading the model
        loaded = beside.submit(load_codec, folder, "cpu")
        model, read = _load_model(folder, config, device, dtype, weights, progress or (lambda what, done: None))
        codec = loaded.result()
    hasher = ThreadPoolExecutor(1, "codec-fingerprint")
    codec_fingerprint = hasher.submit(fingerprint, codec.config, codec.state_dict())
    hasher.shutdown(wait=False)
    codec = _moved(codec, codec_device)
    _check_fit(folder, config, codec)
    parameters = sum(tensor.shape.numel() for tensor in read) + sum(p.numel() for p in codec.parameters())
    return Checkpoint(
        folder, config, model, codec, codec_fingerprint, tokenizer, _fingerprint(config, read), parameters
    )


def published_key(name: str) -> str:
    """Our tensor name → the file's: the inverse of the prefix table, for exporting and for tests."""
    for theirs, ours in _PREFIXES:
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    raise KeyError(name)


def _load_model(
    folder: Path,
    config: ModelConfig,
    device: torch.device,
    dtype: torch.dtype,
    weights: Weights,
    progress: Callable[[str, float], None],
) -> tuple[DualAR, list[_ReadTensor]]:
    with only_shapes():
        model, as_published = DualAR(config, weights), DualAR(config)
    tensors: list[_ReadTensor] = []
    upload, quantiser = Uploader(device), Quantiser(model)

    def read(name: str, tensor: Tensor) -> _ReadTensor:
        few = tensor.flatten()[:: max(1, tensor.numel() // SAMPLED)][:SAMPLED]
        sample = few.to(dtype).float().numpy().tobytes()
        if name == TEXT_TABLE and device.type == "cuda":  # 0.7 GiB of S2 Pro's, of which a prompt needs a few rows
            return _ReadTensor(name, tensor.shape, sample, {name: tensor.to(dtype)})
        return _ReadTensor(name, tensor.shape, sample, quantiser(name, upload(tensor, dtype)))

    with ExitStack() as stack:
        files = {path: stack.enter_context(_open(path)) for path in _shards(folder)}
        places = [(path, key) for path, file in files.items() for key in file.keys()]  # noqa: SIM118  (no dictionary)
        names = [_our_key(path, key) for path, key in places]
        threads = stack.enter_context(ThreadPoolExecutor(READERS))
        for tensor in threads.map(lambda name, place: read(name, files[place[0]].get_tensor(place[1])), names, places):
            tensors.append(tensor)
            progress("loading weights", len(tensors) / len(names))
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    check_tensors(folder / "model.safetensors", as_published, shapes, published_key)
    model.load_state_dict({key: value for tensor in tensors for key, value in tensor.state.items()}, assign=True)
    return model.eval().requires_grad_(False), tensors


def _fingerprint(config: ModelConfig, read: list[_ReadTensor]) -> str:
    digest = hashlib.sha256(repr(config).encode())
    for tensor in sorted(read, key=lambda tensor: tensor.name):
        digest.update(f"{tensor.name} {tuple(tensor.shape)}".encode() + tensor.sample)
    return digest.hexdigest()[:16]


def _moved(codec: Codec, device: torch.device) -> Codec:
    if device.type == "cuda":
        upload, state = Uploader(device), codec.state_dict()
        with ThreadPoolExecutor(READERS) as threads:
            values = list(threads.map(lambda value: upload(value, value.dtype), state.values()))
        codec.load_state_dict(dict(zip(state, values, strict=True)), assign=True)
    return codec.to(device)  # what is in no state besides


def _shards(folder: Path) -> list[Path]:
    """The safetensors files: those that the index names, or the single one."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        names = {"model.safetensors"}
    else:
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise CheckpointError(f"{index} is not a safetensors index: {error}") from error
    for name in sorted(names):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing: the checkpoint's weights are incomplete")
    return [folder / name for name in sorted(names)]


def _open(path: Path) -> safe_open:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        size = path.stat().st_size
        raise CheckpointError(f"{path} ({size:,} bytes) cannot be read; damaged or cut short? {error}") from error


def _our_key(path: Path, key: str) -> str:
    for theirs, ours in _PREFIXES:
        if key.startswith(theirs):
            return ours + key.removeprefix(theirs)
    raise CheckpointError(f"{path}: unexpected tensor {key}")


def _check_fit(folder: Path, config: ModelConfig, codec: Codec) -> None:
    """The two halves of a checkpoint must speak of the same codes."""
    if codec.config.num_codebooks != config.num_codebooks:
        raise CheckpointError(
            f"{folder}: config.json has {config.num_codebooks} codebooks, the codec {codec.config.num_codebooks}"
        )
    if codec.config.semantic_codebook_size != config.semantic_size:
        raise CheckpointError(
            f"{folder}: config.json has {config.semantic_size} semantic tokens, "
            f"the codec's first codebook {codec.config.semantic_codebook_size} entries"
        )

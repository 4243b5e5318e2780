"""Loads a checkpoint's models: every tensor's name and shape is verified before its values are read."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.checkpoint.checkpoint_source import Source, open_source
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.checkpoint.locate import find
from engine.codec import Codec, fingerprint
from engine.codec.load import check_tensors
from engine.codec.voice_vector import CLIP_TAIL, VoiceEncoder
from engine.config import ModelConfig, Weights
from engine.engine_errors import CheckpointError
from engine.model.dual_ar import ROW_TABLES, TEXT_TABLE, DualAR, LateRows, only_shapes
from engine.model.stored_weight import Quantiser
from engine.model.tokenizer import Tokenizer
from engine.transfer import Uploader

SAMPLED = 64
"""Values of each tensor that go into the fingerprint."""
READERS = 4
"""Tensors that are copied to the device at once."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything an engine runs on."""

    config: ModelConfig
    model: DualAR
    codec: Codec
    codec_fingerprint: Future[str]
    """Still being computed when everything else is loaded: a second for S2 Pro."""
    tokenizer: Tokenizer
    fingerprint: str
    """Sixteen hex digits of a hash over sizes, tokens and a sample of every tensor as published: it differs for other
    weights, and is the same for the same weights in fewer bits."""
    parameters: int
    """Number of parameters of the models and the codec."""
    voice_encoder: VoiceEncoder | None = None
    """Makes the vectors of clips' voices, on the CPU; None where voices have none."""


@dataclass(frozen=True, eq=False, slots=True)
class _ReadTensor:
    """A tensor as read from the file, by our name, and its entries in the model's state."""

    name: str
    shape: tuple[int, ...]
    sample: bytes
    state: dict[str, Tensor]


def load(
    path: Path,
    device: torch.device,
    codec_device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[str, float], None] | None = None,
    weights: Weights = "bf16",
    text_device: torch.device | None = None,
) -> Checkpoint:
    """Load the checkpoint at a path that `find` returned. Raises CheckpointError naming file, key, expected and found.

    ``text_device``: where the table of text tokens is kept; None: on ``device``.

    Weights are quantised one by one as they are read: the device never holds more than a few of them in ``dtype``.

    Nothing stays a view of a file: one that another program writes over meanwhile would end this one (SIGBUS).
    """
    source = open_source(path)
    config, tokenizer = source.config, source.tokenizer()
    _check_fit(source)
    with ThreadPoolExecutor(1) as beside:  # reading the codec takes as long as reading the model
        loaded, voice_encoder = beside.submit(source.codec), source.voice_encoder()
        model, read = _load_model(
            source, device, dtype, weights, text_device or device, progress or (lambda doing, done: None)
        )
        codec = loaded.result()
    if codec_device.type == "cpu":
        _copy_values(codec)
    hasher = ThreadPoolExecutor(1, "codec-fingerprint")
    encoders = codec.state_dict()
    if voice_encoder is not None:
        _copy_values(voice_encoder)
        encoders |= voice_encoder.state_dict(prefix="voice.") | {"voice.tail": torch.tensor(CLIP_TAIL)}
    codec_fingerprint = hasher.submit(fingerprint, codec.config, encoders)
    hasher.shutdown(wait=False)
    parameters = sum(math.prod(tensor.shape) for tensor in read) + sum(p.numel() for p in codec.parameters())
    codec = _to_device(codec, codec_device)
    models_fingerprint = _fingerprint(config, read)
    return Checkpoint(config, model, codec, codec_fingerprint, tokenizer, models_fingerprint, parameters, voice_encoder)


def check_files(model: str) -> None:
    """Check a model, named as for `find`, like `load`, but without reading tensors' values or a tokenizer's.

    Blocking: up to a second, while takes may be running. Raises CheckpointError.
    """
    source = open_source(find(model))
    source.check_tokenizer()
    _check_fit(source)
    with ExitStack() as stack:
        _checked_weights(source, stack)
    source.check_codec()


def _load_model(
    source: Source,
    device: torch.device,
    dtype: torch.dtype,
    weights: Weights,
    text_device: torch.device,
    progress: Callable[[str, float], None],
) -> tuple[DualAR, list[_ReadTensor]]:
    with only_shapes():
        model = DualAR(source.config, weights)
    upload, quantiser = Uploader(device), Quantiser(model, device)

    def read(lazy: LazyTensor) -> _ReadTensor:
        name, count = lazy.name, math.prod(lazy.shape)
        sampled = torch.arange(0, count, max(1, count // SAMPLED))[:SAMPLED]
        if (late := _late_rows(source, lazy)) is not None:
            late.fill(sampled // lazy.shape[1])
        is_late = late is not None and text_device.type == "cpu"
        tensor = late.table if late is not None and is_late else _numbers(source, lazy)
        few = (late.table if late is not None else tensor).flatten()[sampled]
        sample = few.to(dtype).float().numpy().tobytes()
        if is_late:
            model.late_text = late
            return _ReadTensor(name, lazy.shape, sample, {name: tensor})
        if name == TEXT_TABLE and text_device != device:
            return _ReadTensor(name, lazy.shape, sample, {name: tensor.to(dtype, copy=True)})
        if name in ROW_TABLES and device.type == "cpu" and tensor.element_size() < dtype.itemsize:
            return _ReadTensor(name, lazy.shape, sample, {name: tensor.clone()})
        return _ReadTensor(name, lazy.shape, sample, quantiser(name, upload(tensor, dtype)))

    tensors: list[_ReadTensor] = []
    with ExitStack() as stack:
        lazy_tensors = _checked_weights(source, stack)
        threads = stack.enter_context(ThreadPoolExecutor(READERS))
        for tensor in threads.map(read, lazy_tensors):
            tensors.append(tensor)
            progress("loading weights", len(tensors) / len(lazy_tensors))
    model.load_state_dict({key: value for tensor in tensors for key, value in tensor.state.items()}, assign=True)
    return model.eval().requires_grad_(False), tensors


def _checked_weights(source: Source, stack: ExitStack) -> list[LazyTensor]:
    with only_shapes():
        as_published = DualAR(source.config)
    tensors = source.weights(stack)
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    check_tensors(source.weights_path, as_published, shapes, source.file_key)
    return tensors


def _late_rows(source: Source, lazy: LazyTensor) -> LateRows | None:
    try:
        return None if lazy.late is None else lazy.late()
    except ValueError as error:
        raise CheckpointError(f"{source.weights_path}: {error}") from error


def _numbers(source: Source, lazy: LazyTensor) -> Tensor:
    try:
        tensor = lazy.read()
    except ValueError as error:
        raise CheckpointError(f"{source.weights_path}: {error}") from error
    if not tensor.is_floating_point() or tensor.element_size() < 2:
        name = source.file_key(lazy.name)
        raise CheckpointError(f"{source.weights_path}: {name} is {tensor.dtype} and has no scales")
    return tensor


def _fingerprint(config: ModelConfig, read: list[_ReadTensor]) -> str:
    digest = hashlib.sha256(repr(config).encode())
    for tensor in sorted(read, key=lambda tensor: tensor.name):
        digest.update(f"{tensor.name} {tuple(tensor.shape)}".encode() + tensor.sample)
    return digest.hexdigest()[:16]


def _copy_values(part: nn.Module) -> None:
    for value in (*part.parameters(), *part.buffers()):
        value.data = value.data.clone()


def _to_device(codec: Codec, device: torch.device) -> Codec:
    if device.type == "cuda":
        upload, state = Uploader(device), codec.state_dict()
        with ThreadPoolExecutor(READERS) as threads:
            values = list(threads.map(lambda value: upload(value, value.dtype), state.values()))
        codec.load_state_dict(dict(zip(state, values, strict=True)), assign=True)
    return codec.to(device)  # buffers that are not in the state


def _check_fit(source: Source) -> None:
    """The two parts of a checkpoint must use the same codes."""
    config, codec, path = source.config, source.codec_config, source.config_path
    if codec.num_codebooks != config.num_codebooks:
        raise CheckpointError(f"{path} has {config.num_codebooks} codebooks, the codec {codec.num_codebooks}")
    if codec.semantic_codebook_size != config.semantic_size:
        raise CheckpointError(
            f"{path} has {config.semantic_size} semantic tokens, "
            f"the codec's first codebook {codec.semantic_codebook_size} entries"
        )

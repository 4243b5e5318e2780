"""A checkpoint to loaded models: every tensor's name and shape is verified before its numbers are read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from engine.checkpoint.checkpoint_source import Source, open_source
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.codec import Codec, fingerprint
from engine.codec.load import check_tensors
from engine.config import ModelConfig
from engine.engine_errors import CheckpointError
from engine.model.dual_ar import DualAR
from engine.model.shapes import only_shapes
from engine.model.tokenizer import Tokenizer
from engine.transfer import Uploader

SAMPLED = 64
"""Values of a tensor that its fingerprint is made of."""
READERS = 4
"""Tensors that are brought to the device at once."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything an engine runs on."""

    config: ModelConfig
    model: DualAR
    codec: Codec
    codec_fingerprint: Future[str]
    """Still being worked out when the rest has been loaded: a second for S2 Pro's."""
    tokenizer: Tokenizer

    def fingerprint(self) -> str:
        """Sixteen hex digits over sizes, tokens and a sample of every tensor: other weights differ in each of them."""
        digest = hashlib.sha256(repr(self.config).encode())
        for name, value in sorted(self.model.state_dict().items()):
            few = value.flatten()[:: max(1, value.numel() // SAMPLED)][:SAMPLED]
            digest.update(f"{name} {tuple(value.shape)}".encode() + few.float().cpu().numpy().tobytes())
        return digest.hexdigest()[:16]


def load(
    path: Path,
    device: torch.device,
    codec_device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[str, float], None] | None = None,
) -> Checkpoint:
    """Load the checkpoint that `find` found. Raises CheckpointError naming file, key, expected and found."""
    source = open_source(path)
    config, tokenizer = source.config, source.tokenizer()
    _check_fit(source)
    with ThreadPoolExecutor(1) as beside:  # reading the codec takes as long as reading the model
        loaded = beside.submit(source.codec)
        model = _load_model(source, device, dtype, progress or (lambda what, done: None))
        codec = loaded.result()
    hasher = ThreadPoolExecutor(1, "codec-fingerprint")
    codec_fingerprint = hasher.submit(fingerprint, codec.config, codec.state_dict())
    hasher.shutdown(wait=False)
    return Checkpoint(config, model, _moved(codec, codec_device), codec_fingerprint, tokenizer)


def _load_model(
    source: Source, device: torch.device, dtype: torch.dtype, progress: Callable[[str, float], None]
) -> DualAR:
    with only_shapes():
        model = DualAR(source.config)
    upload = Uploader(device)

    def read(tensor: LazyTensor) -> Tensor:
        try:
            value = tensor.read()
        except ValueError as error:
            raise CheckpointError(f"{source.weights_path}: {error}") from error
        if not value.is_floating_point() or value.element_size() < 2:
            name = source.file_key(tensor.name)
            raise CheckpointError(f"{source.weights_path}: {name} is {value.dtype} and has no scales")
        return upload(value, dtype)

    with ExitStack() as stack:
        stored = source.weights(stack)
        shapes = {tensor.name: tensor.shape for tensor in stored}
        check_tensors(source.weights_path, model, shapes, source.file_key)
        threads = stack.enter_context(ThreadPoolExecutor(READERS))
        tensors: dict[str, Tensor] = {}
        for name, value in zip(shapes, threads.map(read, stored), strict=True):
            tensors[name] = value
            progress("loading weights", len(tensors) / len(stored))
    model.load_state_dict(tensors, assign=True)
    return model.eval().requires_grad_(False)


def _moved(codec: Codec, device: torch.device) -> Codec:
    if device.type == "cuda":
        upload, state = Uploader(device), codec.state_dict()
        with ThreadPoolExecutor(READERS) as threads:
            values = list(threads.map(lambda value: upload(value, value.dtype), state.values()))
        codec.load_state_dict(dict(zip(state, values, strict=True)), assign=True)
    return codec.to(device)  # what is in no state besides


def _check_fit(source: Source) -> None:
    """The two halves of a checkpoint must speak of the same codes."""
    config, codec, path = source.config, source.codec_config, source.config_path
    if codec.num_codebooks != config.num_codebooks:
        raise CheckpointError(f"{path} has {config.num_codebooks} codebooks, the codec {codec.num_codebooks}")
    if codec.semantic_codebook_size != config.semantic_size:
        raise CheckpointError(
            f"{path} has {config.semantic_size} semantic tokens, "
            f"the codec's first codebook {codec.semantic_codebook_size} entries"
        )

"""The weights of a checkpoint folder as lazy tensors: safetensors, one file or shards, or a model.pth of torch.save."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.checkpoint.bounded_json import read_json
from engine.checkpoint.lazy_tensors import LazyTensor
from engine.engine_errors import CheckpointError
from engine.torch_file import read_torch_file

TORCH_FILE = "model.pth"
_INDEX_BYTES = 32 * 2**20


def folder_weights(folder: Path, stack: ExitStack) -> list[LazyTensor]:
    """Every tensor by its name in the files, which stay open as long as ``stack``.

    Raises CheckpointError; reading a damaged tensor raises ValueError.
    """
    path = weight_file(folder)
    if path.name == TORCH_FILE:
        state = read_torch_file(path, ("state_dict",))
        return [LazyTensor(name, tuple(value.shape), partial(_same, value)) for name, value in state.items()]
    tensors = []
    for path in _shards(folder):
        file = stack.enter_context(_open(path))
        for name in file.keys():  # noqa: SIM118  (no dictionary)
            shape = tuple(file.get_slice(name).get_shape())
            tensors.append(LazyTensor(name, shape, partial(_read_tensor, file, name)))
    return tensors


def _read_tensor(file: safe_open, name: str) -> Tensor:
    try:
        return file.get_tensor(name)
    except SafetensorError as error:
        raise ValueError(f"{name} cannot be read: {error}") from error


def weight_file(folder: Path) -> Path:
    """The file named in messages about a tensor: model.pth, unless safetensors (not just their index) are beside it."""
    path = folder / TORCH_FILE
    return path if path.is_file() and not any(folder.glob("model*.safetensors")) else folder / "model.safetensors"


def _same(value: Tensor) -> Tensor:
    return value


def _shards(folder: Path) -> list[Path]:
    """The safetensors files: those in the index, or the single one."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        names = {"model.safetensors"}
    else:
        weight_map = read_json(index, _INDEX_BYTES).get("weight_map")
        if not isinstance(weight_map, dict) or not all(
            isinstance(name, str) and Path(name).name == name for name in weight_map.values()
        ):
            raise CheckpointError(f"{index} is not a safetensors index: its weight_map must name files")
        names = set(weight_map.values())
    for name in sorted(names):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder / name} is missing: the checkpoint's weights are incomplete")
    return [folder / name for name in sorted(names)]


def _open(path: Path) -> safe_open:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        if not os.access(path, os.R_OK):
            raise CheckpointError(f"{path} cannot be read: this user has no permission") from error
        size = path.stat().st_size
        raise CheckpointError(f"{path} ({size:,} bytes) cannot be read; damaged or cut short? {error}") from error

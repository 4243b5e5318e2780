"""The weights of a checkpoint as lazy tensors: safetensors, one file or shards, or a model.pth of torch.save."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.checkpoint.lazy_tensors import LazyTensor
from engine.engine_errors import CheckpointError
from engine.files import MOST_NAMES, read_json, read_start, read_torch_file

TORCH_FILE, SAFETENSORS, INDEX = "model.pth", "model.safetensors", "model.safetensors.index.json"
TORCH_SUFFIXES = frozenset({".pth", ".pt", ".ckpt", ".bin"})


def stored_weights(path: Path, stack: ExitStack) -> list[LazyTensor]:
    """Every tensor by its name in the files, which stay open as long as ``stack``.

    ``path``: a checkpoint folder or a single file. Raises CheckpointError; reading a damaged tensor raises ValueError.
    """
    file = weight_file(path)
    if file.suffix.lower() in TORCH_SUFFIXES:
        state = read_torch_file(file, ("state_dict",))
        return [LazyTensor(name, tuple(value.shape), partial(_same, value)) for name, value in state.items()]
    tensors = []
    for shard in shards(path) if path.is_dir() else [path]:
        opened = stack.enter_context(_open(shard))
        for name in opened.keys():  # noqa: SIM118  (no dictionary)
            shape = tuple(opened.get_slice(name).get_shape())
            tensors.append(LazyTensor(name, shape, partial(_read_tensor, opened, name)))
    return tensors


def _read_tensor(file: safe_open, name: str) -> Tensor:
    try:
        return file.get_tensor(name)
    except SafetensorError as error:
        raise ValueError(f"{name} cannot be read: {error}") from error


def weight_file(path: Path) -> Path:
    """The file named in messages about a tensor: of a folder, model.pth unless safetensors themselves are beside it."""
    if not path.is_dir():
        return path
    is_torch = (path / TORCH_FILE).is_file() and not any(path.glob("model*.safetensors"))
    return path / (TORCH_FILE if is_torch else SAFETENSORS)


def _same(value: Tensor) -> Tensor:
    return value


def shards(folder: Path) -> list[Path]:
    """The safetensors files of a folder: those in its index, or the single one. Raises CheckpointError."""
    index = folder / INDEX
    if not index.is_file():
        names = {SAFETENSORS}
    else:
        weight_map = read_json(index, MOST_NAMES).get("weight_map")
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
        header, size = int.from_bytes(read_start(path, 8), "little"), path.stat().st_size
        if MOST_NAMES < header < size:  # it is parsed with Python's lock held
            raise CheckpointError(f"{path} describes more than a checkpoint's tensors, in {header:,} bytes")
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        size = path.stat().st_size
        raise CheckpointError(f"{path} ({size:,} bytes) cannot be read; damaged or cut short? {error}") from error

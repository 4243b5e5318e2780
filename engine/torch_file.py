"""Files of torch.save: only tensors, mapped into memory instead of read, and nothing that runs code."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from engine.engine_errors import CheckpointError

MOST_PICKLE = 64 * 2**20
"""Maximum bytes of names and shapes; S2 Pro's take 0.1 MB."""

_MALFORMED = (
    pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, LookupError, TypeError, AttributeError,
    AssertionError, struct.error,
)  # fmt: skip
"""Raised by torch's reader for pickles that are damaged."""


def read_torch_file(path: Path, nestings: tuple[str, ...]) -> dict[str, Tensor]:
    """A file's tensors by name, taken out of these nestings if present. Raises CheckpointError."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except PermissionError as error:
        raise CheckpointError(f"{path} cannot be read: this user has no permission") from error
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:  # the last for names, not UTF-8
        raise CheckpointError(f"{path} is not a file of torch.save, or it was cut short") from error
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise CheckpointError(f"{path} is compressed, which torch.save never does; download it again")
    if any(entry.filename.endswith(".pkl") and entry.file_size > MOST_PICKLE for entry in entries):
        raise CheckpointError(f"{path} describes more than a checkpoint's tensors; download it again")
    try:
        tree = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except _MALFORMED as error:
        reason = str(error).split("\n", 1)[0]
        raise CheckpointError(f"{path} cannot be read (damaged, or not tensors alone?): {reason}") from error
    for nesting in nestings:
        if isinstance(tree, dict) and isinstance(tree.get(nesting), dict):
            tree = tree[nesting]
    if not isinstance(tree, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in tree.items()
    ):
        raise CheckpointError(f"{path} does not hold a dictionary of tensors")
    for name, value in tree.items():
        if value.layout is not torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise CheckpointError(
                f"{path} holds {name} as a {value.layout} tensor of {value.dtype}; save it as a plain one"
            )
    return {name: value.detach() for name, value in tree.items()}  # a file may hold parameters

"""Reads untrusted files: only regular ones, of bounded size."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import stat
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from engine.engine_errors import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LFS_START = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = 1024
"""Git LFS's specification: a pointer has less than 1024 bytes."""

CONFIG_BYTES = 2**20
"""Bytes; no config.json is larger."""

MOST_NAMES = 4 * 2**20
"""Maximum bytes of tensors' names and shapes, which are read in one go; S2 Pro's take 0.1 MB."""

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Perhaps half of a surrogate pair, which could be neither sent nor stored."""

_MALFORMED = (
    pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, LookupError, TypeError, AttributeError,
    AssertionError, struct.error,
)  # fmt: skip
"""Raised by torch's reader for pickles that are damaged."""


class NotRegularError(OSError):
    """The path is a pipe, a device, a socket or a folder."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it. Anything else is not opened, since reading or opening it might never end.

    Every file in a folder of somebody else's is read through this function. Raises NotRegularError, OSError.
    """
    _check_kind(path.stat(), path)
    # Replaced by a pipe meanwhile, it still opens at once.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(os.open(path, flags), "rb")  # noqa: SIM115  (the caller closes it)
    try:
        _check_kind(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def check_file(path: Path) -> None:
    """Raise CheckpointError unless this is a regular, readable file with its own content; FileNotFoundError."""
    _opened(path).close()


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file of at most ``max_bytes`` bytes. Raises CheckpointError, FileNotFoundError."""
    with _opened(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > max_bytes:
            raise CheckpointError(f"{path} has {size:,} bytes; at most {max_bytes:,} are allowed")
        return _read(file, path, max_bytes)


def read_start(path: Path, max_bytes: int) -> bytes:
    """The first bytes of a regular file. Raises CheckpointError, FileNotFoundError."""
    with _opened(path) as file:
        return _read(file, path, max_bytes)


def _opened(path: Path) -> BinaryIO:
    """The file, unless it is only a pointer of Git LFS. Raises CheckpointError, FileNotFoundError."""
    try:
        file = open_regular(path)
    except NotRegularError as error:
        raise CheckpointError(str(error.strerror)) from error
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise CheckpointError(f"{path} cannot be read: this user has no permission") from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        if os.fstat(file.fileno()).st_size < _LFS_BYTES and _read(file, path, _LFS_BYTES).startswith(_LFS_START):
            raise CheckpointError(
                f"{path} is only a pointer of Git LFS, not the file itself: run “git lfs install” and “git lfs pull” "
                "in its repository, or download the file from where it was published"
            )
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _read(file: BinaryIO, path: Path, max_bytes: int) -> bytes:
    try:
        return file.read(max_bytes)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error


def _check_kind(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise NotRegularError(errno.EINVAL, f"{path} is not a file but {kind}", str(path))


def read_json(path: Path, max_bytes: int = CONFIG_BYTES) -> dict[str, Any]:
    """The object in a file of at most ``max_bytes`` bytes. Raises CheckpointError."""
    try:
        return parse_json(read_bounded(path, max_bytes), path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing: {path.parent} is not a checkpoint folder") from error


def parse_json(data: bytes, source: object) -> dict[str, Any]:
    """The object in these bytes; messages name ``source``. Raises CheckpointError."""
    tree = load_json(data, source)
    if not isinstance(tree, dict):
        raise CheckpointError(f"{source} must be a JSON object")
    return tree


def load_json(data: bytes, source: object) -> Any:
    """Like `parse_json`, for any value, all of whose strings are valid Unicode text."""
    try:
        text = data.decode(json.detect_encoding(data))
        tree = json.loads(text)
        if _ESCAPED_HALF.search(text):
            json.dumps(tree, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source} is not valid JSON: {error}") from error
    return tree


def read_torch_file(path: Path, nestings: tuple[str, ...]) -> dict[str, Tensor]:
    """A file's tensors by name, taken out of these nestings if present. Raises CheckpointError."""
    import torch  # which programs without an engine need not wait for

    try:
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:  # the last for names, not UTF-8
        raise CheckpointError(f"{path} is not a file of torch.save, or it was cut short") from error
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise CheckpointError(f"{path} is compressed, which torch.save never does; download it again")
    if any(entry.filename.endswith(".pkl") and entry.file_size > MOST_NAMES for entry in entries):
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
        isinstance(key, str) and isinstance(value, torch.Tensor) for key, value in tree.items()
    ):
        raise CheckpointError(f"{path} does not hold a dictionary of tensors")
    for name, value in tree.items():
        if value.layout is not torch.strided or value.device.type != "cpu" or value.is_quantized:
            raise CheckpointError(
                f"{path} holds {name} as a {value.layout} tensor of {value.dtype}; save it as a plain one"
            )
    return {name: value.detach() for name, value in tree.items()}  # a file may hold parameters

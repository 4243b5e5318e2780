"""Hostile model folders: what a stranger's folder may hold in place of a checkpoint's files.

Each entry of `HOSTILE` changes a copy of a checkpoint (safetensors, codec.pth, codec.yaml, tokenizer.json) and returns
the path to name, or a text that is not a path. A studio answers each in words, and other requests meanwhile.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

Hostile = Callable[[Path], str | Path]

FILES = (
    "config.json", "model.safetensors", "codec.pth", "codec.yaml", "tokenizer.json",
    "card.json", "README.md", "model.safetensors.index.json",
)  # fmt: skip
SEEN_LATER = frozenset({"codec.yaml", "README", "model.safetensors.index.json", "tokenizer.json"})
"""A folder with something odd in place of these may be a model nevertheless, or is refused only as it is loaded."""
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 4096000000\n"
SPARSE = 2**36
"""Bytes of a file without content, which takes no room on the disk."""


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is limited to a hundred bytes
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


NO_FILES = ("a pipe", "a folder", "a socket", "an endless device", "a link to itself")
"""Kinds that every file is checked for in one place: each file, and each way to name one, is one or two of them."""
KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a pointer of Git LFS": lambda path: path.write_text(POINTER),
    "a sparse file": _sparse,
    "an empty file": Path.touch,
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "deep JSON": lambda path: path.write_text('{"a":' * 60_000),
}


def _replaced(name: str, kind: str, folder: Path) -> Path:
    (folder / name).unlink(missing_ok=True)
    KINDS[kind](folder / name)
    return folder


def _only(name: str, kind: str, folder: Path) -> Path:
    """A folder with nothing but one odd file."""
    for path in folder.iterdir():
        path.unlink()
    KINDS[kind](folder / name)
    return folder


def _named(name: str, kind: str, folder: Path) -> Path:
    """The odd file itself, beside a sound model."""
    KINDS[kind](folder / name)
    return folder / name


def _cut(name: str, share: float, folder: Path) -> Path:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * share)])
    return folder


def _written(name: str, content: str | bytes, folder: Path) -> Path:
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def _lora(only: bool, folder: Path) -> Path:
    tensors = load_file(folder / "model.safetensors")
    name = "text_model.model.layers.0.attention.wqkv"
    lora = {f"{name}.lora_A": torch.zeros(2, 64), f"{name}.lora_B": torch.zeros(128, 2)}
    save_file(lora if only else tensors | lora, folder / "model.safetensors")
    return folder


def _compressed(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "codec.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(100_000_000))
    return folder


def _sized(key: str, value: object, folder: Path) -> Path:
    tree = json.loads((folder / "config.json").read_text())
    tree["text_config"][key] = value
    return _written("config.json", json.dumps(tree), folder)


def _two_ggufs(folder: Path, name: str = "b.gguf") -> Path:
    _only("a.gguf", "noise", folder)
    (folder / name).touch()
    return folder


def _no_text(folder: Path) -> Path:
    """A link to a folder with such a name."""
    link = folder.with_name("link")
    link.symlink_to(folder.rename(folder.with_name(os.fsdecode(b"\xff"))))
    return link


def _kinds(number: int) -> list[str]:
    """Those for the file of this number: a pipe, another that is no file, and all others."""
    odd = {NO_FILES[0], NO_FILES[1 + number % (len(NO_FILES) - 1)]}
    return [kind for kind in KINDS if kind in odd or kind not in NO_FILES]


HEADER = struct.pack("<Q", 2**62) + b"{}"
HOSTILE: dict[str, Hostile] = {
    **{
        f"{kind} as {name}": partial(_replaced, name, kind)
        for number, name in enumerate(FILES)
        for kind in _kinds(number)
    },
    **{f"only {kind} as x.gguf": partial(_only, "x.gguf", kind) for kind in _kinds(0)},
    **{f"{kind} named tune.safetensors": partial(_named, "tune.safetensors", kind) for kind in _kinds(1)},
    **{f"{kind} named step_500.pth": partial(_named, "step_500.pth", kind) for kind in _kinds(2)},
    **{
        f"{share:.0%} of {name}": partial(_cut, name, share)
        for name in ("config.json", "model.safetensors", "codec.pth", "tokenizer.json")
        for share in (0.01, 0.5, 0.999)
    },
    "a README of blanks": partial(_written, "README.md", f"---\nlicense: a{' ' * 60_000}b\n---\n"),
    "a README of quotes": partial(_written, "README.md", "---\nlicense: " + "'" * 60_000 + "b\n---\n"),
    "a README of lists": partial(_written, "README.md", "---\nlanguage:" + "\n  -" * 20_000 + "\n---\n"),
    "a README of 100 MB": lambda folder: _written("README.md", "---\n" + "a: b\n" * 20_000_000, folder),
    "a card with a wrong value": partial(_written, "card.json", '{"languages": {"en": 1}}'),
    "code in codec.pth": partial(_written, "codec.pth", pickle.dumps(print)),
    "a compressed codec.pth": _compressed,
    "a header of 4 EiB": partial(_written, "model.safetensors", HEADER),
    "a LoRA beside the weights": partial(_lora, False),
    "a LoRA alone": partial(_lora, True),
    "an index that leaves the folder": partial(
        _written, "model.safetensors.index.json", '{"weight_map": {"a": "../../etc/passwd"}}'
    ),
    "an index of a missing file": partial(_written, "model.safetensors.index.json", '{"weight_map": {"a": "b"}}'),
    "a YAML of aliases": partial(_written, "codec.yaml", "a: &a [1]\n" + "".join(f"b{n}: [*a]\n" for n in range(9000))),
    "an index of an escape": partial(
        _written, "model.safetensors.index.json", json.dumps({"weight_map": {"a": "\x1b[31m\n"}})
    ),
    "a folder with a line end": lambda folder: _only("config.json", "noise", folder).rename(f"{folder}\nb"),
    "a billion layers": partial(_sized, "n_layer", 10**9),
    "a trillion words": partial(_sized, "vocab_size", 10**12),
    "an infinite base": partial(_sized, "rope_base", float("inf")),
    "two GGUF files": _two_ggufs,
    "a folder of nothing": lambda folder: _only("nothing", "a folder", folder),
    "the codec alone": lambda folder: folder / "codec.pth",
    "a text": lambda folder: _written("notes.txt", "x", folder) / "notes.txt",
    "a device": lambda folder: "/dev/zero",
    "a process's memory": lambda folder: "/proc/self/mem",
    "a folder of processes": lambda folder: "/proc",
    "half of a surrogate pair": partial(_written, "card.json", r'{"languages": ["\ud800"]}'),
    "a folder whose name is not Unicode text": _no_text,
    "files whose names are not Unicode text": lambda folder: _two_ggufs(folder, os.fsdecode(b"\xff.gguf")),
    "a home of nobody": lambda folder: "~nobody-here/x",
    "a long name": lambda folder: "x" * 4000,
    "a name with a line end": lambda folder: "no\nsuch",
    "a name with an escape": lambda folder: "no\x1b[31msuch",
}

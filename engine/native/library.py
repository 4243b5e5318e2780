"""Loads the library of this platform; without one, the same work is done in torch, more slowly."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from pathlib import Path

import torch
from torch import Tensor

FOLDER = Path(__file__).with_name("lib")
FRAMES, SOUND, CLIPS = range(3)
"""Callers: the autoregressive models, whose work comes first, then the codec, then clips that are encoded."""

_SYSTEMS = {"linux": ("linux", "so"), "darwin": ("macos", "dylib"), "win32": ("windows", "dll")}
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_WANTED = {"x86_64": "AVX2", "aarch64": "dot products"}
"""What `base`, the code for every processor of a machine's kind, does without."""


class Matrix(ctypes.Structure):
    _fields_ = (
        ("values", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("outputs", ctypes.c_int32),
        ("inputs", ctypes.c_int32),
        ("bits", ctypes.c_int32),
    )


class Layer(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("attention_norm", "ffn_norm", "qkv_bias", "q_norm", "k_norm")),
        *((name, ctypes.c_void_p) for name in ("attention_scale", "ffn_scale")),
        *((name, Matrix) for name in ("qkv", "output", "gate", "up", "down")),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
    )


class TransformerFields(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norm", ctypes.c_void_p),
        ("head", Matrix),
        ("slot_stride", ctypes.c_int64),
        *(
            (name, ctypes.c_int32)
            for name in ("n_layer", "dim", "n_head", "n_kv_head", "head_dim", "intermediate", "window", "capacity")
        ),
        ("eps", ctypes.c_float),
    )


class StepsFields(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("angles", "slots", "positions", "rotations")),
        ("steps", ctypes.c_int32),
        ("every", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("x", "normed", "logits")),
    )


class DrawFields(ctypes.Structure):
    _fields_ = (
        ("temperature", ctypes.c_float),
        ("top_p", ctypes.c_float),
        ("top_k", ctypes.c_int32),
        ("noise", ctypes.c_void_p),
    )


class ResidualFields(ctypes.Structure):
    _fields_ = (
        ("fast", ctypes.POINTER(TransformerFields)),
        *((name, ctypes.c_void_p) for name in ("angles", "table", "draws", "codes", "x", "logits", "places")),
        *((name, ctypes.c_int32) for name in ("rows", "books", "outputs")),
    )


class BufferFields(ctypes.Structure):
    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("state", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("rows", "channels", "context")),
    )


class ConvolutionFields(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in (
                "kind", "input", "output", "activated", "taps", "dilation", "inputs", "outputs", "is_added",
                "activation", "tiles", "most_tiles", "points",
            )
        ),
        *(
            (name, ctypes.c_void_p)
            for name in ("weights", "scales", "bias", "alpha", "inverse", "starts", "memory", "in_", "out")
        ),
        ("transformer", ctypes.POINTER(TransformerFields)),
        ("steps", ctypes.POINTER(StepsFields)),
    )  # fmt: skip


class LayersFields(ctypes.Structure):
    _fields_ = (
        ("convolutions", ctypes.POINTER(ConvolutionFields)),
        ("buffers", ctypes.POINTER(BufferFields)),
        *((name, ctypes.c_int32) for name in ("n_convolutions", "first", "last", "width")),
    )


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None: see `problem`."""
    return _loaded()[0]


def problem() -> str | None:
    """Why the library is not used; None if it is."""
    return _loaded()[1]


def isa() -> str:
    """The instruction set in use; with a library only."""
    native = library()
    assert native is not None
    return bytes(native.native_isa()).decode()


def described() -> str:
    """What the library computes with, and why not something faster; with a library only."""
    if isa() != "base":
        return f"native code for {isa()}"
    wanted = _WANTED[_MACHINES[platform.machine().lower()]]
    return f"native code without {wanted}, which this processor lacks: about half as fast"


def use_isa(name: str) -> bool:
    """Use an instruction set, such as avx2; False if this processor lacks it."""
    native = library()
    return native is not None and bool(native.native_use_isa(name.encode()))


def set_threads(count: int) -> None:
    """How many threads compute at once, the callers' own included."""
    if native := library():
        native.native_set_threads(count)


class LargePages:
    """Memory for weights, in large pages where the system has them: reading takes two thirds of the time in them.

    Blocks hold many weights each, because most weights would fill only a page or two.
    """

    _PAGE, _BLOCK = 2**21, 2**26

    def __init__(self) -> None:
        self._left = torch.empty(0, dtype=torch.uint8)

    def empty(self, outputs: int, inputs: int) -> Tensor:
        """Uninitialised bytes (outputs, inputs)."""
        size = outputs * inputs
        taken = -(-size // 64) * 64
        if taken > len(self._left):
            block = torch.empty(max(taken, self._BLOCK) + self._PAGE, dtype=torch.uint8)
            self._left = block[-block.data_ptr() % self._PAGE :]
            if native := library():
                native.native_use_large_pages(self._left.data_ptr(), len(self._left))
        weight, self._left = self._left[:size], self._left[taken:]
        return weight.view(outputs, inputs)

    def copy(self, tensor: Tensor) -> Tensor:
        """A contiguous copy."""
        target = self.empty(1, tensor.nbytes).view(tensor.dtype).view(tensor.shape)
        return target.copy_(tensor)


@functools.cache
def _loaded() -> tuple[ctypes.CDLL | None, str | None]:
    name = file_name(sys.platform, platform.machine())
    if name is None:
        return None, f"there is none for {platform.system()} on {platform.machine()}"
    try:
        native = ctypes.CDLL(str(FOLDER / name))
    except OSError as error:
        hint = "; its disk may be mounted noexec" if "failed to map segment" in str(error) else ""
        return None, f"{name} cannot be loaded: {error}{hint}"
    native.native_isa.restype = ctypes.c_char_p
    native.native_use_large_pages.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    pointer = ctypes.c_void_p
    native.native_transformer_steps.argtypes = [pointer, pointer, ctypes.c_int]
    native.native_transformer_steps.restype = None
    native.native_draw.argtypes = [pointer, ctypes.c_int32, pointer, ctypes.c_int]
    native.native_residual.argtypes = [pointer, ctypes.c_int]
    native.native_residual.restype = None
    native.native_codec_frames.argtypes = [pointer, pointer, pointer, ctypes.c_int32, pointer, ctypes.c_int]
    native.native_codec_frames.restype = None
    return native, None


def file_name(system: str, machine: str) -> str | None:
    """The name of a platform's library; None if there is none."""
    kind, arch = _SYSTEMS.get(system), _MACHINES.get(machine.lower())
    if kind is None or arch is None or (kind[0] == "windows" and arch != "x86_64"):
        return None
    return f"{kind[0]}-{'arm64' if kind[0] == 'macos' and arch == 'aarch64' else arch}.{kind[1]}"

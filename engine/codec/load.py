"""codec.pth to a Codec: find the tensors in any nesting, fold weight norm, check every name and shape."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.codec.codec_config import CodecConfig
from engine.codec.model import Codec
from engine.engine_errors import CheckpointError
from engine.model.shapes import only_shapes
from engine.transfer import Uploader

ONLY_DECODES = (
    "decoder.", "quantizer.post_module.", "quantizer.upsample.",
    "timbre.default", "timbre.hidden.", "timbre.colouring.",
)  # fmt: skip
ONLY_ENCODES = "encoder.", "quantizer.pre_module.", "quantizer.downsample."
_STALE_BUFFERS = ("freqs_cis", "causal_mask")
_WEIGHT_NORM = (
    # (suffix of the gain, suffix of the direction, suffix of the folded weight)
    (".parametrizations.weight.original0", ".parametrizations.weight.original1", ".weight"),
    (".weight_g", ".weight_v", ".weight"),
)


def load_codec(folder: Path, device: torch.device | str) -> Codec:
    """Load folder/codec.pth (sizes from folder/codec.yaml, else S2 Pro's) in float32, ready for inference.

    Raises CheckpointError naming file, key, expected and found.
    """
    path = folder / "codec.pth"
    config = CodecConfig.of(folder)
    with only_shapes():
        codec = Codec(config)
    tensors = fold_weight_norm(_read(path))
    check_tensors(path, codec, {key: value.shape for key, value in tensors.items()})
    codec.load_state_dict({key: value.float() for key, value in tensors.items()}, assign=True)
    return codec.to(device).eval().requires_grad_(False)


def part_on(codec: Codec, device: torch.device, without: tuple[str, ...]) -> Codec:
    """A codec that has copies on this device of all tensors whose names do not begin so, and shapes of those."""
    with only_shapes():
        part = Codec(codec.config)
    upload, state = Uploader(device), codec.state_dict().items()
    copies = {name: upload(value, value.dtype) for name, value in state if not name.startswith(without)}
    part.load_state_dict(copies, assign=True, strict=False)
    return part.eval().requires_grad_(False)


def fingerprint(config: CodecConfig, state: Mapping[str, Tensor]) -> str:
    """Sixteen hex digits over everything in a codec's state that decides which codes and which vector a clip gets."""
    digest = hashlib.sha256(repr(config).encode())
    for key, value in sorted(state.items()):
        if not key.startswith(ONLY_DECODES):
            digest.update(value.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:16]


def check_tensors(
    path: Path, model: nn.Module, shapes: Mapping[str, torch.Size], file_key: Callable[[str], str] = str
) -> None:
    """Raise CheckpointError unless there are exactly the model's names and shapes.

    file_key: our name of a tensor → the file's, for the message.
    """
    expected = {file_key(key): list(value.shape) for key, value in model.state_dict().items()}
    found = {file_key(key): list(shape) for key, shape in shapes.items()}
    problems = [f"{key}: missing, expected {shape}" for key, shape in expected.items() if key not in found]
    problems += [f"{key}: unexpected {shape}" for key, shape in found.items() if key not in expected]
    problems += [
        f"{key}: expected {shape}, found {found[key]}"
        for key, shape in expected.items()
        if key in found and found[key] != shape
    ]
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise CheckpointError(f"{path} does not fit its config: " + "; ".join(problems[:5]) + more)


def fold_weight_norm(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Replace each weight-norm pair (gain, direction), parametrised or legacy, by the weight that it stands for."""
    folded = dict(tensors)
    for gain_suffix, direction_suffix, weight_suffix in _WEIGHT_NORM:
        for key in [key for key in tensors if key.endswith(gain_suffix)]:
            stem = key.removesuffix(gain_suffix)
            gain = folded.pop(key).float()
            direction = folded.pop(stem + direction_suffix, None)
            if direction is None:
                raise CheckpointError(f"codec.pth has {key} but not {stem + direction_suffix}")
            folded[stem + weight_suffix] = torch._weight_norm(direction.float(), gain, 0)
    return folded


def _read(path: Path) -> dict[str, Tensor]:
    """The codec's own tensors, out of "generator" or "state_dict" nestings and prefixes, without stale buffers."""
    if not path.is_file():
        raise CheckpointError(f"{path} is missing: a checkpoint folder needs the codec's weights in codec.pth")
    if not zipfile.is_zipfile(path):
        raise CheckpointError(f"{path} is not a file of torch.save, or it was cut short")
    try:
        tree = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read (damaged or cut short?): {error}") from error
    for nesting in ("state_dict", "generator"):
        if isinstance(tree, dict) and isinstance(tree.get(nesting), dict):
            tree = tree[nesting]
    if not isinstance(tree, dict) or not all(isinstance(value, Tensor) for value in tree.values()):
        raise CheckpointError(f"{path} does not hold a dictionary of tensors")
    if any(key.startswith("generator.") for key in tree):
        tree = {key.removeprefix("generator."): v for key, v in tree.items() if key.startswith("generator.")}
    return {key: value for key, value in tree.items() if key.rsplit(".", 1)[-1] not in _STALE_BUFFERS}

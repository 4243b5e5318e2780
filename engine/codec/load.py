"""Loads codec.pth: finds the tensors in any nesting, folds weight norm, checks every name and shape."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from engine.codec.codec_config import CodecConfig
from engine.codec.model import Codec
from engine.codec.transformer import WindowAttention
from engine.engine_errors import CheckpointError
from engine.files import read_torch_file
from engine.model.dual_ar import only_shapes
from engine.transfer import Uploader

ONLY_DECODES = "decoder.", "quantizer.pre_conv.", "quantizer.post_module.", "quantizer.upsample."
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
    return build_codec(CodecConfig.of(folder), read_codec(folder), folder / "codec.pth", device)


def build_codec(config: CodecConfig, tensors: Mapping[str, Tensor], path: Path, device: torch.device | str) -> Codec:
    """The codec of these tensors in float32; messages name ``path``. Raises CheckpointError."""
    codec, state = _checked_state(config, tensors, path)
    codec.load_state_dict({key: value.float() for key, value in state.items()}, assign=True)
    return codec.to(device).eval().requires_grad_(False)


def check_codec(config: CodecConfig, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise CheckpointError, which names ``path``, unless these tensors are the codec's; their values are not read."""
    _checked_state(config, {name: tensor.to("meta") for name, tensor in tensors.items()}, path)


def part_on(codec: Codec, device: torch.device, without: tuple[str, ...]) -> Codec:
    """A copy of the codec on this device, with only shapes for tensors whose names begin with one of ``without``."""
    with only_shapes():
        part = type(codec)(codec.config)
    upload, state = Uploader(device), codec.state_dict().items()
    copies = {name: upload(value, value.dtype) for name, value in state if not name.startswith(without)}
    part.load_state_dict(copies, assign=True, strict=False)
    return part.eval().requires_grad_(False)


def fingerprint(config: CodecConfig, state: Mapping[str, Tensor]) -> str:
    """Sixteen hex digits of a hash over everything in a codec's state that affects a clip's codes and vector."""
    digest = hashlib.sha256(repr(config).encode())
    for key, value in sorted(state.items()):
        if not key.startswith(ONLY_DECODES):
            digest.update(value.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()[:16]


def check_tensors(
    path: Path, model: nn.Module, shapes: Mapping[str, Sequence[int]], file_key: Callable[[str], str] = str
) -> None:
    """Raise CheckpointError unless the names and shapes are exactly the model's.

    file_key: converts our name of a tensor to the file's, for the message.
    """
    expected = {file_key(key): value.shape for key, value in model.state_dict().items()}
    check_shapes(path, expected, {file_key(key): shape for key, shape in shapes.items()})


def check_shapes(path: Path, expected: Mapping[str, Sequence[int]], actual: Mapping[str, Sequence[int]]) -> None:
    """Raise CheckpointError unless the names and shapes are exactly the expected ones."""
    expected, actual = ({key: list(shape) for key, shape in shapes.items()} for shapes in (expected, actual))
    problems = [f"{key}: missing, expected {shape}" for key, shape in expected.items() if key not in actual]
    problems += [f"{key}: unexpected {shape}" for key, shape in actual.items() if key not in expected]
    problems += [
        f"{key}: expected {shape}, found {actual[key]}"
        for key, shape in expected.items()
        if key in actual and actual[key] != shape
    ]
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise CheckpointError(f"{path} does not fit its config: " + "; ".join(problems[:5]) + more)


def fold_weight_norm(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace each weight-norm pair (gain, direction), parametrised or legacy, by its product."""
    folded = dict(tensors)
    for gain_suffix, direction_suffix, weight_suffix in _WEIGHT_NORM:
        for key in [key for key in tensors if key.endswith(gain_suffix)]:
            stem = key.removesuffix(gain_suffix)
            gain = folded.pop(key).float()
            direction = folded.pop(stem + direction_suffix, None)
            if direction is None:
                raise CheckpointError(f"codec.pth has {key} but not {stem + direction_suffix}")
            direction = direction.float()
            if direction.ndim < 2 or gain.ndim == 0 or not len(direction) == len(gain) == gain.numel():
                sizes = f"{list(gain.shape)} for {list(direction.shape)}"
                raise CheckpointError(f"codec.pth: {key} must have one value for each row of its weight, found {sizes}")
            gain = gain.reshape(-1, *[1] * (direction.ndim - 1))  # torch would read beyond the end of another shape
            # Of a meta tensor only the shape counts, and the first product of such tensors takes seconds to import.
            weight = direction if direction.is_meta else torch._weight_norm(direction, gain, 0)
            folded[stem + weight_suffix] = weight
    return folded


def read_codec(folder: Path) -> dict[str, Tensor]:
    """The tensors of folder/codec.pth, taken out of any nesting or prefix. Raises CheckpointError."""
    path = folder / "codec.pth"
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing: a checkpoint folder needs the codec's weights in codec.pth; "
            "a merged LoRA uses those of the model that it was trained on"
        )
    tree = read_torch_file(path, ("state_dict", "generator"))
    if any(key.startswith("generator.") for key in tree):
        tree = {key.removeprefix("generator."): v for key, v in tree.items() if key.startswith("generator.")}
    return {key: value for key, value in tree.items() if key.rsplit(".", 1)[-1] not in _STALE_BUFFERS}


def _checked_state(config: CodecConfig, tensors: Mapping[str, Tensor], path: Path) -> tuple[Codec, dict[str, Tensor]]:
    """The codec's shapes, and its tensors by its names."""
    with only_shapes():
        codec = Codec(config)
    state = _with_all_heads(codec, fold_weight_norm(tensors))
    check_tensors(path, codec, {key: value.shape for key, value in state.items()})
    if non_float := [key for key, value in state.items() if not value.is_floating_point()]:
        raise CheckpointError(
            f"{path}: {non_float[0]} is {state[non_float[0]].dtype}, expected numbers with a fraction"
        )
    return codec, state


def _with_all_heads(codec: Codec, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Expand attention whose heads share keys and values to a copy of these for every head."""
    for name, part in codec.named_modules():
        key = f"{name}.wqkv.weight"
        if not isinstance(part, WindowAttention) or key not in tensors or tensors[key].ndim != 2:
            continue
        weight, width = tensors[key], part.n_head * part.head_dim
        groups, remainder = divmod(len(weight) - width, 2 * part.head_dim)
        if not remainder and 0 < groups < part.n_head and part.n_head % groups == 0:
            q, kv = weight[:width], weight[width:].unflatten(0, (2, groups, 1, part.head_dim))
            copies = kv.expand(-1, -1, part.n_head // groups, -1, -1).flatten(0, 3)
            tensors[key] = torch.cat([q, copies])
    return tensors

"""Tensors in files, read one at a time, and the conversions from other layouts to the model's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.model.dual_ar import LateRows

_PARTS = re.compile(r"(.*\.)(q_proj|k_proj|v_proj|wq|wk|wv)\.(weight|bias)")
_SCALES = re.compile(r"\.weight\.scale$|\.scales$")
_ORDER = {"q_proj": 0, "k_proj": 1, "v_proj": 2, "wq": 0, "wk": 1, "wv": 2}


@dataclass(frozen=True, slots=True)
class LazyTensor:
    """A tensor in a file: its name and shape are known, its values are read on request."""

    name: str
    shape: tuple[int, ...]
    read: Callable[[], Tensor]
    """Any thread may call it."""
    late: Callable[[], LateRows] | None = None
    """Reads it as a table whose rows are computed late, for the host's memory; None where values are as in the file."""


def with_joined_qkv(tensors: Sequence[LazyTensor]) -> list[LazyTensor]:
    """Join queries, keys and values that are stored separately into one product, `wqkv`. Raises ValueError."""
    joined: dict[str, list[LazyTensor]] = {}
    whole = []
    for tensor in tensors:
        match = _PARTS.fullmatch(tensor.name)
        if match is None:
            whole.append(tensor)
        else:
            joined.setdefault(f"{match[1]}wqkv.{match[3]}", []).append(tensor)
    for name, parts in joined.items():
        parts.sort(key=lambda part: _ORDER[part.name.rsplit(".", 2)[1]])
        if len(parts) != 3 or len({part.shape[1:] for part in parts}) > 1 or not all(part.shape for part in parts):
            shapes = ", ".join(f"{part.name} {list(part.shape)}" for part in parts)
            raise ValueError(f"{name} has the parts {shapes}; expected q, k and v of one width")
        whole.append(LazyTensor(name, (sum(part.shape[0] for part in parts), *parts[0].shape[1:]), _joined(parts)))
    return whole


def with_scales(tensors: Sequence[LazyTensor]) -> list[LazyTensor]:
    """Multiply eight-bit weights by their scales: `X.weight` with `X.weight.scale` (float8) or `X.scales` (int8).

    Raises ValueError, also from `LazyTensor.read`.
    """
    names = {tensor.name for tensor in tensors}
    by_weight = {}
    for tensor in tensors:
        weight = _SCALES.sub(".weight", tensor.name)
        if weight != tensor.name and weight in names:
            by_weight[weight] = tensor
    scales = {tensor.name for tensor in by_weight.values()}
    rest = [tensor for tensor in tensors if tensor.name not in scales]
    return [_scaled(tensor, by_weight[tensor.name]) if tensor.name in by_weight else tensor for tensor in rest]


def first_rows(tensor: LazyTensor, rows: int) -> LazyTensor:
    """The first rows of a table, if it has more."""
    if not tensor.shape or tensor.shape[0] <= rows:
        return tensor
    return replace(tensor, shape=(rows, *tensor.shape[1:]), read=lambda: tensor.read()[:rows].clone())


def _joined(parts: Sequence[LazyTensor]) -> Callable[[], Tensor]:
    return lambda: torch.cat([part.read() for part in parts])


def _scaled(weight: LazyTensor, scale: LazyTensor) -> LazyTensor:
    rows = weight.shape[0] if weight.shape else 0
    if len(weight.shape) != 2 or math.prod(scale.shape) not in (1, rows):
        raise ValueError(f"{scale.name} {list(scale.shape)} is not a scale for each row of {weight.name}, {rows}")

    def read() -> Tensor:
        values, factors = weight.read(), scale.read()
        if values.is_floating_point() and values.element_size() > 1:
            raise ValueError(f"{weight.name} has scales, so it should be int8 or float8, not {values.dtype}")
        return values.float() * factors.float().reshape(-1, 1)

    return replace(weight, read=read)

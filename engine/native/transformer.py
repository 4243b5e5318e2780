"""A few steps of an autoregressive transformer with its head as one native call, in float32 or with int8 weights.

Activations are rounded to eight bits with a scale per 32 of them, since a few of them are hundreds of times as large as
the rest. A step's results do not depend on other steps of the call nor on the number of threads, bit for bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.model.dual_ar import Block, Transformer
from engine.model.host_sampling import SlotDraws
from engine.model.layers import rope_angles
from engine.model.stored_weight import StoredWeight, set_weight, weight_of
from engine.native.library import (
    FRAMES,
    DrawFields,
    LargePages,
    Layer,
    Matrix,
    ResidualFields,
    StepsFields,
    TransformerFields,
    library,
)

MOST_STEPS = 512
"""Steps of one call; its tiles are counted in 16 bits."""


def runs(plain: Transformer) -> bool:
    """Whether this transformer can run natively here; else it runs in torch."""
    if library() is None or plain.norm.weight.dtype != torch.float32 or plain.norm.weight.device.type != "cpu":
        return False
    sizes = plain.sizes
    heads = sizes.n_head * sizes.head_dim
    block: Block = plain.layers[0]  # type: ignore[assignment]
    weights = [weight_of(part) for part in _products(block)]
    unit = 32 if weights[0].scales is not None else 8
    return (
        all(size % unit == 0 for size in (sizes.dim, heads, sizes.intermediate_size))
        and sizes.head_dim % 8 == 0
        and sizes.head_dim <= 256
        and all(weight.values.dtype == weights[0].values.dtype for weight in weights)
        and weights[0].values.dtype in (torch.float32, torch.int8, torch.uint8)
    )


class NativeTransformer:
    """Runs a few steps. For one thread only. Packs the plain one's int8 weights, which it still reads, but slowly."""

    def __init__(self, plain: Transformer, heads: Sequence[Tensor], keys: Tensor, values: Tensor) -> None:
        """heads: each (outputs, dim), for positions 1, 2 … or a single one for all; keys and values (layers, slots,
        positions, kv_heads, head_dim), which steps write."""
        sizes = plain.sizes
        self._kept: list[object] = [keys, values, plain]
        self._memory = LargePages()
        self._dim, self._outputs = sizes.dim, len(heads[0])
        layers = (Layer * sizes.n_layer)()
        for layer, block, layer_keys, layer_values in zip(layers, plain.layers, keys, values, strict=True):
            self._fill(layer, block, layer_keys, layer_values)  # type: ignore[arg-type]
        is_quantised = weight_of(plain.layers[0].attention.wqkv).scales is not None  # type: ignore[union-attr, arg-type]
        padded = [torch.cat([head, head.new_zeros(-len(head) % 8, sizes.dim)]) for head in heads]
        stored = [StoredWeight.of(head, 8 if is_quantised else 16) for head in padded]
        self._heads = [self._matrix(head.packed(self._memory.empty)) for head in stored]
        angles = rope_angles(torch.arange(keys.shape[2]), *sizes.rope).contiguous()
        self._fields = TransformerFields(
            layers, self._pointer(plain.norm.weight), self._heads[0], keys.stride(1), sizes.n_layer, sizes.dim,
            sizes.n_head, sizes.n_kv_head, sizes.head_dim, sizes.intermediate_size, 0, keys.shape[2], sizes.norm_eps,
        )  # fmt: skip
        self._steps = StepsFields(angles=self._pointer(angles))
        self._transformer_pointer, self._steps_pointer = ctypes.byref(self._fields), ctypes.byref(self._steps)
        native = library()
        assert native is not None
        self._call = native.native_transformer_steps

    def __call__(
        self, x: Tensor, slots: Sequence[int], positions: Sequence[int], every: int = 1
    ) -> tuple[Tensor, Tensor]:
        """Hidden states after the final norm (steps, dim) and logits (steps / every, outputs) of x (steps, dim).

        x then holds the hidden states before the final norm. Steps of one slot are in order. Logits are those of steps
        every − 1, 2 · every − 1 …, by the head of the last step's position; none with ``every`` 0.
        """
        count, steps = len(x), self._steps
        if count > MOST_STEPS:
            raise ValueError(f"{count} steps are more than {MOST_STEPS}")
        assert x.is_contiguous() and x.dtype == torch.float32 and x.shape[1] == self._dim
        places = np.array([slots, positions], np.int32)
        normed = torch.empty(count, self._dim)
        logits = torch.empty(count // every if every else 0, -(-self._outputs // 8) * 8)
        address, row = places.ctypes.data, places.strides[0]
        steps.slots, steps.positions, steps.rotations = address, address + row, address + row
        steps.steps, steps.every = count, every
        if len(self._heads) > 1:
            self._fields.head = self._heads[positions[-1] - 1]
        steps.x, steps.normed, steps.logits = x.data_ptr(), normed.data_ptr(), logits.data_ptr() if every else None
        self._call(self._transformer_pointer, self._steps_pointer, FRAMES)
        return normed, logits[:, : self._outputs]

    def _fill(self, layer: Layer, block: Block, keys: Tensor, values: Tensor) -> None:
        for part in _products(block):
            set_weight(part, weight_of(part).packed(self._memory.empty))
        layer.qkv, layer.output, layer.gate, layer.up, layer.down = (
            self._matrix(weight_of(part)) for part in _products(block)
        )
        attention = block.attention
        layer.attention_norm = self._pointer(block.attention_norm.weight)
        layer.ffn_norm = self._pointer(block.ffn_norm.weight)
        if attention.wqkv.bias is not None:
            layer.qkv_bias = self._pointer(attention.wqkv.bias)
        if attention.sizes.qk_norm:
            layer.q_norm, layer.k_norm = map(self._pointer, (attention.q_norm.weight, attention.k_norm.weight))
        layer.keys, layer.values = keys.data_ptr(), values.data_ptr()

    def _matrix(self, weight: StoredWeight) -> Matrix:
        if weight.scales is not None:
            return Matrix(self._pointer(weight.values), self._pointer(weight.scales), *weight.shape, 8)
        # Published weights are mostly bfloat16. A copy in their own type is exact, and half as much to read.
        copy = weight.values.bfloat16()
        is_exact = torch.equal(copy.float(), weight.values)
        values = self._memory.copy(copy) if is_exact else weight.values
        return Matrix(self._pointer(values), None, *weight.shape, 16 if is_exact else 32)

    def _pointer(self, tensor: Tensor) -> int:
        """The address of a tensor, which is kept."""
        assert tensor.is_contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()


class NativeResidual:
    """The codes of a frame after the first: all passes of the fast AR with their draws in one call."""

    def __init__(self, fast: NativeTransformer, table: Tensor, draws: SlotDraws, rows: int) -> None:
        """``fast`` has a slot for each of the rows; table: the embeddings of codes (codes, dim) float32."""
        assert table.is_contiguous() and table.dtype == torch.float32
        self._kept = fast, table
        self._draws, self._dim = draws, table.shape[1]
        self._x = np.zeros((2 * rows, self._dim), np.float32)
        self._logits = np.zeros((rows, fast._fields.head.outputs), np.float32)
        self._places = np.zeros((2, 2 * rows), np.int32)
        self._how = (DrawFields * rows)()
        self._fields = ResidualFields(
            ctypes.pointer(fast._fields), fast._steps.angles, table.data_ptr(), ctypes.addressof(self._how), None,
            self._x.ctypes.data, self._logits.ctypes.data, self._places.ctypes.data, 0, 0, fast._outputs,
        )  # fmt: skip

    def __call__(self, slots: Sequence[int], first: Tensor, codes: np.ndarray) -> None:
        """Fill in codes int64 (rows, books), of which the first is given; first: the fast AR's first inputs
        (rows, dim)."""
        assert codes.flags.c_contiguous and codes.dtype == np.int64
        fields = self._fields
        self._x[: len(slots)] = first.numpy()
        for how, slot in zip(self._how, slots, strict=False):
            set_draw(how, *self._draws.parameters(slot), self._draws.noise(slot))
        fields.codes, (fields.rows, fields.books) = codes.ctypes.data, codes.shape
        native = library()
        assert native is not None
        native.native_residual(ctypes.byref(fields), FRAMES)


def set_draw(fields: DrawFields, temperature: np.float32, top_p: np.float32, top_k: int, noise: np.ndarray) -> None:
    assert noise.flags.c_contiguous and noise.dtype == np.float32
    fields.temperature, fields.top_p, fields.top_k, fields.noise = temperature, top_p, top_k, noise.ctypes.data


def draw(logits: np.ndarray, temperature: np.float32, top_p: np.float32, top_k: int, noise: np.ndarray) -> int:
    """As `host_sampling.draw`."""
    assert logits.flags.c_contiguous and logits.dtype == np.float32
    fields, native = DrawFields(), library()
    assert native is not None
    set_draw(fields, temperature, top_p, top_k, noise)
    return int(native.native_draw(logits.ctypes.data, len(logits), ctypes.byref(fields), 0))


def _products(block: Block) -> tuple[Any, ...]:
    ffn, attention = block.feed_forward, block.attention
    return attention.wqkv, attention.wo, ffn.w1, ffn.w3, ffn.w2

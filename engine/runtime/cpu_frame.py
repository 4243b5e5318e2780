"""One frame on a CPU, where calling an operator costs as much as its arithmetic.

A pass of a transformer is one call of the native library; without that, few calls of torch, into reused buffers.
Weights, in float32 or quantised, are shared with the plain model. Tokens are drawn one row at a time, natively or in
numpy. `PlainFrame` is the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.config import TransformerSizes
from engine.model import host_sampling
from engine.model.dual_ar import Block, DualAR, Transformer, attention
from engine.model.host_sampling import SlotDraws
from engine.model.kv_cache import KVCache
from engine.model.layers import rope_angles
from engine.model.slots import Slots
from engine.model.stored_weight import StoredWeight, set_weight, weight_of
from engine.native import transformer as native
from engine.native.transformer import MOST_STEPS, NativeResidual, NativeTransformer
from engine.runtime.row import Row


class TransformerSteps(Protocol):
    """A transformer with its cache and its head."""

    def __call__(
        self, x: Tensor, slots: Sequence[int], positions: Sequence[int], every: int = 1
    ) -> tuple[Tensor, Tensor]:
        """See `NativeTransformer`."""


Residual = Callable[[Sequence[int], Tensor, np.ndarray], None]
"""See `NativeResidual`."""

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""layer, q (steps, kv_heads, heads per key, head_dim), k, v (steps, kv_heads, head_dim) → (steps, heads · head_dim)"""


class Norm:
    """RMSNorm over the last dimension, as x / √(|x|² + n·eps) · √n · gain."""

    def __init__(self, gain: Tensor, eps: float) -> None:
        size = gain.shape[-1]
        self._gain, self._floor = gain.detach() * math.sqrt(size), torch.tensor(math.sqrt(size * eps))

    def __call__(self, x: Tensor, length: Tensor, out: Tensor) -> Tensor:
        """length (..., 1): scratch."""
        torch.linalg.vector_norm(x, dim=-1, keepdim=True, out=length)
        torch.hypot(length, self._floor, out=length)
        return torch.div(x, length, out=out).mul_(self._gain)


class CpuProduct:
    """The product of steps (steps, inputs) with a weight, held in float32 or in fewer bits."""

    def __init__(self, weight: StoredWeight) -> None:
        self._quantised = weight if weight.scales is not None else None
        self._columns = weight.values if weight.scales is not None else weight.values.t()

    def of(self, x: Tensor) -> Tensor:
        return self._quantised.times(x) if self._quantised else x @ self._columns

    def into(self, out: Tensor, x: Tensor) -> None:
        if self._quantised:
            self._quantised.times(x, out)
        else:
            torch.mm(x, self._columns, out=out)

    def onto(self, total: Tensor, x: Tensor) -> None:
        if self._quantised:
            total.add_(self._quantised.times(x))
        else:
            total.addmm_(x, self._columns)


@dataclass(frozen=True, eq=False, slots=True)
class CpuLayer:
    """One block's weights."""

    attention_norm: Norm
    qkv: CpuProduct
    qkv_bias: Tensor | None
    qk_norm: Norm | None
    output: CpuProduct
    ffn_norm: Norm
    gate_up: CpuProduct
    down: CpuProduct

    @classmethod
    def of(cls, block: Block) -> CpuLayer:
        """Take a block's weights; its w1 and w3 become views of the joined tensor, so that memory has only one copy."""
        attention, ffn, sizes = block.attention, block.feed_forward, block.attention.sizes
        gate_up = weight_of(ffn.w1).joined(weight_of(ffn.w3))
        for part, half in zip((ffn.w1, ffn.w3), gate_up.halves(), strict=True):
            set_weight(part, half)
        qk_norm = None
        if sizes.qk_norm:
            q_norm, k_norm = attention.q_norm.weight, attention.k_norm.weight
            gains = torch.cat([q_norm.expand(sizes.n_head, -1), k_norm.expand(sizes.n_kv_head, -1)])
            qk_norm = Norm(gains, sizes.norm_eps)
        return cls(
            attention_norm=Norm(block.attention_norm.weight, sizes.norm_eps),
            qkv=CpuProduct(weight_of(attention.wqkv)),
            qkv_bias=None if attention.wqkv.bias is None else attention.wqkv.bias.detach(),
            qk_norm=qk_norm,
            output=CpuProduct(weight_of(attention.wo)),
            ffn_norm=Norm(block.ffn_norm.weight, sizes.norm_eps),
            gate_up=CpuProduct(gate_up),
            down=CpuProduct(weight_of(ffn.w2)),
        )


class Buffers:
    """Output buffers of one transformer's layers, for this many steps."""

    def __init__(self, sizes: TransformerSizes, steps: int) -> None:
        groups, width = sizes.n_kv_head, sizes.head_dim
        self.normed, self.length = torch.empty(steps, sizes.dim), torch.empty(steps, 1)
        self.qkv = torch.empty(steps, (sizes.n_head + 2 * groups) * width)
        heads = self.qkv.view(steps, -1, width)
        q, self.k, self.v = heads.split([sizes.n_head, groups, groups], 1)
        self.q = q.unflatten(1, (groups, -1))
        self.qk, self.lengths = heads[:, :-groups], torch.empty(steps, sizes.n_head + groups, 1)
        self.pairs = torch.view_as_complex(self.qk.unflatten(-1, (-1, 2)))
        self.gate_up = torch.empty(steps, 2 * sizes.intermediate_size)
        self.gate, self.up = self.gate_up.chunk(2, -1)


class CpuTransformer:
    """Runs a few steps. For one thread only."""

    def __init__(self, plain: Transformer, positions: int) -> None:
        sizes, device = plain.sizes, plain.norm.weight.device
        self._sizes, self._norm = sizes, Norm(plain.norm.weight, sizes.norm_eps)
        self._layers = [CpuLayer.of(block) for block in plain.layers]  # type: ignore[arg-type]
        self._buffers: dict[int, Buffers] = {}
        angles = rope_angles(torch.arange(positions, device=device), *sizes.rope)
        self.angles = torch.view_as_complex(angles)[:, None]
        """Rotations by position, (positions, 1, head_dim / 2)."""

    def __call__(self, x: Tensor, rope: Tensor, attend: Attend) -> Tensor:
        """Hidden states (steps, dim) of x (steps, dim), after the final norm; x then holds those before it.

        The next call overwrites the returned tensor.
        rope: `angles` of one position per step, or of one for all.
        """
        buffers = self._buffers.get(len(x)) or self._buffers.setdefault(len(x), Buffers(self._sizes, len(x)))
        for index, layer in enumerate(self._layers):
            layer.qkv.into(buffers.qkv, layer.attention_norm(x, buffers.length, buffers.normed))
            if layer.qkv_bias is not None:
                buffers.qkv.add_(layer.qkv_bias)
            if layer.qk_norm is not None:
                layer.qk_norm(buffers.qk, buffers.lengths, buffers.qk)
            buffers.pairs.mul_(rope)
            layer.output.onto(x, attend(index, buffers.q, buffers.k, buffers.v))
            layer.gate_up.into(buffers.gate_up, layer.ffn_norm(x, buffers.length, buffers.normed))
            layer.down.onto(x, F.silu(buffers.gate, inplace=True).mul_(buffers.up))
        return self._norm(x, buffers.length, buffers.normed)


class SlotKeys:
    """The slow AR's cache for one step per row; each row attends only to its own keys."""

    def __init__(self, cache: KVCache, rows: int, context: int) -> None:
        self._context = context
        caches = [(keys[:rows], values[:rows]) for keys, values in zip(cache.keys, cache.values, strict=True)]
        self._lines = [(keys.flatten(0, 1), values.flatten(0, 1)) for keys, values in caches]
        """Each layer's (slots · context, kv_heads, head_dim)."""
        self._slots = [(keys.transpose(1, 2).split(1), values.transpose(1, 2).split(1)) for keys, values in caches]
        """Each layer's slots, (1, kv_heads, context, head_dim) each."""

    def steps(self, slots: Sequence[int], positions: Sequence[int]) -> Attend:
        cells = list(zip(slots, positions, strict=True))
        indices = torch.tensor([slot * self._context + position for slot, position in cells])

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            for lines, value in zip(self._lines[layer], (k, v), strict=True):
                lines.index_copy_(0, indices, value)
            keys, values = self._slots[layer]
            rows = [
                attend_once(query, keys[slot].narrow(2, 0, position + 1), values[slot].narrow(2, 0, position + 1))
                for query, (slot, position) in zip(q.split(1), cells, strict=True)
            ]
            return rows[0] if len(rows) == 1 else torch.cat(rows)

        return attend


class CodebookKeys:
    """The fast AR's cache: all rows are at the same codebook."""

    def __init__(self, sizes: TransformerSizes, rows: int, books: int) -> None:
        shape = (sizes.n_layer, rows, sizes.n_kv_head, books, sizes.head_dim)
        self._keys, self._values = torch.zeros(shape), torch.zeros(shape)
        self._spans: dict[tuple[int, int], Attend] = {}

    def span(self, rows: int, start: int, steps: int) -> Attend:
        """Attention for this many steps from `start` on, each row's steps in order."""
        if (rows, start) not in self._spans:
            self._spans[rows, start] = self._make(rows, start, start + steps)
        return self._spans[rows, start]

    def _make(self, rows: int, start: int, end: int) -> Attend:
        caches = [(k[:rows, :, :end], v[:rows, :, :end]) for k, v in zip(self._keys, self._values, strict=True)]
        targets = [tuple(part[:, :, start:].transpose(1, 2) for part in layer) for layer in caches]

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            keys, values = caches[layer]
            for target, value in zip(targets[layer], (k, v), strict=True):
                target.copy_(value.view(target.shape))
            if start + 1 == end:
                return attend_once(q, keys, values)
            by_row = q.flatten(1, 2).unflatten(0, (rows, -1))
            return attention(by_row, keys.transpose(1, 2), values.transpose(1, 2), causal=True).flatten(0, 1)

        return attend


def attend_once(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """One step per row over all of these keys (rows, kv_heads, positions, head_dim) → (rows, heads · head_dim).

    The heads that share a key are parallel queries, so that each key is read once.
    """
    return F.scaled_dot_product_attention(q, keys, values).flatten(1)


class TorchSlow:
    """`TransformerSteps` of the slow AR in torch, each step in a slot of its own."""

    def __init__(self, plain: Transformer, head: CpuProduct, cache: KVCache, rows: int, context: int) -> None:
        self._run, self._head, self._keys = CpuTransformer(plain, context), head, SlotKeys(cache, rows, context)

    def __call__(
        self, x: Tensor, slots: Sequence[int], positions: Sequence[int], every: int = 1
    ) -> tuple[Tensor, Tensor]:
        normed = self._run(x, self._run.angles[positions], self._keys.steps(slots, positions))
        return normed, self._head.of(normed if every else normed[:0])


class TorchFast:
    """`TransformerSteps` of the fast AR in torch: all rows at the same codebooks."""

    def __init__(self, plain: Transformer, heads: Sequence[CpuProduct], rows: int, books: int) -> None:
        self._run, self._heads, self._keys = CpuTransformer(plain, books), heads, CodebookKeys(plain.sizes, rows, books)

    def __call__(
        self, x: Tensor, slots: Sequence[int], positions: Sequence[int], every: int = 1
    ) -> tuple[Tensor, Tensor]:
        normed = self._run(x, self._run.angles[positions], self._keys.span(len(x) // every, positions[0], every))
        head = self._heads[(positions[-1] - 1) % len(self._heads)]
        return normed, head.of(normed[every - 1 :: every])


def native_steps(
    model: DualAR, cache: KVCache, rows: int, context: int
) -> tuple[NativeTransformer, NativeTransformer] | None:
    """Both transformers in native code; None if that cannot run them."""
    if not (native.runs(model.slow) and native.runs(model.fast)):
        return None
    sizes, books = model.fast.sizes, model.config.num_codebooks
    keys, values = (torch.zeros(sizes.n_layer, rows, books, sizes.n_kv_head, sizes.head_dim) for _ in range(2))
    slow_heads, fast_heads = [model.head().detach()], [head.detach() for head in model.fast_heads()]
    slow = NativeTransformer(model.slow, slow_heads, cache.keys[:, :, :context], cache.values[:, :, :context])
    return slow, NativeTransformer(model.fast, fast_heads, keys, values)


def torch_steps(model: DualAR, cache: KVCache, rows: int, context: int) -> tuple[TransformerSteps, TransformerSteps]:
    """`TransformerSteps` of both transformers in torch."""
    bits = 8 if model.weights == "int8" else 16  # a frame of Audio8's reads 147 MB of heads in float32
    heads = model.head(), *model.fast_heads()
    slow_head, *fast_heads = (CpuProduct(StoredWeight.of(head.detach(), bits)) for head in heads)
    slow = TorchSlow(model.slow, slow_head, cache, rows, context)
    return slow, TorchFast(model.fast, fast_heads, rows, model.config.num_codebooks)


class CpuFrame:
    """One frame for the given rows, in `host_frame`'s layout."""

    def __init__(
        self,
        model: DualAR,
        cache: KVCache,
        slots: Slots,
        rows: int,
        context: int,
        in_torch: tuple[TransformerSteps, TransformerSteps] | None = None,
    ) -> None:
        """``in_torch``: `torch_steps`, to be used even if native code can run this model."""
        own = None if in_torch else native_steps(model, cache, rows, context)
        self.is_native = own is not None
        """Whether any number of steps may be read at once, with the same bits as one by one."""
        self._model, self._input = model, slots.input
        draw = native.draw if own else host_sampling.draw
        self._draws = SlotDraws(slots, model.config.num_codebooks + 1, draw)
        self._slow, self._fast = own or in_torch or torch_steps(model, cache, rows, context)
        self._residual: Residual = self._residual_in_steps
        if own and not model.config.codes_apart:
            self._residual = NativeResidual(own[1], model.fast.embeddings.weight.detach(), self._draws, rows)

    def __call__(self, rows: tuple[Row, ...]) -> Tensor:
        slots, positions = [row.slot for row in rows], [row.position for row in rows]
        indices, model, stop = torch.tensor(slots), self._model, self._model.config.semantic_size
        hidden = self._input[indices]
        normed, logits = self._slow(hidden, slots, positions)
        frame = np.zeros((len(rows), model.config.num_codebooks + 1), np.int64)
        for row_frame, slot, row_logits in zip(frame, slots, logits.numpy(), strict=True):
            first = self._draws.semantic(slot, row_logits)
            row_frame[0], row_frame[-1] = (0, 1) if first == stop else (first, 0)
        codes = frame[:, :-1].copy()
        self._residual(slots, model.fast_input(hidden, normed), codes)
        frame[:, :-1] = codes
        read = torch.from_numpy(codes)
        self._input[indices] = model.embed(read[:, :1] + model.config.semantic_start, read[:, :, None])[:, 0]
        self._draws.advance(slots, frame[:, 0])
        return torch.from_numpy(frame.astype(np.int16))

    def read(self, slot: int, position: int, x: Tensor) -> None:
        """Put the keys and values of steps (steps, dim) from a position on into the cache, as generating frames does.

        Overwrites x. Torch reads one step at a time.
        """
        for part in x.split(MOST_STEPS if self.is_native else 1):
            self._slow(part, [slot] * len(part), range(position, position + len(part)), every=0)
            position += len(part)

    def _residual_in_steps(self, slots: Sequence[int], first: Tensor, codes: np.ndarray) -> None:
        embed, drawn, rows = self._model.fast_embed, torch.from_numpy(codes), len(slots)
        # Positions 0 (the hidden state, whose output is unused) and 1 (code 0) go in one pass.
        x = torch.cat([first[:, None], embed(drawn[:, :1])], 1).flatten(0, 1)
        for book in range(1, codes.shape[1]):
            steps = [0, 1] if book == 1 else [book]
            if book > 1:
                x = embed(drawn[:, book - 1 : book], book - 1).flatten(0, 1)
            lines = [row for row in range(rows) for _ in steps]
            _, logits = self._fast(x, lines, steps * rows, every=len(steps))
            codes[:, book] = [
                self._draws.residual(slot, book, row_logits)
                for slot, row_logits in zip(slots, logits.numpy(), strict=True)
            ]

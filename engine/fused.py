"""The same model over fused kernels, for one step a row: what the frame graph captures.

A layer is five kernels (seven for many rows, which norm apart): norm+qkv, rotate+store+attention, output+residual,
norm+gate·up, down+residual.
Weights are shared with the plain model, except that gate and up rows are laid one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.cache import KVCache
from engine.kernels import Spoken, decode_attention, end_frame, linear, quantised, rotate, sample
from engine.layers import rope_angles
from engine.model import Block, DualAR, Transformer, attention
from engine.slots import Slots

Attend = Callable[..., Tensor]


@dataclass(frozen=True, eq=False, slots=True)
class FusedLayer:
    """One block's weights, ready for the kernels."""

    attention_norm: Tensor
    qkv: Tensor
    norms: tuple[Tensor, Tensor] | None
    output: Tensor
    ffn_norm: Tensor
    gate_up: Tensor
    """(2 · intermediate, dim): w1 over w3"""
    gate_up_scales: Tensor | None
    """For float8 weights: a scale a row."""
    down: Tensor
    down_scales: Tensor | None

    @classmethod
    def of(cls, block: Block, float8: bool) -> FusedLayer:
        """Take a block's weights, so that nothing is held twice.

        Its w1 and w3 become views of the joined tensor. float8: the feed-forward's weights are halved, and the
        block has none any more.
        """
        attention, ffn = block.attention, block.feed_forward
        gate_up, down = torch.cat([ffn.w1.weight, ffn.w3.weight]), ffn.w2.weight.data
        gate_up_scales = down_scales = None
        if float8:
            for part in (ffn.w1, ffn.w2, ffn.w3):
                part.weight.data = part.weight.data[:0]
            (gate_up, gate_up_scales), (down, down_scales) = quantised(gate_up), quantised(down)
        else:
            ffn.w1.weight.data, ffn.w3.weight.data = gate_up.chunk(2)
        return cls(
            attention_norm=block.attention_norm.weight,
            qkv=attention.wqkv.weight,
            norms=(attention.q_norm.weight, attention.k_norm.weight) if attention.sizes.qk_norm else None,
            output=attention.wo.weight,
            ffn_norm=block.ffn_norm.weight,
            gate_up=gate_up,
            gate_up_scales=gate_up_scales,
            down=down,
            down_scales=down_scales,
        )


class FusedTransformer:
    """Runs one step a row: x (rows, dim) at positions (rows,) of slots (rows,), on the device throughout."""

    def __init__(self, plain: Transformer, context: int, attend: Attend, alike: bool, float8: bool) -> None:
        self._attend, self._alike = attend, alike
        sizes, device = plain.sizes, plain.norm.weight.device
        self._sizes, self._norm = sizes, plain.norm.weight
        self._layers = [FusedLayer.of(block, float8) for block in plain.layers]  # type: ignore[arg-type]
        angles = rope_angles(torch.arange(context, device=device), sizes.head_dim, sizes.rope_base)
        self._table = torch.view_as_real(angles).contiguous()

    def __call__(
        self, x: Tensor, slots: Tensor, positions: Tensor, cache: KVCache, one_slot_twice: bool = False
    ) -> Tensor:
        """Returns the hidden states before the final norm, (rows, dim); `head` applies it.

        one_slot_twice: several rows may be of one slot, at positions that follow one another.
        """
        eps = self._sizes.norm_eps
        for index, layer in enumerate(self._layers):
            keys, values = cache.keys[index], cache.values[index]
            qkv = linear(x, layer.qkv, layer.attention_norm, eps, alike=self._alike)
            how = qkv, layer.norms, eps, self._table
            if one_slot_twice:  # a row sees what another row of its slot puts into the cache
                rotate(*how, slots, positions, keys, values)
            y = self._attend(*how, keys, values, slots, positions, one_slot_twice, self._alike)
            x = linear(y.flatten(1), layer.output, residual=x, alike=self._alike)
            y = linear(
                x, layer.gate_up, layer.ffn_norm, eps, gated=True, scales=layer.gate_up_scales, alike=self._alike
            )
            x = linear(y, layer.down, residual=x, scales=layer.down_scales, alike=self._alike)
        return x

    def norm(self, x: Tensor) -> Tensor:
        """The final norm (rows, dim)."""
        return F.rms_norm(x, x.shape[-1:], self._norm, self._sizes.norm_eps)

    def head(self, x: Tensor, weight: Tensor) -> Tensor:
        """The final norm and a product with weight (columns, dim) in one: logits (rows, columns)."""
        return linear(x, weight, self._norm, self._sizes.norm_eps, alike=self._alike)


class FusedFrame:
    """One frame for the rows in these slots, without a word from the host: codes (rows, codebooks), ended (rows,)."""

    def __init__(
        self,
        model: DualAR,
        cache: KVCache,
        slots: Slots,
        rows: int,
        context: int,
        kernel_attention: bool,
        alike: bool = False,
        float8: bool = False,
    ) -> None:
        """alike: a row draws the same alone and in any company, bit by bit, at some cost of speed.

        float8: the slow AR's feed-forward reads half as many bytes, and draws a little differently.
        """
        device, books = cache.keys.device, model.config.num_codebooks
        self._model, self._cache, self._state = model, cache, slots
        self._head = model.head().contiguous()
        attend = decode_attention if kernel_attention else masked_attention
        self.slow = FusedTransformer(model.slow, context, attend, alike, float8)
        self._fast = FusedTransformer(model.fast, books, attend, alike, False)
        self._fast_cache = KVCache(model.config.fast, rows, books, device, cache.keys.dtype)
        self._rows = torch.arange(rows, device=device)
        self._positions = torch.arange(books + 1, device=device)[:, None].repeat(1, rows)
        self._first: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        state, model, rows = self._state, self._model, len(slots)
        books, stop = model.config.num_codebooks, model.config.semantic_size
        hidden = self.slow(state.input[slots], slots, state.position[slots], self._cache)
        how = slots, state.temperature, state.top_p, state.top_k, state.seed, state.frame
        # Positions 0 (the hidden state, whose output says nothing) and 1 (code 0) go in one pass.
        project = model.fast_project_in(self.slow.norm(hidden))
        x = torch.empty(2 * rows, project.shape[1], device=project.device, dtype=project.dtype)
        x[:rows] = project
        table = model.fast.embeddings.weight
        codes = torch.empty(rows, books, dtype=torch.int64, device=slots.device)
        logits = self.slow.head(hidden, self._head)
        ended = sample(logits, *how, 0, state.recent, Spoken(codes[:, 0], table, x[rows:])) == stop
        which, positions = self._pairs(rows)
        for book in range(1, books):
            x = self._fast(x, which, positions, self._fast_cache, book == 1)[-rows:]
            logits = self._fast.head(x, model.fast_output.weight)
            x = torch.empty_like(x)
            sample(logits, *how, book + 1, None, Spoken(codes[:, book], table, x))
            which, positions = self._rows[:rows], self._positions[book + 1, :rows]
        audio, start = model.codebook_embeddings.weight, model.config.semantic_start
        text, counters = model.slow.embeddings.weight, (state.position, state.frame, state.recent)
        end_frame(slots, codes, text, audio, start, state.input, *counters, state.last_position)
        return codes, ended

    def _pairs(self, rows: int) -> tuple[Tensor, Tensor]:
        """Rows and positions of the first pass: every row at 0, then every row at 1."""
        if rows not in self._first:  # made before any capture: a graph only reads them
            at = torch.arange(2 * rows, device=self._rows.device)
            self._first[rows] = at % rows, at // rows
        return self._first[rows]


class FusedPrefill:
    """Steps of prompts into the cache: several rows of x may be of one slot."""

    def __init__(self, model: DualAR, slow: FusedTransformer, cache: KVCache) -> None:
        self._model, self._slow, self._cache = model, slow, cache

    def __call__(self, tokens: Tensor, codes: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        """tokens, slots, positions (steps,), codes (codebooks, steps) → hidden states (steps, dim), of no use here."""
        x = self._model.embed(tokens[None], codes[None])[0]
        return self._slow(x, slots, positions, self._cache, one_slot_twice=True)


def masked_attention(
    qkv: Tensor,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
    table: Tensor,
    keys: Tensor,
    values: Tensor,
    slots: Tensor,
    positions: Tensor,
    stored: bool = False,
    alike: bool = False,
) -> Tensor:
    """`decode_attention` without its kernel, fit for a graph: attends over the whole context and masks the rest."""
    q = rotate(qkv, norms, eps, table, slots, positions, keys, values)
    seen = torch.arange(keys.shape[1], device=q.device) <= positions[:, None]
    y = attention(q[:, None], keys[slots], values[slots], seen[:, None, None])
    return y.view_as(q)

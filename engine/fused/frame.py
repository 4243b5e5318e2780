"""The model over fused kernels, one step per row: the code that the frame graph captures.

A layer is five kernels (seven where a GEMM needs a separate norm): norm+qkv, RoPE+store+attention, output+residual,
norm+gate·up, down+residual.
Weights are shared with the plain model, except that gate and up rows are concatenated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from engine import kernels
from engine.config import TwelveBits
from engine.kernels.compilation import launched_alike, layers_alike
from engine.kernels.gemv import GEMV_ROWS
from engine.model.dual_ar import Block, DualAR, Transformer, attention
from engine.model.kv_cache import KVCache
from engine.model.layers import rope_angles
from engine.model.slots import Slots
from engine.model.stored_weight import StoredWeight, set_weight, weight_of

Sharing = Literal["none", "pairs", "prompts"]
"""Rows that share a slot: none; pairs, with which the residual codes of a frame begin; runs of prompts."""


@dataclass(frozen=True, eq=False, slots=True)
class Weight:
    """The weight of a product (outputs, inputs); packed12: the copy for few rows."""

    stored: StoredWeight
    packed12: kernels.Packed12 | None = None

    @property
    def gemv_weights(self) -> Tensor:
        return self.stored.values if self.packed12 is None else self.packed12.words

    @classmethod
    def of(cls, weight: StoredWeight, twelve_bits: TwelveBits, gated: bool = False) -> Weight:
        if twelve_bits == "none" or weight.scales is not None or not kernels.Packed12.fits(weight.values, gated):
            return cls(weight)
        return cls(weight, kernels.Packed12.of(weight.values, tiled=gated and twelve_bits == "tiles"))


@dataclass(frozen=True, eq=False, slots=True)
class FusedLayer:
    """One block's weights, ready for the kernels."""

    attention_norm: Tensor
    qkv: Weight
    qkv_bias: Tensor | None
    norms: tuple[Tensor, Tensor] | None
    output: Weight
    ffn_norm: Tensor
    gate_up: Weight
    """(2 · intermediate, dim): w1 over w3"""
    down: Weight

    @classmethod
    def of(cls, block: Block, twelve_bits: TwelveBits) -> FusedLayer:
        """Share a block's weights: in eight bits they become pairs, and its w1 and w3 views of the joined tensor, so
        that memory has only one copy."""
        attention, ffn = block.attention, block.feed_forward
        for part in (attention.wqkv, attention.wo, ffn.w1, ffn.w3, ffn.w2):
            set_weight(part, weight_of(part).paired())
        gate_up = weight_of(ffn.w1).joined(weight_of(ffn.w3))
        for part, half in zip((ffn.w1, ffn.w3), gate_up.halves(), strict=True):
            set_weight(part, half)
        return cls(
            attention_norm=block.attention_norm.weight,
            qkv=Weight.of(weight_of(attention.wqkv), twelve_bits),
            qkv_bias=attention.wqkv.bias,
            norms=(attention.q_norm.weight, attention.k_norm.weight) if attention.sizes.qk_norm else None,
            output=Weight.of(weight_of(attention.wo), twelve_bits),
            ffn_norm=block.ffn_norm.weight,
            gate_up=Weight.of(gate_up, twelve_bits, gated=True),
            down=Weight.of(weight_of(ffn.w2), twelve_bits),
        )


class FusedTransformer:
    """Runs one step per row: x (rows, dim) at positions (rows,) of slots (rows,), all on the device."""

    def __init__(
        self, plain: Transformer, context: int, kernel_attention: bool, batch_invariant: bool, twelve_bits: TwelveBits
    ) -> None:
        self._kernel_attention, self._batch_invariant = kernel_attention, batch_invariant
        sizes, device = plain.sizes, plain.norm.weight.device
        self._sizes, self._norm = sizes, plain.norm.weight
        self._layers = [FusedLayer.of(block, twelve_bits) for block in plain.layers]  # type: ignore[arg-type]
        self._is_quantised = any(layer.gate_up.stored.scales is not None for layer in self._layers)
        self._table = rope_angles(torch.arange(context, device=device), *sizes.rope)

    def __call__(
        self, x: Tensor, slots: Tensor, positions: Tensor, cache: KVCache, sharing: Sharing = "none"
    ) -> tuple[Tensor, Tensor]:
        """The hidden states (rows, dim) before and after the final norm; for GEMV, `head` applies that norm.

        Of pairs only the second row has a result.
        """
        first = self._layers[0].attention_norm
        inputs = x if self._has_gemv(x) else kernels.rms_norm(x, first, self._sizes.norm_eps, dtype=self._input_type(x))
        for index, layer in layers_alike(list(enumerate(self._layers))):
            qkv = self._product(inputs, layer.qkv, norm=layer.attention_norm, dtype=x.dtype)
            if layer.qkv_bias is not None:
                qkv.add_(layer.qkv_bias)
            next_layer = self._layers[index + 1] if index + 1 < len(self._layers) else None
            # Of the first row of a pair only the keys and values are of use.
            is_last_pair = sharing == "pairs" and not next_layer
            memory = cache.keys[index], cache.values[index], slots, positions
            heads = kernels.HeadInputs(qkv, layer.norms, self._sizes.norm_eps, self._table, *memory)
            y = self._attended(heads, sharing, x.dtype if is_last_pair else self._input_type(x))
            if is_last_pair:
                x, y = x[len(x) // 2 :], y[len(y) // 2 :]
            dtype = self._input_type(x)
            x, inputs = self._added(y.flatten(1), layer.output, x, layer.ffn_norm, dtype, preload=True)
            y = self._product(
                inputs, layer.gate_up, layer.ffn_norm, dtype, gated=True, prefetch=layer.down.gemv_weights
            )
            norm, weights = (
                (next_layer.attention_norm, next_layer.qkv.gemv_weights) if next_layer else (self._norm, None)
            )
            x, inputs = self._added(y, layer.down, x, norm, dtype if next_layer else x.dtype, prefetch=weights)
        return x, inputs

    def _has_gemv(self, x: Tensor) -> bool:
        """Whether products with x (rows, dim) use GEMV, which includes the norm."""
        return len(x) <= GEMV_ROWS and not self._batch_invariant

    def _input_type(self, x: Tensor) -> torch.dtype:
        """The type of a product's input, as written by the kernel before it: see `linear`."""
        has_integers = self._is_quantised and x.dtype == torch.bfloat16 and not self._has_gemv(x)
        return torch.float16 if has_integers else x.dtype

    def _attended(self, inputs: kernels.HeadInputs, sharing: Sharing, dtype: torch.dtype) -> Tensor:
        """The attended heads (rows, heads, head_dim) of this type."""
        if sharing == "prompts":
            return kernels.prefill_attention(inputs, dtype)
        if not self._kernel_attention:
            return masked_attention(inputs).to(dtype)
        if sharing == "pairs" or inputs.keys.shape[1] <= kernels.SHORT:
            return kernels.short_attention(inputs, sharing == "pairs", dtype)
        return kernels.decode_attention(inputs, self._batch_invariant, dtype)

    def _product(
        self, inputs: Tensor, weight: Weight, norm: Tensor | None = None, dtype: torch.dtype | None = None, **fused: Any
    ) -> Tensor:
        """`linear` of an input that is normed already, unless GEMV does that."""
        return kernels.linear(
            inputs,
            weight.stored,
            norm=norm if self._has_gemv(inputs) else None,
            eps=self._sizes.norm_eps,
            packed12=weight.packed12,
            batch_invariant=self._batch_invariant,
            dtype=dtype,
            **fused,
        )

    def _added(
        self, y: Tensor, weight: Weight, x: Tensor, norm: Tensor, kind: torch.dtype, **fused: Any
    ) -> tuple[Tensor, Tensor]:
        """x plus a product, and the input of the next product: of this type and normed, unless GEMV does that."""
        if self._has_gemv(y):
            x = self._product(y, weight, residual=x, **fused)
            return x, x
        return kernels.linear_norm(y, weight.stored, x, norm, self._sizes.norm_eps, self._batch_invariant, kind)

    def norm(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The final norm (rows, dim), written to ``out`` if given."""
        return kernels.rms_norm(x, self._norm, self._sizes.norm_eps, out)

    def head(self, hidden: Tensor, normed: Tensor, weight: Weight) -> Tensor:
        """Logits (rows, columns) of hidden states (rows, dim), before and after the final norm."""
        return self._product(hidden if self._has_gemv(hidden) else normed, weight, norm=self._norm)


class FusedFrame:
    """One frame for the rows in these slots, all on the device, in `host_frame`'s layout."""

    def __init__(
        self,
        model: DualAR,
        cache: KVCache,
        slots: Slots,
        kernel_attention: bool,
        batch_invariant: bool = False,
        twelve_bits: TwelveBits = "none",
    ) -> None:
        """batch_invariant: a row's samples are the same alone and in a batch, bit by bit, at some cost of speed.

        twelve_bits: which unquantised weights, rounded to bfloat16, have a second copy in twelve bits for few rows to
        read.
        """
        device, books = cache.keys.device, model.config.num_codebooks
        rows, context = len(slots.position) - 1, cache.keys.shape[2]
        self._model, self._cache, self._state = model, cache, slots
        if model.weights != "bf16":  # twelve bits would hardly save anything
            twelve_bits = "none"
        head = model.head()
        self._head, self._text = Weight.of(StoredWeight(head), twelve_bits), head
        if model.slow_output is not None:
            semantic = torch.arange(model.config.semantic_start, model.config.semantic_end + 1)
            self._text = model.text(semantic).to(device)
        self._fast_heads = [Weight.of(StoredWeight(part), twelve_bits) for part in model.fast_heads()]
        self._fast_tables = model.fast.embeddings.weight.chunk(len(self._fast_heads))
        self.slow = FusedTransformer(model.slow, context, kernel_attention, batch_invariant, twelve_bits)
        self._fast = FusedTransformer(model.fast, books, kernel_attention, batch_invariant, twelve_bits)
        self._fast_cache = KVCache(model.config.fast, rows, books, device, cache.keys.dtype)
        self._rows = torch.arange(rows, device=device)
        self._positions = torch.arange(books + 1, device=device)[:, None].repeat(1, rows)
        self._first = {count: _pairs(count, device) for count in range(1, rows + 1)}
        """Rows and positions of a frame's first pass, by number of rows. Created here: kernels read them early, before
        their grid wait, so no graph may write them."""

    def __call__(self, slots: Tensor) -> Tensor:
        x, positions = kernels.begin_frame(slots, self._state)
        hidden, _ = self.slow(x, slots, positions, self._cache)
        return self.draw(hidden, slots)

    def draw(self, hidden: Tensor, slots: Tensor) -> Tensor:
        """The frame after the slow AR, from its hidden states (rows, dim) before the final norm."""
        state, model, rows = self._state, self._model, len(slots)
        books, stop = model.config.num_codebooks, model.config.semantic_size
        # Positions 0 (the hidden state, whose output is unused) and 1 (code 0) go in one pass.
        tables, heads = self._fast_tables, self._fast_heads
        x = hidden.new_empty(2 * rows, tables[0].shape[1])
        if isinstance(model.fast_project_in, nn.Identity) and model.config.fast_reads_norm:
            normed = self.slow.norm(hidden, out=x[:rows])
        else:
            normed = self.slow.norm(hidden)
            x[:rows] = model.fast_input(hidden, normed)
        codes = torch.empty(rows, books, dtype=torch.int64, device=slots.device)
        logits = self.slow.head(hidden, normed, self._head)
        semantic = kernels.sample(logits, slots, state, 0, True, kernels.EmbedOut(codes[:, 0], tables[0], x[rows:]))
        slot_rows, positions = self._first[rows]
        for book in launched_alike(range(1, books)):
            sharing: Sharing = "pairs" if book == 1 else "none"
            hidden, normed = self._fast(x, slot_rows, positions, self._fast_cache, sharing)
            logits = self._fast.head(hidden, normed, heads[(book - 1) % len(heads)])
            x = torch.empty_like(hidden)  # of the last code it is not read, and a table of its own may be missing
            into = kernels.EmbedOut(codes[:, book], tables[book % len(tables)], x)
            kernels.sample(logits, slots, state, book + 1, into=into)
            slot_rows, positions = self._rows[:rows], self._positions[book + 1, :rows]
        audio, divisor = model.codebook_embeddings.weight, model.config.code_divisor
        return kernels.end_frame(slots, codes, semantic, stop, self._text, audio, divisor, state)


class FusedPrefill:
    """Reads prompt steps into the cache: several rows of x may share a slot."""

    def __init__(self, model: DualAR, slow: FusedTransformer, cache: KVCache) -> None:
        self._model, self._slow, self._cache = model, slow, cache

    def __call__(self, text: Tensor, tokens: Tensor, codes: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        """text (steps, dim): embeddings of tokens (steps,); codes (codebooks, steps), slots, positions (steps,).

        Returns hidden states (steps, dim).
        """
        x = self._model.embed_codes(text[None], tokens[None], codes[None])[0]
        hidden, _ = self._slow(x, slots, positions, self._cache, "prompts")
        return hidden


def _pairs(rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows and positions of a frame's first pass: every row at 0, then every row at 1."""
    index = torch.arange(2 * rows)
    return (index % rows).to(device), (index // rows).to(device)


def masked_attention(inputs: kernels.HeadInputs) -> Tensor:
    """`decode_attention` without its kernel, usable in a graph: attends to the whole context and masks the rest.

    All keys are stored in the cache before any are read, so several rows may share a slot.
    """
    q, keys, values = kernels.rope(inputs), inputs.keys, inputs.values
    mask = torch.arange(keys.shape[1], device=q.device) <= inputs.positions[:, None]
    y = attention(q[:, None], keys[inputs.slots], values[inputs.slots], mask[:, None, None])
    return y.view_as(q)

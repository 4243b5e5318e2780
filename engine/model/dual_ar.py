"""The dual autoregressive model: the slow AR samples a semantic token per frame, the fast AR its residual codes.

Tensors keep upstream's names inside each part; `checkpoint` maps the file's prefixes onto the three parts.
Everything here is a plain function of tensors and a cache: the reference for every faster path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from engine.config import ModelConfig, TransformerSizes, Weights
from engine.model.layers import FeedForward, RMSNorm, apply_rope, rope_angles
from engine.model.prompt import Prompt
from engine.model.stored_weight import BITS, Quantiser, product
from engine.transfer import send, take_rows

TEXT_TABLE = "slow.embeddings.weight"
"""The only tensor that is needed for prompts alone."""
ROW_TABLES = frozenset({TEXT_TABLE, "codebook_embeddings.weight"})
"""Read a few rows at a time, so a CPU keeps them as short as in the file; rows are converted when they are read."""


_LATE_AT_ONCE = 16
"""Rows that are computed together, always so many: a row then does not depend on the others."""


class LateRows:
    """A table in the host's memory whose first rows are computed when they are first looked up.

    All of Qwen3-TTS's take 24 seconds of a core, those of a text milliseconds.
    """

    def __init__(self, table: Tensor, count: int, compute: Callable[[Tensor], Tensor]) -> None:
        """table: from row ``count`` on it is complete. compute: rows by their indices, int64 (rows,)."""
        self.table, self.compute, self._is_there = table, compute, torch.zeros(count, dtype=torch.bool)

    @torch.inference_mode()
    def fill(self, rows: Tensor) -> None:
        """Compute what these rows, int64 of any shape, lack. Any thread may call it: all compute the same."""
        wanted = rows[rows < len(self._is_there)].unique()
        for missing in wanted[~self._is_there[wanted]].split(_LATE_AT_ONCE):
            padded = F.pad(missing, (0, _LATE_AT_ONCE - len(missing)))
            self.table[missing] = self.compute(padded)[: len(missing)]
            self._is_there[missing] = True


class KeyValues(Protocol):
    """Stores a layer's keys and values, and determines which of them each query sees."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k and v (rows, steps, kv_heads, head_dim), then attend with q (rows, steps, heads, head_dim).

        Returns (rows, steps, heads · head_dim).
        """


class Causal:
    """No cache: every step sees the steps before it. For training and for whole sequences."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, causal=True)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Grouped-query attention over (rows, steps, heads, head_dim); scale head_dim^-½."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=True)
    return y.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """Grouped-query attention with optional RMSNorm of queries and keys before the rotation."""

    def __init__(self, sizes: TransformerSizes, bits: int) -> None:
        super().__init__()
        self.sizes = sizes
        width = (sizes.n_head + 2 * sizes.n_kv_head) * sizes.head_dim
        self.wqkv = product(sizes.dim, width, bits, sizes.qkv_bias)
        self.wo = product(sizes.n_head * sizes.head_dim, sizes.dim, bits)
        if sizes.qk_norm:
            self.q_norm = RMSNorm(sizes.head_dim, sizes.norm_eps)
            self.k_norm = RMSNorm(sizes.head_dim, sizes.norm_eps)

    def forward(self, x: Tensor, rope: Tensor, layer: int, cache: KeyValues) -> Tensor:
        heads = self.wqkv(x).unflatten(-1, (-1, self.sizes.head_dim))
        q, k, v = heads.split([self.sizes.n_head, self.sizes.n_kv_head, self.sizes.n_kv_head], dim=-2)
        if self.sizes.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        return self.wo(cache.attend(layer, apply_rope(q, rope), apply_rope(k, rope), v))


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self, sizes: TransformerSizes, bits: int) -> None:
        super().__init__()
        self.attention = Attention(sizes, bits)
        self.feed_forward = FeedForward(sizes.dim, sizes.intermediate_size, bits)
        self.attention_norm = RMSNorm(sizes.dim, sizes.norm_eps)
        self.ffn_norm = RMSNorm(sizes.dim, sizes.norm_eps)

    def forward(self, x: Tensor, rope: Tensor, layer: int, cache: KeyValues) -> Tensor:
        x = x + self.attention(self.attention_norm(x), rope, layer, cache)
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    """Blocks and a final norm over (rows, steps, dim); positions (rows or 1, steps)."""

    def __init__(self, sizes: TransformerSizes, bits: int = 16) -> None:
        super().__init__()
        self.sizes = sizes
        self.embeddings = nn.Embedding(sizes.vocab_size, sizes.dim)
        self.layers = nn.ModuleList(Block(sizes, bits) for _ in range(sizes.n_layer))
        self.norm = RMSNorm(sizes.dim, sizes.norm_eps)

    def forward(self, x: Tensor, positions: Tensor, cache: KeyValues) -> Tensor:
        return self.norm(self.states(x, positions, cache))

    def states(self, x: Tensor, positions: Tensor, cache: KeyValues) -> Tensor:
        """The hidden states before the final norm."""
        rope = rope_angles(positions, *self.sizes.rope)
        for index, block in enumerate(self.layers):
            x = block(x, rope, index, cache)
        return x


class DualAR(nn.Module):
    """Slow and fast AR with the table of codebook embeddings that feeds codes back into the slow one."""

    def __init__(self, config: ModelConfig, weights: Weights = "bf16") -> None:
        """weights: bits of the layers' weights; everything else has the model's dtype."""
        super().__init__()
        self.config, self.weights = config, weights
        self.late_text: LateRows | None = None
        slow, fast = BITS[weights]
        self.slow = Transformer(config.slow, slow)
        self.fast = Transformer(config.fast, fast)
        self.codebook_embeddings = nn.Embedding(config.codebook_size * config.num_codebooks, config.slow.dim)
        residual = (config.residual_codes or config.codebook_size) * config.fast_heads
        self.fast_output = nn.Linear(config.fast.dim, residual, bias=False)
        self.slow_output: nn.Linear | None = None
        if not config.tie_word_embeddings:
            self.slow_output = nn.Linear(config.slow.dim, config.slow.vocab_size - config.head_start, bias=False)
        self.fast_project_in: nn.Module = nn.Identity()
        if config.fast.dim != config.slow.dim:
            self.fast_project_in = nn.Linear(config.slow.dim, config.fast.dim)

    def quantised_as(self, weights: Weights) -> DualAR:
        """This model with its layers' weights quantised, sharing all others."""
        with only_shapes():
            model = DualAR(self.config, weights)
        quantiser, state = Quantiser(model), self.state_dict().items()
        tensors = {key: value for name, tensor in state for key, value in quantiser(name, tensor).items()}
        model.load_state_dict(tensors, assign=True)
        model.late_text = self.late_text
        return model.eval().requires_grad_(False)

    def embed(self, tokens: Tensor, codes: Tensor) -> Tensor:
        """Slow-AR input: tokens (rows, steps), codes (rows, codebooks, steps) → (rows, steps, dim) on their device.

        A semantic token's embedding is the sum of its own and its frame's codebook rows, code 0 included, scaled as
        the config says; codes at other tokens are ignored.
        """
        return self.embed_codes(send(self.text(tokens), codes.device), send(tokens, codes.device), codes)

    def embed_prompt(self, prompt: Prompt) -> Tensor:
        """Slow-AR input (1, steps, dim) of a prompt's steps."""
        device = self.slow.norm.weight.device
        codes = send(torch.from_numpy(prompt.codes), device)[None]
        x = self.embed(torch.from_numpy(prompt.ids)[None], codes)
        if prompt.beside is not None:
            x = x + send(self.beside(torch.from_numpy(prompt.beside)), device)
        if prompt.vector is not None:
            x[:, prompt.vector_step] += send(torch.from_numpy(prompt.vector), device)
        return x

    @property
    def dtype(self) -> torch.dtype:
        """The type of activations; `ROW_TABLES` may have a shorter one."""
        return self.slow.norm.weight.dtype

    @property
    def text_on_host(self) -> bool:
        """Whether the table of text tokens is in the host's memory, even if the model is on a GPU."""
        return self.text_device.type == "cpu"

    @property
    def text_device(self) -> torch.device:
        """Where the table of text tokens is."""
        return self.slow.embeddings.weight.device

    def text(self, tokens: Tensor) -> Tensor:
        """Rows of the table of text tokens in the model's type, on the table's device: the CPU if memory is short."""
        table = self.slow.embeddings.weight
        if self.text_on_host and not table.requires_grad:
            tokens = tokens.cpu()
            if self.late_text is not None:
                self.late_text.fill(tokens)
            return take_rows(table, tokens).to(self.dtype)
        return self.slow.embeddings(send(tokens, table.device)).to(self.dtype)

    def beside(self, tokens: Tensor) -> Tensor:
        """`text` of tokens that are added to others, nothing where one is −1."""
        return self.text(tokens.clamp(min=0)).masked_fill(send(tokens[:, None] < 0, self.text_device), 0)

    def embed_codes(self, text: Tensor, tokens: Tensor, codes: Tensor) -> Tensor:
        """`embed` with the tokens' `text` already looked up."""
        config = self.config
        offsets = torch.arange(config.num_codebooks, device=codes.device) * config.codebook_size
        audio = self.codebook_embeddings(codes + offsets[:, None]).to(text.dtype).sum(1)
        is_semantic = (tokens >= config.semantic_start) & (tokens <= config.semantic_end)
        return torch.where(is_semantic[..., None], (text + audio) / config.code_divisor, text)

    def head(self) -> Tensor:
        """The head's allowed rows: one per semantic token, in order, then the stop token; (semantic_size + 1, dim).

        No other token is ever sampled, so S2 Pro needs 4,097 of its 155,776 rows.
        """
        weight = self.slow.embeddings.weight if self.slow_output is None else self.slow_output.weight
        start = 0 if self.slow_output is None else self.config.head_start
        semantic = weight[self.config.semantic_start - start : self.config.semantic_end + 1 - start]
        return torch.cat([semantic, weight[self.config.eos_token - start][None]]).to(self.slow.norm.weight)

    def fast_input(self, hidden: Tensor, normed: Tensor) -> Tensor:
        """The fast AR's first input, of slow hidden states (…, slow dim) before and after the final norm."""
        return self.fast_project_in(normed if self.config.fast_reads_norm else hidden)

    def fast_embed(self, codes: Tensor, first: int = 0) -> Tensor:
        """The fast AR's embeddings (rows, codes, fast dim) of a frame's consecutive codes, from number ``first`` on."""
        if self.config.codes_apart:
            books = torch.arange(first, first + codes.shape[1], device=codes.device)
            codes = codes + books * self.config.codebook_size
        return self.fast.embeddings(codes)

    def fast_heads(self) -> tuple[Tensor, ...]:
        """The fast AR's heads for codes 1, 2 …, or a single one for all of them, each (codes that may be sampled,
        fast dim)."""
        return self.fast_output.weight.chunk(self.config.fast_heads)

    def fast_logits(self, x: Tensor, positions: Tensor, cache: KeyValues) -> Tensor:
        """Inputs (rows, steps, fast dim) at codebook positions (1, steps) → logits (rows, steps, codes that may be
        sampled).

        The input at position 0 is `fast_input`, at position k the fast embedding of code k − 1; the output at
        position k predicts code k.
        """
        states = self.fast(x, positions, cache)
        if not self.config.codes_apart:
            return self.fast_output(states)
        heads = self.fast_output.weight.unflatten(0, (self.config.fast_heads, -1))
        return torch.einsum("rsd,scd->rsc", states, heads[(positions[0] - 1).clamp(min=0)])


@contextmanager
def only_shapes() -> Iterator[None]:
    """Modules built here have no values: assign tensors with ``load_state_dict(…, assign=True)`` or ``to_empty``.

    The meta device alone would still run the initialisers, for which torch imports its whole compiler: 2 to 3 s of an
    engine's start.
    """
    with torch.device("meta"), _NoFirstValues():
        yield


class _NoFirstValues(TorchFunctionMode):
    """Skips every call of torch.nn.init."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)

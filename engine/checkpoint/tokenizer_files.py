"""Reads tokenizers of checkpoints: tokenizer.json, or tiktoken's ranks with a list of special tokens."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as HubTokenizer

from engine.engine_errors import CheckpointError
from engine.files import load_json, parse_json

TOKENIZER, RANKS, SPECIAL = "tokenizer.json", "tokenizer.tiktoken", "special_tokens.json"
VOCABULARY, MERGES = "vocab.json", "merges.txt"
_PATTERN = "|".join(
    [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"\p{P}",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(\?!\S)",  # as upstream has it, though probably a mistake
        r"\s+",
    ]
)
"""How S1's tokenizer splits a text before it merges bytes."""
_QWEN_PATTERN = _PATTERN.replace(r"|\p{P}|", "|").replace(r"(\?!\S)", r"(?!\S)")
"""How Qwen's does."""


def hub_tokenizer(data: bytes, source: str) -> HubTokenizer:
    """The tokenizer in a tokenizer.json. Raises CheckpointError."""
    with _refusing(f"{source} cannot be read"):
        return HubTokenizer.from_buffer(data)


@contextmanager
def _refusing(problem: str) -> Iterator[None]:
    """Raise CheckpointError with this message in place of any error."""
    try:
        yield
    except Exception as error:  # the library raises bare Exception for every malformed file
        raise CheckpointError(f"{problem}: {error}") from error


def token_ids(data: bytes, source: str) -> dict[str, int]:
    """The special tokens of a tokenizer.json and their ids. Raises CheckpointError."""
    added = parse_json(data, source).get("added_tokens")
    try:
        return {str(token["content"]): int(token["id"]) for token in added or ()}
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{source} has added_tokens without content and id: {error}") from error


def read_ranks(data: bytes, source: str) -> dict[bytes, int]:
    """The ranks in a tokenizer.tiktoken: per line a token in base64 and its rank. Raises CheckpointError."""
    ranks: dict[bytes, int] = {}
    try:
        for line in data.splitlines():
            if line and not line.startswith(b"= "):
                token, rank = line.split()
                ranks[base64.b64decode(token, validate=True)] = int(rank)
    except ValueError as error:
        raise CheckpointError(f"{source} is not a file of tiktoken's ranks: {error}") from error
    if sorted(ranks.values()) != list(range(len(ranks))) or any(bytes([byte]) not in ranks for byte in range(256)):
        raise CheckpointError(f"{source} lacks ranks or bytes, so it is incomplete; download it again")
    return ranks


def read_special(data: bytes, ranks: Mapping[bytes, int], source: str) -> dict[str, int]:
    """Special tokens, a list or an object in order, and their ids, which follow the ranks. Raises CheckpointError."""
    tokens = load_json(data, source)
    if not tokens or not isinstance(tokens, list | dict) or not all(isinstance(token, str) for token in tokens):
        raise CheckpointError(f"{source} must list special tokens")
    return {token: len(ranks) + index for index, token in enumerate(tokens)}


def tiktoken_tokenizer(ranks: Mapping[bytes, int], special: Mapping[str, int]) -> HubTokenizer:
    """A tokenizer with tiktoken's tokens: it merges the two neighbours whose union has the lowest rank."""
    signs = _byte_signs()
    texts = {token: "".join(signs[byte] for byte in token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=lambda token: ranks[token]):
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        pairs = [(left, right) for left, right in cuts if left in ranks and right in ranks]
        pairs.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [(texts[left], texts[right]) for left, right in pairs]
    vocabulary = {texts[token]: rank for token, rank in ranks.items()}
    tokenizer = HubTokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    _split_by(_PATTERN, tokenizer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer


def qwen_tokenizer(vocabulary: bytes, merges: bytes, source: str) -> HubTokenizer:
    """The tokenizer of a vocab.json and merges.txt, without any special tokens: no text can contain one.

    Raises CheckpointError, which names ``source``.
    """
    ids = parse_json(vocabulary, source)
    with _refusing(f"{source} and merges.txt do not fit each other; download both again"):
        lines = merges.decode().splitlines()
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        tokenizer = HubTokenizer(models.BPE(vocab=ids, merges=pairs))  # type: ignore[arg-type]
    if any(sign not in ids for sign in _byte_signs()):
        raise CheckpointError(f"{source} lacks bytes, so it is incomplete; download it again")
    tokenizer.normalizer = normalizers.NFC()
    _split_by(_QWEN_PATTERN, tokenizer)
    return tokenizer


def _split_by(pattern: str, tokenizer: HubTokenizer) -> None:
    """Split texts by a pattern, then into bytes."""
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()


def _byte_signs() -> list[str]:
    """The character that byte-level BPE writes for each byte: itself if visible, else one from 256 on."""
    seen = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in seen else chr(next(hidden)) for byte in range(256)]

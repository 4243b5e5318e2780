"""The byte-level vocabulary: token id = byte value below 256, then control tokens, then semantic tokens."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from training.sizes import CODEBOOK_SIZE, MODEL

CONTROL_TOKENS = (
    "<|endoftext|>", "<|pad|>", "<|im_start|>", "<|im_end|>", "<|phoneme_start|>", "<|phoneme_end|>", "<|text|>",
    "<|voice|>", "<|interleave|>", "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>",
    *(f"<|speaker:{n}|>" for n in range(10)),
)  # fmt: skip


def token_id(token: str) -> int:
    """The id of a control token."""
    return 256 + CONTROL_TOKENS.index(token)


def build_tokenizer() -> Tokenizer:
    """A tokenizer without merges: every byte of UTF-8 text is one token."""
    letters = _byte_letters()
    tokenizer = Tokenizer(models.BPE(vocab={letters[byte]: byte for byte in range(256)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    semantic = [f"<|semantic:{n}|>" for n in range(CODEBOOK_SIZE)]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (*CONTROL_TOKENS, *semantic)])
    assert tokenizer.token_to_id("<|semantic:0|>") == MODEL.semantic_start
    assert tokenizer.token_to_id("<|im_end|>") == MODEL.eos_token
    return tokenizer


def write_tokenizer(folder: Path) -> None:
    """Write folder/tokenizer.json."""
    build_tokenizer().save(str(folder / "tokenizer.json"))


def _byte_letters() -> dict[int, str]:
    """The printable letter that byte-level BPE writes for each byte (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(rest)}

"""Text to token ids: the checkpoint's own tokenizer.json, with the control tokens resolved by name."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer as HubTokenizer

from engine.config import ModelConfig
from engine.engine_errors import CheckpointError

IM_START, IM_END, VOICE = "<|im_start|>", "<|im_end|>", "<|voice|>"
REMEMBERED = 512
"""Texts of `encode_again`, a few kB each."""


class Tokenizer:
    """Byte-level BPE; control tokens only ever come from `im_start`, `im_end` and `voice`, never from user text."""

    def __init__(self, tokenizer: HubTokenizer, path: Path) -> None:
        self._tokenizer = tokenizer
        self.encode_again = lru_cache(REMEMBERED)(self.encode)
        """As `encode`, for what comes again and again: a layout's own words, and those of a voice's clips."""
        self.im_start, self.im_end, self.voice = (self._resolve(token, path) for token in (IM_START, IM_END, VOICE))

    @classmethod
    def read(cls, folder: Path, config: ModelConfig) -> Tokenizer:
        """Read folder/tokenizer.json and hold it against config.json. Raises CheckpointError."""
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise CheckpointError(f"{path} is missing")
        try:
            tokenizer = cls(HubTokenizer.from_file(str(path)), path)
        except CheckpointError:
            raise
        except Exception as error:  # the library raises bare Exception for every malformed file
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        tokenizer._check("<|semantic:0|>", config.semantic_start, "semantic_start_token_id", path)
        last = f"<|semantic:{config.semantic_size - 1}|>"
        tokenizer._check(last, config.semantic_end, "semantic_end_token_id", path)
        tokenizer._check(IM_END, config.eos_token, "eos_token_id", path)
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Token ids of text, nothing added in front or behind."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def spans(self, text: str) -> list[tuple[int, int]]:
        """From which to which character each of these tokens goes; of one character in several tokens, each has it."""
        return [(start, end) for start, end in self._tokenizer.encode(text, add_special_tokens=False).offsets]

    def _resolve(self, token: str, path: Path) -> int:
        token_id = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise CheckpointError(f"{path} has no token {token}")
        return token_id

    def _check(self, token: str, expected: int, key: str, path: Path) -> None:
        found = self._resolve(token, path)
        if found != expected:
            raise CheckpointError(f"{path}: {token} is {found}, but config.json's {key} says {expected}")

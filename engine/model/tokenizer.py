"""Converts text to token ids, and control tokens of the prompt's layout by name."""

from __future__ import annotations

import re
from functools import lru_cache

from tokenizers import Tokenizer as HubTokenizer

from engine.config import ModelConfig, PromptLayout
from engine.engine_errors import CheckpointError

IM_START, IM_END, VOICE, INTERLEAVE = "<|im_start|>", "<|im_end|>", "<|voice|>", "<|interleave|>"
_CONTROL: dict[PromptLayout, tuple[str, ...]] = {
    "chat": (IM_START, IM_END, VOICE), "interleave": (INTERLEAVE, IM_END), "talker": (),
}  # fmt: skip
_TAG = re.compile(r"<\|(?:speaker:\d++|phoneme_start|phoneme_end)\|>")
"""What Fish's models obey and others would read out."""
_WORD = re.compile(r"\S+")
REMEMBERED = 512
"""Cached texts of `encode_again`, a few kB each."""


class Tokenizer:
    """Byte-level BPE; control tokens come only from `control`, never from user text."""

    def __init__(self, tokenizer: HubTokenizer, config: ModelConfig, source: str) -> None:
        """``source``: the file it was read from, for messages. Raises CheckpointError if it does not match the
        config."""
        self._tokenizer, self._source, self._joins_spaces = tokenizer, source, config.joins_spaces
        self._strips = config.talker is not None
        self.encode_again = lru_cache(REMEMBERED)(self.encode)
        """Like `encode`, for texts that recur: a layout's fixed text, and voices' transcripts."""
        self._control = {token: self._resolve(token) for token in _CONTROL[config.prompt_layout]}
        if config.talker is not None:  # all control tokens are in its config.json
            if (size := tokenizer.get_vocab_size()) > (limit := min(config.talker.im_start, config.talker.im_end)):
                raise CheckpointError(f"{source} has {size} tokens, but config.json's control tokens begin at {limit}")
            return
        self._check("<|semantic:0|>", config.semantic_start, "semantic_start_token_id")
        self._check(f"<|semantic:{config.semantic_size - 1}|>", config.semantic_end, "semantic_end_token_id")
        self._check(IM_END, config.eos_token, "eos_token_id")

    def control(self, token: str) -> int:
        """The id of one of the layout's control tokens."""
        return self._control[token]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without anything added."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def as_read(self, text: str) -> str:
        """The text as a model of this family must read it: unchanged, without tags and white space around it, or with
        all of its white space collapsed."""
        if self._joins_spaces:
            return " ".join(text.split())
        return _TAG.sub("", text).strip() if self._strips else text

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Start and end character of each token of `as_read` in the text.

        If one character has several tokens, each of them spans it.
        """
        offsets = self._tokenizer.encode(self.as_read(text), add_special_tokens=False).offsets
        positions = list(range(len(text)))  # of the characters that are read
        if self._joins_spaces:
            words = [range(word.start() - bool(index), word.end()) for index, word in enumerate(_WORD.finditer(text))]
            positions = [position for word in words for position in word]
        elif self._strips:
            tags = {position for tag in _TAG.finditer(text) for position in range(*tag.span())}
            rest = [position for position in positions if position not in tags]
            plain = "".join(text[position] for position in rest)
            positions = rest[len(plain) - len(plain.lstrip()) :]
        positions.append(len(text))
        return [(positions[start], positions[end - 1] + 1 if end > start else positions[end]) for start, end in offsets]

    def _resolve(self, token: str) -> int:
        token_id = self._tokenizer.token_to_id(token)
        if token_id is None:
            raise CheckpointError(f"{self._source} has no token {token}")
        return token_id

    def _check(self, token: str, expected: int, key: str) -> None:
        actual = self._resolve(token)
        if actual != expected:
            raise CheckpointError(f"{self._source}: {token} is {actual}, but config.json's {key} says {expected}")
